"""Mutates messages of the feed, for comparisons of the two ways of converting them.

The keys and scalars of a document are pieces of text, so it can hold a key twice, and text that is no JSON. A
seed makes a message: Hypothesis would take a hundred times as long to draw each piece.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.errors import ConversionError
from bridge.messages.converter import Converter
from bridge.messages.model import omittable_fields
from bridge.messages.parser import MessageParser
from bridge.messages.transcoder import Conversion
from bridge.messages.transcoder_plan import make_transcoder
from tests.malformed import A_BET, AN_AMOUNT, AN_ITEM
from tests.messages import SIMULATED

Tree: TypeAlias = "str | list[Tree] | Object"
"""The text of a scalar, a list, or an object."""


class Object:
    """An object of JSON: its fields in order."""

    def __init__(self, fields: list[tuple[str, Tree]]) -> None:
        self.fields = fields


def words(text: str) -> list[str]:
    """Split a text into pieces without spaces."""
    return text.split()


def quoted(text: str) -> str:
    """Return a string in JSON."""
    return json.dumps(text, ensure_ascii=False)


_Mutation: TypeAlias = "Callable[[Object, Random], None]"

NUMBERS: Final = words("""
    -0 -0.0 0.0 1 5.0 1e0 1e5 1E+5 1E400 -1e-400 0e99999 1e-99999999999999999999 9007199254740993
    9007199254740993.0 2147483647 2147483648 -2147483648 -2147483649 9223372036854775807 9223372036854775808
    -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616 36893488147419107329
    2.2250738585072011e-308 4.9e-324 2.4e-324 1.7976931348623157e308 1.7976931348623159e308
    NaN Infinity -Infinity 01 1. .5 +1 - 1e 0x1
""")
LONG_NUMBERS: Final = [
    *(
        f"{sign}{whole}{rest}"
        for sign in ("", "-")
        for whole in ("9" * 308, "9" * 309, "1" + "0" * 4299, "1" + "0" * 4300, "1" + "0" * 20_000)
        for rest in ("", ".5", f"e-{len(whole)}", f".{'3' * 5000}e-{len(whole)}")
    ),
    *("0." + "1" * 5000, "1e-" + "0" * 5000 + "1", "1e" + "0" * 5000 + "1", "0" * 5000),
]
DATE_TIMES: Final = words("""
    "2026-01-31T12:00:00" "2026-01-31T12:00:00Z" "2026-01-31T12:00:00z" "2026-01-31t12:00:00Z"
    "2026-01-31T12:00:00.1234567Z" "2026-01-31T12:00:00.999999999+14:00" "2026-01-31T12:00:00.1234567890Z"
    "2026-01-31T12:00:00.Z" "2026-01-31T12:00Z" "2026-01-31T12:00:00+0100" "2026-01-31T12:00:00+01"
    "2026-01-31T12:00:00-00:00" "2026-01-31T12:00:00+24:00" "0001-01-01T00:00:00+23:59"
    "9999-12-31T23:59:59.999999-23:59" "0000-01-01T00:00:00" "10000-01-01T00:00:00" "2026-02-29T00:00:00"
    "2024-02-29T00:00:00" "1900-02-29T00:00:00" "2026-01-31T24:00:00" "2016-12-31T23:59:60Z" "2026-01-31"
    "2026-W05-6T12:00:00" "20260131T120000Z" "２026-01-31T12:00:00" "2026-01-31T12:00:00−01:00" "1769860800"
