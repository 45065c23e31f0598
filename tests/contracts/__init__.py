"""What a port promises, whatever is behind it: a suite runs on the memory and on the real thing."""
