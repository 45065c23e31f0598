"""Commands that print settled bets: tail and replay, with one set of filters and formats, and explain."""

from __future__ import annotations

import gc
import shutil
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bridge.cli.output import (
    Config,
    Json,
    beginning_with,
    in_utf_8,
    interruptible,
    print_note,
    print_text,
    progress,
    show,
)
from bridge.config import Settings, load
from bridge.errors import BridgeError, SettingsError
from bridge.formatting import plural
from bridge.messages.model import SETTLEMENT_RESULTS

if TYPE_CHECKING:
    from bridge.inspection.formats import Format as Form
    from bridge.inspection.formats import NamesOf
    from bridge.inspection.replay import Replay, Window
    from bridge.inspection.selection import Selection
    from bridge.reader import Bet

Bets = Annotated[
    list[str] | None,
    typer.Option("--bet", metavar="ID", help="Only this bet. May be repeated, like all filters."),
]
Sports = Annotated[list[int] | None, typer.Option("--sport", metavar="ID", help="Only bets on this sport.")]
Leagues = Annotated[
    list[int] | None, typer.Option("--league", metavar="ID", help="Only bets on this league (competitionId).")
]
Currencies = Annotated[
    list[str] | None,
    typer.Option("--currency", metavar="SYMBOL", help="Only stakes in this currency.", callback=in_utf_8),
]
Results = Annotated[
    list[str] | None,
    typer.Option(
        "--result",
        metavar="RESULT",
        help="Only this outcome, such as Win.",
        autocompletion=beginning_with(SETTLEMENT_RESULTS.values()),
    ),
]
Resettled = Annotated[bool, typer.Option("--resettled", help="Only bets with a settlementVersion above 1.")]
InGap = Annotated[
    bool, typer.Option("--gap", help="Only bets with a settlementTime inside a declared gap of the feed.")
]
_FORMAT = typer.Option(
    "--format", "-f", help="A table by default on a terminal, otherwise json: one object per line."
)
Format = Annotated[Literal["table", "json", "csv"] | None, _FORMAT]
FileFormat = Annotated[Literal["table", "json", "csv", "avro", "parquet"] | None, _FORMAT]
AsJson = Annotated[bool, typer.Option("--json", help="The same as --format json.")]
Language = Annotated[
    str | None,
    typer.Option(
        "--names",
        metavar="LANGUAGE",
        help="Add the names of what was bet on, in this language, such as en.",
        callback=in_utf_8,
    ),
]


def tail(
    config: Config = None,
    from_beginning: Annotated[
        bool, typer.Option("--from-beginning", help="Start at the oldest record.")
    ] = False,
    count: Annotated[
        int, typer.Option("--count", "-n", min=0, help="Stop after this many bets; 0 for no limit.")
    ] = 0,
    until_end: Annotated[
        bool,
        typer.Option("--until-end", help="Stop at the current end of the topic; use with --from-beginning."),
    ] = False,
    bet: Bets = None,
    sport: Sports = None,
    league: Leagues = None,
    currency: Currencies = None,
    result: Results = None,
    resettled: Resettled = False,
    gap: InGap = False,
    format_: Format = None,
    names: Language = None,
    json: AsJson = False,
) -> None:
    """Print settled bets as they become visible to a read_committed consumer.

    Different filters combine with AND, repeated values of one filter with OR. Money is decimal in every
    format.
    """
    from itertools import islice

    from bridge.reader import BETS, read

    settings = load(config)
    selection = _selection(settings, bet, sport, league, currency, result, resettled, gap)
    found = read(
        BETS,
        from_="start" if from_beginning else "end",
        follow=not until_end,
        settings=settings,
    )
    if not until_end and sys.stderr.isatty():
        print_note(f"waiting for bets in {settings.topics.prefix}.{BETS.name}, until Ctrl-C")
    with _names(settings, names) as of:
        _print(islice(filter(selection.wants, found), count or None), _format(format_, json), of)