""")
STRINGS: Final = [
    *(f'"{character * length}"' for character in "xé€😀" for length in (0, 1, 999, 1000, 1001)),
    *(f'"{escape * length}"' for escape in (r"\ud83d\ude00", r"\u0041") for length in (1, 1000, 1001)),
    *(
        f'"{text}"'
        for text in ("\0", "\t", "\x1f", "\x7f", "\u2028", "\ufeff", "\ud800", ":{[", "x" * 100_000)
    ),
    *(f'"{" " * length}{text}"' for length in range(8) for text in (r"\"", r"\\", r"\\\"", r"\u0022")),
    *words(r""" "\ud800" "\udc00\ud800" "\ud83dA" "\u0000" "\/" "\x41" "\u00" 'x' "x """),
]
NESTS: Final = [
    begin * depth + inner + end * depth
    for begin, inner, end in (("[", "", "]"), ('{"a":', "[]", "}"), ('[{"":', '"x"', "}]"))
    for depth in (1, 9, 49, 50, 51, 97, 98, 99, 100, 101, 190, 205, 1030)
]
SHAPES: Final = words("""
    null true false [] {} [null] [[]] [{}] "" {"a":"b"} {"a":"b","a":"c"} {"a":1,"a":"c"} {"a":"b","a":1}
    {"b":"1","a":"2","B":"3","é":"4","":"5"} {"a":null} {"a":{}} {"a":"b"}} ] , [1,"x",{"betId":["y"]}]
    {"x":{"y":1,"y":"z"}} [{"a":[{"b":"c","\\u0062":"c"}]}]
""")
NAMES: Final = [
    *words(r"""
    "new" "betID" "BetId" "betId" "data" "pingId" "id" "name" "type" "win" "value" "currency" "version"
    "selections" "market" "settlementTime" "parameters" "properties" "" "a.b" "a[]" "[0]" "é" "😀"
    "\ud83d\ude00" "\"" "\\" "\\\"" "\u0022" "\u0000" "da\u0074a" "ping\u0049d" "\ud800" "x
    """),
    *(quoted(character * length) for character in "x€" for length in (59, 60, 61, 62, 1000)),
    quoted("x" * 59 + "y"),
    quoted("x" * 60 + "y"),
]
"""Names of unknown fields, or of known ones at another place."""
_SIMPLE: Final = words("""1 null "x" {"a":["b"]} [{"betId":"b"}]""")
_OMITTABLE: Final = sorted({quoted(path.rpartition(".")[2]) for path in omittable_fields()})


def _minimal(**fields: Any) -> bytes:
    return json.dumps({"data": A_BET | fields}).encode()


ORIGINALS: Final = [
    *SIMULATED[:60],
    *[_minimal(), _minimal(selections=[AN_ITEM] * 3, amount=AN_AMOUNT), _minimal(selections=[], amount=None)],
    *[b'{"pingId":"a"}', b'{"pingId":"b","data":null}', b'{"data":null}', b"{}"] * 3,
]


def parsed(data: bytes) -> Tree:
    """Return the tree of a document."""

    def tree(value: Any) -> Tree:
        if isinstance(value, list):
            return [tree(item) for item in value]
        if isinstance(value, _Number):
            return value.text
        return value if isinstance(value, Object) else json.dumps(value)

    def whole(fields: list[tuple[str, Any]]) -> Object:
        return Object([(json.dumps(key), tree(value)) for key, value in fields])

    return tree(json.loads(data, object_pairs_hook=whole, parse_int=_Number, parse_float=_Number))


class _Number:
    def __init__(self, text: str) -> None:
        self.text = text


def text(node: Tree) -> str:
    """Return the text of a document."""
    if isinstance(node, str):
        return node
    if isinstance(node, list):
        return f"[{','.join(map(text, node))}]"
    return f"{{{','.join([f'{key}:{text(value)}' for key, value in node.fields])}}}"


def objects(node: Tree) -> Iterator[Object]:
    """Yield every object of a document, the outer ones first."""
    if isinstance(node, Object):
        yield node
        for _, value in node.fields:
            yield from objects(value)
    elif isinstance(node, list):
        for item in node:
            yield from objects(item)


def piece(random: Random) -> str:
    """Return a piece of JSON, or of what is none."""
    kind = random.randrange(9)
    if kind == 0:
        return random.choice([str(random.randint(-9, 12)), "true", "false", "null"])
    if kind == 1:
        return str(random.randint(-(2 ** random.randint(1, 70)), 2 ** random.randint(1, 70)))
    if kind == 2:
        digits = "".join(random.choices("0123456789", k=random.randint(1, 30)))
        return f"{random.randint(-9, 10 ** random.randint(0, 25))}.{digits}e{random.randint(-330, 310)}"
    if kind == 3 and random.randrange(4):
        return repr(random.uniform(-1, 1) * 10.0 ** random.randint(-300, 300))
    return random.choice(random.choice([NUMBERS, LONG_NUMBERS, DATE_TIMES, STRINGS, NESTS, SHAPES]))


