"""What the simulated provider sells: sports, leagues, teams, events, and what they are called."""
