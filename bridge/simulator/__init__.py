"""The provider, simulated: the settlement feed as the interface describes it, for tests and demos.

It shares no code with the bridge, so that each checks the other. From the inside out:

    names, world, bets   who plays what, and what came of the bets on it: pure functions of a seed
    clock                what the provider's clock shows, which may step
    stream               what is published when: a pure function of the slot number
    log                  the stream and what was injected into it; readers of it
    limits               every limit of the interface, with the provider's own book-keeping
    faults               what can go wrong, and what of it goes on
    connection           sans-IO: what one client is sent, and when
    provider             sans-IO: who is let in, and what goes wrong at what moment
    control              faults and the truth over HTTP: a WSGI application
    server               the only module with a socket and a clock
"""
