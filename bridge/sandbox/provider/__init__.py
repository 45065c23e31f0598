"""The provider, simulated as the interface describes it: feed, translations, currencies, for tests and demos.

It shares no code with the bridge, so that each checks the other. From the inside out:

    world.words                    what names are made of, in six languages
    world.entities                 who plays what where: pure functions of a seed
    clock                          what the provider's clock shows, which may step

    bets                           what came of the bets on it: pure functions of the same seed
    stream                         what is published when: a pure function of the slot number
    history                        the stream and what was injected into it; readers of it
    rate_limits                    every limit of the interface, with the provider's own book-keeping
    faults                         what can go wrong with the feed, and what of it goes on
    connection                     sans-IO: what one client is sent, and when
    feed                           sans-IO: who is let in, and what goes wrong at what moment

    world.translations             names in every language: pure functions of the thing
    world.currencies               those that there are
    world.catalogue                what the REST side knows, by kind and id, and what was changed about it
    rest.tokens                    who may ask for what, and until when
    rest.routes                    the fifteen endpoints and their paths
    rest.settings                  what the interface leaves open about them
    rest.faults                    answers, and what can go wrong with them
    rest.app                       sans-IO: a request goes in, an answer comes out

    settings                       all that can be chosen
    handshake                      what a client of the feed asks for, and who may not
    bodies                         takes the body off a request
    control                        faults and the truth of both sides over HTTP: a WSGI application
    server                         the only module with the provider's sockets and a clock
    command                        `bridge simulate`: a process of its own
"""