def escaped(key: str) -> str:
    """Return the same key with its last character as an escape, if it is a key and has one."""
    try:
        name = json.loads(key) if key.startswith('"') else ""
    except ValueError:
        return key
    if not name:
        return key
    units = name[-1].encode("utf-16-be", "surrogatepass").hex()
    last = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    return f'{json.dumps(name[:-1])[:-1]}{last}"'


def _insert(fields: list[tuple[str, Tree]], key: str, value: Tree, random: Random) -> None:
    fields.insert(random.randint(0, len(fields)), (key, value))


def _field(change: Callable[[list[tuple[str, Tree]], int, Random], None]) -> _Mutation:
    """Change one field of one object."""

    def mutate(root: Object, random: Random) -> None:
        fields = random.choice([found for found in objects(root) if found.fields] or [root]).fields
        if fields:
            change(fields, random.randrange(len(fields)), random)

    return mutate


def _another_value(fields: list[tuple[str, Tree]], at: int, random: Random) -> None:
    fields[at] = fields[at][0], piece(random)


def _another_spelling(fields: list[tuple[str, Tree]], at: int, random: Random) -> None:
    """Replace a value by one of its type, in some spelling."""
    key, value = fields[at]
    if isinstance(value, str):
        is_time = value[:1] == '"' and value[5:6] == "-"
        pool = DATE_TIMES if is_time else STRINGS if value[:1] == '"' else NUMBERS
        fields[at] = key, random.choice(pool)


def _twice(fields: list[tuple[str, Tree]], at: int, random: Random) -> None:
    key, value = fields[at]
    again = random.choice([key, escaped(key)])
    _insert(fields, again, random.choice([value, piece(random)]), random)


def _escaped(fields: list[tuple[str, Tree]], at: int, random: Random) -> None:
    fields[at] = escaped(fields[at][0]), fields[at][1]


def _renamed(fields: list[tuple[str, Tree]], at: int, random: Random) -> None:
    key, value = fields[at]
    fields[at] = random.choice([key.swapcase(), random.choice(NAMES), piece(random)]), value


def _missing(fields: list[tuple[str, Tree]], at: int, random: Random) -> None:
    del fields[at]


def _shuffled(fields: list[tuple[str, Tree]], at: int, random: Random) -> None:
    random.shuffle(fields)


def _omitted(root: Object, random: Random) -> None:
    """Leave out fields that may be missing if the operator allows it, some or all of them."""
    names = {name for name in _OMITTABLE if random.randrange(2)}
    for found in objects(root):
        found.fields = [field for field in found.fields if field[0] not in names]


def _unknown(root: Object, random: Random) -> None:
    """Add an unknown field, to one object or to all."""
    found = list(objects(root))
    key, value = random.choice(NAMES), random.choice([*_SIMPLE, piece(random)])
    for place in found if random.randrange(2) else [random.choice(found)]:
        _insert(place.fields, key, value, random)


def _many_unknown(root: Object, random: Random) -> None:
    """Add about as many unknown fields as are reported, anywhere."""
    found = list(objects(root))
    for number in range(random.choice([98, 99, 100, 101, 130])):
        key = quoted(random.choice([f"new{number}", f"{'x' * 57}{number}"]))
        _insert(random.choice(found).fields, key, random.choice(_SIMPLE), random)


def _deep(root: Object, random: Random) -> None:
    depth = random.choice([random.randint(95, 105), random.randint(185, 205)])
    value = '"x"'
    for _ in range(depth):
        value = random.choice(["[{}]", '{{"a":{}}}', '["b",{}]']).format(value)
    _insert(random.choice(list(objects(root))).fields, '"new"', value, random)


def _ping(root: Object, random: Random) -> None:
    """Add a ping id, or leave the bet out."""
    if random.randrange(2):
        root.fields = [field for field in root.fields if field[0] != '"data"']
    value = random.choice(['"a"', '"b"', "null", random.choice(STRINGS), piece(random)])
    _insert(root.fields, random.choice(['"pingId"', '"pingId"', '"ping\\u0049d"']), value, random)


def _no_bet(root: Object, random: Random) -> None:
    root.fields = [(key, "null" if key == '"data"' else value) for key, value in root.fields]


