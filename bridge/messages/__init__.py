"""From a message of the feed to a settled bet."""
