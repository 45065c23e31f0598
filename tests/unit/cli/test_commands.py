"""Every command has help, JSON or a reason, completion, and one line for a wrong input.

`COMMANDS` has an entry for each command of the application: a new one without an entry fails.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from bridge.avro import evolution
from bridge.cli import app, schemas_check
from bridge.config.api import KINDS
from bridge.messages.model import SETTLEMENT_RESULTS
from tests.processes import Forked, as_from_a_terminal

WAIT_SECONDS = 60.0
ROOT = Path(__file__).parents[3]


class Command(NamedTuple):
    """What is expected of a command."""

    wrong: Mapping[str, str]
    """Wrong arguments, in one text → what the error says: the option, and what it should be."""
    without_json: str = ""
    """Why it has no `--json`."""


NUMBER = "Input should be a valid integer"
AGE = "is not an age such as 90s, 30m, 2h, 3d or 1h30m"
NO_FILE = {"--config nowhere.toml": "there is no settings file nowhere.toml; `bridge init` begins one"}
TIME = "is not a time: give one with its zone such as 2026-01-31T12:00:00Z, or an age such as 2h"
NO_BET = "--bet is empty: give a betId"
FILTERS = {
    "--sport abc": f"'--sport': {NUMBER}",
    "--league 1.5": f"'--league': {NUMBER}",
    "--result Draw": "--result Draw: not a result of a bet; there are None, Win, Lose",
    "--format xml": "'--format' / '-f': 'xml' is not one of 'table', 'json', 'csv'",
    "--json --format csv": "--json and --format csv: choose one",
    "--bet=": NO_BET,
}
LETTERS = {
    "--from yesterdayish": f"--from: 'yesterdayish' {TIME}",
    "--to never": f"--to: 'never' {TIME}",
    "--from 1h --to 2h": "--from 1h is not before --to 2h",
    "--bet=": NO_BET,
}
JOB = {
    **NO_FILE,
    "--every soon": f"--every: 'soon' {AGE}",
    "--every 0s": "--every must be between 1s and 366d",
    "--every 1h --json": "--every serves metrics over HTTP: it excludes --plan, --json",
    "--metrics-file /no/dir/file": "--metrics-file: cannot write /no/dir/file: No such file or directory",
}
FILE_AS_DIRECTORY = {"--data a-file": "a-file cannot be created: File exists. Name another directory"}
OWN = "--provider http://p --bootstrap-servers k --registry http://r"
COMMANDS = {
    "run": Command(
        {
            **NO_FILE,
            "--config .": "the settings file . cannot be read: Is a directory",
            "--quiet": "No such option",
        },
        without_json="prints no result; its log is JSON unless stderr is a terminal",
    ),
    "init": Command(
        {
            "": "--provider, --bootstrap-servers, --registry must be given: there is no terminal to ask on",
            "--config a-file": "a-file is there already: --force overwrites it",
            f"{OWN} --token-file nowhere": "--token-file is not a file: write it first",
            f"{OWN} --registry http://me:secret@r": "--registry has a user or password: leave it out",
            f"{OWN} --registry r": "--registry is not an address such as",
            f"{OWN} --security SASL_SSL --username me": "kafka.sasl_password (BRIDGE_KAFKA__SASL_PASSW",
        },
        without_json="what it writes is the result",
    ),
    "translations": Command(
        {
            **JOB,
            "--event abc": f"'--event': {NUMBER}",
            "--event 0": "'--event': Input should be greater than or equal to 1",
            "--kind team": "--kind team is not one of sport, region",
            "--language xx": "--language xx is not one of api.languages (en). Add it there",
        }
    ),
    "currencies": Command(JOB),
    "tail": Command({**NO_FILE, **FILTERS, "--count=-1": "'--count' / '-n': Input should be greater"}),
    "replay": Command(
        {
            **NO_FILE,
            **FILTERS,
            "--format parquet": "--format parquet needs a file: use `bridge replay --output FILE`",
            "--from yesterdayish": f"--from: 'yesterdayish' {TIME}",
            "--from 1h --to 2h": "--from 1h is not before --to 2h",
            "--output bets.xml": "--output bets.xml: no format has this suffix; use .json",
            "--output bets --format table": "--format table is for a terminal: a file is json, csv, avro or",
            "--output a.csv --to-topic b": "--output and --to-topic: choose one",
            "--to-topic=": "--to-topic is empty: give the full name",
            "--to-topic b --json": "--to-topic copies records as they are: leave out --format, --json",
        }
    ),
    "explain": Command({"": "Missing argument 'BET'", " ": "BET is empty: give"}),
    "limits": Command(
        {
            **NO_FILE,
            "--at yesterdayish": "--at: 'yesterdayish' is not a time: give one with its zone",
            "--at 2020-01-31T12:00Z": "--at 2020-01-31T12:00Z is in the past",
            "--recover long": f"--recover: 'long' {AGE}",
        }
    ),
    "gaps": Command({**NO_FILE, "--feed": "Option '--feed' requires an argument"}),
    "audit": Command({**NO_FILE, "--from yesterdayish": f"--from: 'yesterdayish' {TIME}"}),
    "doctor": Command(
        {"--config": "Option '--config' requires an argument", "all": "unexpected extra argument"}
    ),
    "demo": Command(
        {
            "--kills 3": "--kills needs --seconds",
            "--seconds 0": "'--seconds': Input should be greater than or equal to 1",
            "--odd 2": "'--odd': Input should be less than or equal to 1",
            "--kafka-port 99999": "'--kafka-port': Input should be less than or equal to 65535",
        },
        without_json="its result is JSON anyway",
    ),
    "simulate": Command(
        {
            "--config nowhere.toml": "there is no settings file nowhere.toml",
            "--history yesterday": f"--history: 'yesterday' {AGE}",
            "--rate fast": "'--rate': Input should be a valid number",
            "--limits-scale 0": "'--limits-scale': Input should be greater than or equal to 1",
            "--api-token-file /no/dir/file": "--api-token-file: cannot write /no/dir/file: No such file",
        },
        without_json="runs until it is stopped, and prints one JSON line for each connection attempt",
    ),
    "dev up": Command(
        {**FILE_AS_DIRECTORY, "--brokers 0": "'--brokers': Input should be greater than or equal to 1"}
    ),
    "dev down": Command({"--data": "requires an argument"}, without_json="its exit code says all"),
    "dev status": Command({"--data": "Option '--data' requires an argument"}),
    "topics plan": Command(NO_FILE),
    "topics apply": Command(NO_FILE),
    "schemas check": Command({"bets": "unexpected extra argument(s) (bets)"}),
    "schemas register": Command(NO_FILE),
    "checkpoint show": Command(NO_FILE),
    "checkpoint set": Command(
        {
            "": "Missing option '--revision'",
            "--revision yesterdayish": f"--revision: 'yesterdayish' {TIME}",
            "--revision 1h --config nowhere.toml": "there is no settings file nowhere.toml",
        }
    ),
    "checkpoint reset": Command({**NO_FILE, "--yes": "feed.start (BRIDGE_FEED__START) is 0"}),
    "checkpoint retire": Command(
        {
            "": "Missing argument 'FEED'",
            "an-old-feed": "this ends a feed: give --yes",
            "settlement-v4 --yes": "settlement-v4 is feed.name itself: set feed.name (BRIDGE_FEED__NAME)",
            "an-old-feed --yes --config nowhere.toml": "there is no settings file nowhere.toml",
        }
    ),
    "deadletters list": Command({**NO_FILE, **LETTERS}),
    "deadletters show": Command(
        {"": "Missing argument 'KEY'", " ": "KEY is empty: give a key or its beginning"}
    ),
    "deadletters export": Command(
        {
            **NO_FILE,
            **LETTERS,
            "--dir a-file": "--dir a-file cannot be created: File exists. Name another directory",
        }
    ),
    "deadletters redrive": Command({**NO_FILE, **LETTERS}),
}


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Each command that can be run, with its words."""
    command = get_command(app) if command is None else command
    if not hasattr(command, "commands"):
        yield " ".join(path), command
        return
    for name, inner in command.commands.items():
        yield from commands(inner, (*path, name))