def replay(
    config: Config = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="TIME", help="Start of the interval; the oldest record by default."),
    ] = None,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="End of the interval, exclusive; now by default."),
    ] = None,
    bet: Bets = None,
    sport: Sports = None,
    league: Leagues = None,
    currency: Currencies = None,
    result: Results = None,
    resettled: Resettled = False,
    gap: InGap = False,
    everywhere: Annotated[
        bool,
        typer.Option(
            "--all-partitions",
            help="With --bet: search all partitions. Needed if partitions were added to the topic.",
        ),
    ] = False,
    format_: FileFormat = None,
    names: Language = None,
    json: AsJson = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write to a file, in the format of its suffix; repeat the command if it was interrupted.",
        ),
    ] = None,
    flat: Annotated[
        bool, typer.Option("--flat", help="With --output of Parquet: a row an item, instead of a row a bet.")
    ] = False,
    partition: Annotated[
        Literal["hour", "day"] | None,
        typer.Option(
            "--partition",
            help="With --output DIRECTORY, --from and --format: a file an hour or a day (UTC) of receipt, "
            "once that is over. Repeat the command to add those since.",
        ),
    ] = None,
    topic: Annotated[
        Literal["bets", "translations", "currencies", "gaps", "snapshots"],
        typer.Option("--topic", help="Of another topic than bets: all it has, as json, avro or parquet."),
    ] = "bets",
    to_topic: Annotated[
        str | None,
        typer.Option(
            "--to-topic",
            metavar="TOPIC",
            help="Copy the records to a topic, each once; repeat the command if it was interrupted.",
            callback=in_utf_8,
        ),
    ] = None,
    create: Annotated[
        bool,
        typer.Option(
            "--create", help="With --to-topic: create the topic if it is missing, like that of the bets."
        ),
    ] = False,
) -> None:
    """Print settled bets received between two times, in order of receipt.

    A TIME is a date-time with its zone, such as 2026-01-31T12:00:00Z, or an age: 2h is two hours ago.
    Ages count back from now, so 5m is before 2m. A redriven dead letter counts by the time of its redrive.
    Finds every version of a bet that the topic still has.
    Different filters combine with AND, repeated values of one filter with OR. Money is decimal in every
    format.
    """
    if topic != "bets":
        others = (from_, to, bet, sport, league, currency, result, resettled, gap, everywhere, names, flat)
        is_alone = not any((*others, partition, to_topic, create))
        _export_other(config, topic, "json" if json else format_, output, is_alone=is_alone)
        return
    from bridge import clock
    from bridge.inspection.export import parts
    from bridge.inspection.replay import Replay, identity, parse_window

    _check_target(output, to_topic, is_formatted=bool(format_ or names or json), create=create)
    _check_flat(flat, _format(format_, json, output) if output else None)
    if partition and None in (output, from_, format_ or json or None):
        raise SettingsError("--partition needs --output DIRECTORY, --from and --format")
    window = parse_window(from_, to, clock.now().wall)
    form = _format(format_, json, output)
    settings = load(config)
    selection = _selection(settings, bet, sport, league, currency, result, resettled, gap, everywhere)
    wanted: dict[str, Any] = {
        "from": from_,
        "to": to,
        "bet": bet,
        "sport": sport,
        "league": league,
        "currency": currency,
        "result": result,
        "resettled": resettled,
        "gap": gap and [(found.start, found.end) for found in selection.gaps or ()],
        "everywhere": everywhere,
        "names": names,
        "flat": flat,
    }
    if to_topic or output:
        wanted |= identity(settings)
    if to_topic:
        _copy(settings, to_topic, wanted, window, selection, create)
        return
    if output is None:
        with (
            Replay(settings, window, selection) as found,
            _names(settings, names) as of,
        ):
            count = _print(found, form, of)
        if not count:
            _say_nothing(selection)
        return
    whole: Iterable[tuple[Path, Window]] = [(output, window)]
    if partition is not None:
        whole = parts(settings, output, form, window, partition, clock.now().wall)
    count = 0
    with _names(settings, names) as of:
        for file, part in whole:
            interval = {} if partition is None else {"from": part.begin, "to": part.end}
            count += _export(settings, file, form, wanted | interval, part, selection, of, flat=flat)
    if not count:
        _say_nothing(selection)


