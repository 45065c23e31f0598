"""The soak: what bridges take, minute by minute, while each is the owner and the standby again and again."""
