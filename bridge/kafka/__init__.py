"""Kafka as a library: its clients, their errors, and what they lack.

`clients` makes them from the settings, `errors` says what each error means, `admin` asks and changes
topics, `reader` scans a topic to its end, `transactions` writes one transaction after the other, whatever
happens, at the `pace` that Kafka takes. Nothing here knows what a bet is.
"""