def explain(
    bet: Annotated[str, typer.Argument(metavar="BET", help="The betId.")],
    config: Config = None,
    names: Annotated[
        str | None,
        typer.Option("--names", metavar="LANGUAGE", help="Language of the names; en by default."),
    ] = None,
    json: Json = False,
) -> None:
    """Show everything the topics know about one bet, in the order in which it happened.

    Each version and correction with what changed, when it was received and committed, and its offset; dead
    letters and samples that mention the bet; gaps and hand-overs within an hour. Exit 1 if nothing does.
    """
    from bridge.inspection.explain import as_data, as_lines
    from bridge.inspection.explain import explain as explained

    if not bet:
        raise SettingsError("BET is empty: give a betId, as `bridge replay --json` prints it")
    found = explained(load(config), bet, names)
    if found.lacking:
        print_note(found.lacking)
    show(as_data(found), as_lines(found), json=json)
    if not found.found:
        raise BridgeError(f"no record or dead letter mentions the bet {bet}. Is the id complete?")


def _check_target(output: Path | None, to_topic: str | None, *, is_formatted: bool, create: bool) -> None:
    """Raise SettingsError unless a replay has one target, with the options that it takes."""
    if output is not None and to_topic is not None:
        raise SettingsError("--output and --to-topic: choose one")
    if to_topic == "":
        raise SettingsError("--to-topic is empty: give the full name of a topic, with its prefix")
    if to_topic and is_formatted:
        raise SettingsError("--to-topic copies records as they are: leave out --format, --json and --names")
    if create and not to_topic:
        raise SettingsError("--create is for --to-topic: name the topic")


def _check_flat(flat: bool, form: Form | None) -> None:
    if flat and form != "parquet":
        raise SettingsError("--flat is for Parquet: use --output FILE.parquet")


def _export_other(
    config: Path | None, topic: Any, form: Form | None, output: Path | None, *, is_alone: bool
) -> None:
    from bridge.inspection.other_topics import export_topic

    if not is_alone:
        raise SettingsError(f"--topic {topic} takes only --format, --json and --output")
    form = "json" if form is None and output is None else _format(form, json=False, output=output)
    if form not in ("json", "avro", "parquet"):
        raise SettingsError(f"--topic {topic}: the format is json, avro or parquet")
    count = export_topic(load(config), topic, form, output, sys.stdout.buffer)
    if output is not None:
        print_note(f"{plural(count, 'record')} in {output}")


def _export(
    settings: Settings,
    output: Path,
    form: Form,
    wanted: dict[str, Any],
    window: Window,
    selection: Selection,
    names: NamesOf,
    *,
    flat: bool,
) -> int:
    """Write a file; return the number of bets in it."""
    from bridge.inspection.export import Export
    from bridge.inspection.replay import Replay, Window

    gc.set_threshold(20_000)  # by default all messages held are walked whenever there are 700 objects more
    with closing(Export(output, form, wanted, names, flat=flat)) as export:
        if export.offsets is None:
            export.window = window.begin, window.end
        else:
            print_note(f"resuming after {export.bets:,} bets")
        of, ends = Window(*export.window), export.ends
        found = Replay(settings, of, selection, offsets=export.offsets, ends=ends, strict=True)
        with found, _resumable(found):
            export.run(found)
    print_note(f"{plural(export.bets, 'bet')} in {output}")
    if export.converted:
        print_note(f"converted to this version of the schema: {plural(export.converted, 'bet')}")
    return export.bets


def _copy(
    settings: Settings,
    target: str,
    wanted: dict[str, Any],
    window: Window,
    selection: Selection,
    create: bool,
) -> None:
    from bridge.inspection.copying import TopicCopy
    from bridge.inspection.replay import Replay

    with closing(TopicCopy(settings, target, wanted, window, create=create)) as copy:
        if copy.offsets is not None:
            print_note("resuming after the records already copied")
        found = Replay(settings, copy.window, selection, offsets=copy.offsets, strict=True)
        with found, _resumable(found):
            copy.run(found)
    print_note(f"{plural(copy.copied, 'bet')} copied to {target}")
    if not copy.copied and copy.offsets is None:
        _say_nothing(selection)


