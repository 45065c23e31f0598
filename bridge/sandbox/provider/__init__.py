"""The provider, simulated as the interface describes it: feed, translations, currencies, for tests and demos.

It shares no code with the bridge, so that each checks the other. From the inside out:

    world.words                    what names are made of, in six languages
    world.entities                 who plays what where: pure functions of a seed
    clock                          what the provider's clock shows, which may step

    bets                           settled bets: pure functions of the same seed
    stream                         what is published when: a pure function of the slot number
    history                        the stream and what was injected into it; readers of it
    rate_limits                    every limit of the interface, with the provider's own book-keeping
    faults                         faults of the feed
    connection                     sans-IO: what one client receives, and when
    feed                           sans-IO: accepts or refuses connections, applies faults

    world.translations             names in every language: pure functions of the entity
    world.currencies               the currencies
    world.catalogue                the entities of the REST side by kind and id, and changes to them
    rest.tokens                    bearer tokens and their rights
    rest.routes                    the fifteen endpoints and their paths
    rest.settings                  what the interface leaves open about them
    rest.faults                    answers and their faults
    rest.app                       sans-IO: a request goes in, an answer comes out

    settings                       all settings
    handshake                      revision and credentials of a handshake
    bodies                         takes the body off a request
    control                        faults and the truth of both sides over HTTP: a WSGI application
    server                         the only module with the provider's sockets and a clock
    command                        `bridge simulate`: a process of its own
"""
