"""Small programs in other languages that read the bets, and what compares each field with the truth."""