ALL = dict(commands())


def run(directory: Path, *arguments: str) -> tuple[int, str, str]:
    """Run a command with no setting in its environment; return its exit code, stdout and stderr."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("BRIDGE_")} | {"COLUMNS": "80"}
    out, err = directory / "out", directory / "err"
    for file in (out, err):
        file.unlink(missing_ok=True)
    code = Forked(("bridge", *arguments), environment, out, err).wait(WAIT_SECONDS)
    return code, out.read_text(), err.read_text()


def test_each_command_has_an_entry() -> None:
    assert set(COMMANDS) == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_help_has_a_sentence_on_each_option(name: str) -> None:
    for parameter in ALL[name].params:
        text = parameter.help or ""
        assert re.match(r"[A-Z0-9].*\.$", text, re.DOTALL), f"{name} {parameter.opts}: {text!r}"


@pytest.mark.parametrize("name", ALL)
def test_a_command_prints_json_or_has_a_reason(name: str) -> None:
    has_json = any("--json" in parameter.opts for parameter in ALL[name].params)
    assert has_json == (not COMMANDS[name].without_json)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [(name, arguments) for name, command in COMMANDS.items() for arguments in command.wrong],
)
def test_a_wrong_input_is_one_line_with_the_option_and_the_fix(
    name: str, arguments: str, tmp_path: Path
) -> None:
    (tmp_path / "a-file").touch()
    words = arguments.replace("a-file", str(tmp_path / "a-file")).split() if arguments != " " else [""]
    code, out, err = run(tmp_path, *name.split(), *words)
    assert (code, out) == (2, ""), err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert COMMANDS[name].wrong[arguments] in err.replace(f"{tmp_path}/", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_disk_is_one_line_too(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "bridge", "schemas", "check", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            timeout=WAIT_SECONDS,
            check=False,
        )
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[0] == (
        "error: the output cannot be written: No space left on device. Free some space, or write elsewhere."
    )


@pytest.mark.parametrize(
    ("closed", "command", "code", "said"),
    [
        (">&-", "schemas check", 1, "error: the output cannot be written: stdout is closed\n"),
        (">&-", "checkpoint retire x", 2, "error: this ends a feed: give --yes\n"),
        ("<&-", "checkpoint retire x", 2, "error: this ends a feed: give --yes\n"),
        (">&- 2>&-", "checkpoint retire x", 2, ""),
    ],
)
def test_a_command_runs_without_a_standard_stream(
    tmp_path: Path, closed: str, command: str, code: int, said: str
) -> None:
    script = f"import os, sys; sys.argv[1:] = {command.split()}; from bridge.cli import main\ntry: main()\n"
    script += "finally: print([os.readlink(f'/proc/self/fd/{n}') for n in range(3)], file=open('fds', 'w'))"
    ran = subprocess.run(
        ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=WAIT_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (ran.returncode, ran.stderr) == (code, said)
    assert "/dev/null" in (tmp_path / "fds").read_text()


def test_ctrl_c_while_the_command_is_imported_is_no_traceback(tmp_path: Path) -> None:
    script = "import os, signal, sys\nfrom bridge.__main__ import main\n"
    script += "class Finder:\n    def find_spec(self, name, *_):\n"
    script += "        if name == 'bridge.cli': os.kill(os.getpid(), signal.SIGINT)\n"
    script += "sys.meta_path.insert(0, Finder())\nmain()"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        preexec_fn=as_from_a_terminal,  # a test in the background ignores SIGINT
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (-signal.SIGINT, "", "")


@pytest.mark.parametrize(
    "command",
    ["checkpoint retire \udcff", "checkpoint set --revision 5m --reason \udcff", "replay --currency \udcff"],
)
def test_a_text_that_is_not_utf_8_is_refused(tmp_path: Path, command: str) -> None:
    code, out, err = run(tmp_path, *command.split())
    assert (code, out) == (2, "")
    assert re.fullmatch(r"error: Invalid value for '.+': it is not UTF-8; see `.+ --help`\n", err), err
    (file := tmp_path / "\udce9.toml").touch()
    assert "UTF-8" not in run(tmp_path, *command.split()[:2], "--config", str(file))[2]


@pytest.mark.parametrize(
    ("command", "lack"),
    [
        ("simulate", "entry_points = lambda **_: []"),
        ("dev up", "entry_points = lambda **_: []"),
        ("demo", "EntryPoint.load = lambda _: __import__('gone')"),
    ],
)
def test_a_command_of_another_distribution_says_what_to_install(command: str, lack: str) -> None:
    script = f"import sys; from importlib import metadata; metadata.{lack}; from bridge.cli import main; "
    ran = subprocess.run(
        [sys.executable, "-c", f"{script}sys.argv[:] = 'bridge {command}'.split(); main()"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=WAIT_SECONDS,
        check=False,
    )
    name = command.split()[0]
    package = "settlement-bridge-sandbox" if name == "simulate" else '"settlement-bridge-sandbox[cluster]"'
    said = f"error: No such command '{name}'. Try `pip install {package}`; see `bridge --help`\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", said)


def test_a_command_that_does_not_exist_is_one_line_too(tmp_path: Path) -> None:
    for typed, command, said in (
        ("tial", "", "No such command 'tial'. Did you mean 'tail'?"),
        ("status", "", "No such command 'status'. Did you mean `bridge checkpoint show`?"),
        ("tail 5", " tail", "Got unexpected extra argument(s) (5). Did you mean `-n 5`?"),
        ("gaps 5", " gaps", "Got unexpected extra argument(s) (5)"),
    ):
        error = f"error: {said}; see `python -m bridge{command} --help`\n"
        assert run(tmp_path, *typed.split()) == (2, "", error)
    code, out, err = run(tmp_path, "deadletters")
    assert (code, err) == (2, "")
    assert "redrive" in out


@pytest.mark.parametrize(
    "words",
    ["-c {wrong} limits", "limits -c {wrong}", "-c nowhere.toml limits -c {wrong}", "-c {wrong} topics plan"],
)
def test_a_settings_file_may_be_given_in_front_of_the_command(words: str, tmp_path: Path) -> None:
    (wrong := tmp_path / "wrong.toml").write_text("colour = 1\n")
    code, _, err = run(tmp_path, *words.format(wrong=wrong).split())
    assert (code, err) == (2, f"error: colour ({wrong}) is not a setting; remove it\n")


@pytest.mark.parametrize(
    ("command", "code", "environment"),
    [
        ("--help", 0, {"PYTHONIOENCODING": "latin-1"}),
        ("doctor", 1, {"PYTHONIOENCODING": "ascii"}),
        ("doctor", 1, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_output_that_cannot_be_utf_8_is_printed_all_the_same(
    command: str, code: int, environment: Mapping[str, str], tmp_path: Path
) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bridge", command],
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (code, b"")
    assert b"\\u" in ran.stdout or "✗".encode() in ran.stdout


def test_what_is_wrong_with_the_schemas_is_json_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evolution, "check", lambda: ["settled-bet: broken"])
    with pytest.raises(Exception) as exit_:  # noqa: PT011  # Typer's Exit, whose code is compared
        schemas_check(json=True)
    assert getattr(exit_.value, "exit_code", None) == 6
    assert "settled-bet: broken" in capsys.readouterr().out


BRIDGE = """
import atexit, sys
atexit.register(lambda: print(*{"confluent_kafka", "fastavro"} & {*sys.modules}, file=sys.stderr))
sys.argv[0] = "bridge"
from bridge.cli import main
main()
"""
"""The command, which says at its end whether it has loaded what talks to Kafka."""
TOP = {name.split()[0] for name in ALL}
COMPLETIONS = {
    "": TOP,
    "de": {"demo", "deadletters", "dev"} & TOP,
    "deadletters ": {"list", "show", "export", "redrive"},
    "tail --re": {"--result", "--resettled"},
    "replay --format ": {"table", "json", "csv", "avro", "parquet"},
    "tail --format c": {"csv"},
    "replay --result ": set(SETTLEMENT_RESULTS.values()),
    "tail --result Half": {"HalfWin", "HalfLose"},
    "translations --kind ": set(KINDS),
    "checkpoint set --rev": {"--revision"},
}


def asked(shell: str, typed: str) -> dict[str, str]:
    """The environment in which a shell asks for a completion."""
    line = f"bridge {typed}"
    return {
        "_BRIDGE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }


# Each shell has its own form of an answer; one line of each kind shows it.
@pytest.mark.parametrize(
    ("shell", "typed"),
    [*product(["bash"], COMPLETIONS), *product(["zsh", "fish"], ["", "tail --re", "tail --format c"])],
)
def test_completion(
    shell: str, typed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in asked(shell, typed).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        app([], prog_name="bridge")
    out, err = capsys.readouterr()
    match shell:
        case "bash":
            found = set(out.split())
        case "zsh":
            found = set(re.findall(r'^(?:.*\(\()?"([^":]+)"', out, re.MULTILINE))
        case _:
            found = {row.split("\t")[0] for row in out.splitlines() if row}
    assert found == COMPLETIONS[typed]
    assert err.strip() == ""


def test_a_completion_loads_nothing_that_talks_to_kafka() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", BRIDGE],
        cwd=ROOT,
        env={**os.environ, **asked("bash", "translations --kind ")},
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert (set(ran.stdout.split()), ran.stderr.strip()) == (set(KINDS), "")
