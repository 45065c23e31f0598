"""Programs that read the topics as other people's do, and what runs and checks them on this machine."""
