"""What people look at in the topics, without running anything."""