def _long(root: Object, random: Random) -> None:
    """Add a field that makes the message longer than a limit of the converter."""
    size = random.choice([*[4_000, 8_200, 33_000] * 5, 820_000])
    value = random.choice(["[{}]".format(",".join(["1"] * (size // 2))), f'"{"x" * size}"', " " * size + "1"])
    _insert(random.choice(list(objects(root))).fields, '"new"', value, random)


def _many_items(root: Object, random: Random) -> None:
    """Repeat a selection until the message has more values than any bet, or more than are parsed at all."""
    for found in objects(root):
        for at, (key, value) in enumerate(found.fields):
            if key == '"selections"' and isinstance(value, list) and value:
                count = random.choice([*[20, 40, 700] * 7, 8_000])
                found.fields[at] = key, [*value, *[text(value[0])] * count]
                return


def _damaged(data: bytes, random: Random) -> bytes:
    place = random.randint(0, len(data))
    damage = random.choice([*_DAMAGES, random.randbytes(random.randint(0, 4))])
    return data[:place] + damage + data[place + random.randint(0, 3) :]


def _spaced(data: bytes, random: Random) -> bytes:
    """Add white space, which moves everything behind it."""
    return data.replace(b"}", b"}" + random.choice([b" ", b"\n\t", b" " * random.randint(3, 90)]))


_DAMAGES: Final = [
    *[b"", b" \n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80"],
    *rb"""} ] " , 1 0 \ \" \\ \u0041 "":"",""".split(),
]
_OF_TREES: Final[dict[str, _Mutation]] = {
    "another value": _field(_another_value),
    "another spelling": _field(_another_spelling),
    "twice": _field(_twice),
    "escaped": _field(_escaped),
    "renamed": _field(_renamed),
    "missing": _field(_missing),
    "omitted": _omitted,
    "shuffled": _field(_shuffled),
    "unknown": _unknown,
    "many unknown": _many_unknown,
    "deep": _deep,
    "ping": _ping,
    "no bet": _no_bet,
    "long": _long,
    "many items": _many_items,
}
_OF_BYTES: Final = {"damaged": _damaged, "spaced": _spaced}
MUTATIONS: Final = [*_OF_TREES, *_OF_BYTES]
"""What may be changed in a message, by name."""
COSTLY: Final = ("long", "many items")


def mutated(data: bytes, mutations: Iterable[str], random: Random) -> bytes:
    """Return a message after these mutations. Those of its bytes come last."""
    root = parsed(data)
    assert isinstance(root, Object)
    names = [*mutations]
    for name in names:
        if name in _OF_TREES:
            _OF_TREES[name](root, random)
    data = text(root).encode("utf-8", "surrogatepass")
    for name in names:
        if name in _OF_BYTES:
            data = _OF_BYTES[name](data, random)
    return data


class Comparison:
    """Converts messages with the transcoder and without it, with the same optional fields."""

    def __init__(self, *optional_fields: str) -> None:
        codec, parser = Codec(load("settled-bet"), 1), MessageParser(frozenset(optional_fields))
        self._by_pydantic = Converter(parser, codec)
        self._by_transcoder = Converter(parser, codec, make_transcoder(codec, parser.zeros))

    def outcome(self, data: bytes) -> Outcome:
        """Convert a message both ways. Fails if the results differ."""
        before = self._by_transcoder.fallbacks
        found = _converted(self._by_transcoder, data)
        expected = _converted(self._by_pydantic, data)
        assert repr(found) == repr(expected), f"{data!r} becomes {found}, by pydantic {expected}"
        return Outcome(self._by_transcoder.fallbacks == before, found)


class Outcome(NamedTuple):
    """A conversion, or the parts of an error, and whether it came from the transcoder alone."""

    by_transcoder: bool
    result: Conversion | tuple[str, tuple[str, ...], str | None, None]

    @property
    def accepted(self) -> bool:
        """Whether the transcoder accepted the message."""
        return self.by_transcoder and len(self.result) == 3

    @property
    def traits(self) -> list[str]:
        """What the message is."""
        if len(self.result) == 4:
            return ["an error"]
        ping_id, bet, extras = self.result
        traits = {"a ping": ping_id is not None, "a bet": bet is not None, "extras": bool(extras)}
        return [name for name, has_it in traits.items() if has_it]


def _converted(converter: Converter, data: bytes) -> Any:
    try:
        return converter.convert(data)
    except ConversionError as error:
        return error.reason, error.extras, error.ping_id, None