def _selection(
    settings: Settings,
    bets: list[str] | None,
    sports: list[int] | None,
    leagues: list[int] | None,
    currencies: list[str] | None,
    results: list[str] | None,
    resettled: bool,
    gap: bool,
    everywhere: bool = False,
) -> Selection:
    from bridge.inspection.gaps import read_gaps
    from bridge.inspection.selection import Selection

    if everywhere and not bets:
        raise SettingsError("--all-partitions is for --bet: without it, all partitions are read anyway")
    gaps = None
    if gap:
        gaps = [found for found in read_gaps(settings, None) if found.feed == settings.feed.name]
        if not gaps:
            print_note(f"no gap of the feed {settings.feed.name} has been declared: no bet lies in one")
            raise typer.Exit
    return Selection(
        bets=frozenset(bets or ()),
        everywhere=everywhere,
        sports=frozenset(sports or ()),
        leagues=frozenset(leagues or ()),
        currencies=frozenset(currencies or ()),
        results=frozenset(results or ()),
        resettled=resettled,
        gaps=gaps,
    )


def _format(format_: Form | None, json: bool, output: Path | None = None) -> Form:
    """Return the format of the options, of a file's name, or of where stdout goes."""
    if json:
        if format_ not in (None, "json"):
            raise SettingsError(f"--json and --format {format_}: choose one")
        return "json"
    if output is None:
        if format_ in ("avro", "parquet"):
            raise SettingsError(f"--format {format_} needs a file: use `bridge replay --output FILE`")
        return format_ or ("table" if sys.stdout.isatty() else "json")
    suffixes: dict[str, Form] = {
        ".json": "json",
        ".jsonl": "json",
        ".csv": "csv",
        ".avro": "avro",
        ".parquet": "parquet",
    }
    if (found := format_ or suffixes.get(output.suffix)) is None:
        raise SettingsError(
            f"--output {output}: no format has this suffix; use {', '.join(suffixes)}, or add --format"
        )
    if found == "table":
        raise SettingsError("--format table is for a terminal: a file is json, csv, avro or parquet")
    return found


@contextmanager
def _names(settings: Settings, language: str | None) -> Iterator[NamesOf]:
    from bridge.inspection.formats import lacking
    from bridge.reader import Names

    if language is None:
        yield None
        return
    with Names(settings) as names:
        if missing := lacking(names, language):
            print_note(missing)
        yield lambda bet: names.of(bet, language)


def _print(bets: Iterable[Bet], form: Form, names: NamesOf) -> int:
    """Print bets on stdout; return how many."""
    from bridge.inspection.formats import HEAD, as_line, as_text, csv_writer, fitting, json_writer

    count = 0
    if form == "table":
        typer.echo(HEAD)
        for count, bet in enumerate(bets, 1):  # noqa: B007
            width = shutil.get_terminal_size().columns
            print_text(as_line(bet, width))
            for item in names(bet) if names else ():
                print_text(fitting(f"  {as_text(item) or 'no names'}", width))
        return count
    out = sys.stdout.buffer
    write = json_writer(out, names) if form == "json" else csv_writer(out, names)
    for count, bet in enumerate(bets, 1):  # noqa: B007
        write(bet)
        out.flush()
    return count


def _say_nothing(selection: Selection) -> None:
    """Say that nothing was found. Raises BridgeError where bets were asked for by their ids alone."""
    if not (selection.bets and selection.is_by_key):
        print_note("nothing found")
        return
    where = "" if selection.everywhere else " in the partition of its key; --all-partitions searches all"
    raise BridgeError(f"nothing found{where}. Is the id complete?")


@contextmanager
def _resumable(replay: Replay) -> Iterator[None]:
    """Show how far a replay is. Ctrl-C ends it once that is saved, a second one at once."""
    from bridge import clock

    before = signal.getsignal(signal.SIGINT)

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, before)
        replay.interrupt()

    replay.on_progress = progress(clock.now)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, interrupt)
    try:
        with interruptible("interrupted: repeat the command to resume"):
            yield
    finally:
        signal.signal(signal.SIGINT, before)
