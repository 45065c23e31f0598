"""Every command has help, JSON or a reason, completion, and one line for a wrong input."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bridge.avro import evolution
from bridge.cli import app, schemas_check
from bridge.config.api import KINDS
from bridge.messages.model import SETTLEMENT_RESULTS
from tests.processes import Forked, as_from_a_terminal
from tests.tools import ROOT, ran

WAIT_SECONDS = 60.0


ERRORS = re.findall(
    r"^\$ bridge (.*)\n(.*)\n", Path(__file__).with_name("errors.txt").read_text("utf-8"), re.MULTILINE
)
"""Command lines with something wrong in them, and what each says; TIME is one that the clock decides."""
WITHOUT_JSON = {
    "run": "prints no result; its log is JSON unless stderr is a terminal",
    "init": "what it writes is the result",
    "demo": "its result is JSON anyway",
    "simulate": "runs until it is stopped, and prints one JSON line for each connection attempt",
    "dev down": "its exit code says all",
}
"""Command → why it has no `--json`."""


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


@pytest.mark.parametrize("name", ALL)
def test_help_has_a_sentence_on_each_option(name: str) -> None:
    for parameter in ALL[name].params:
        text = parameter.help or ""
        assert re.match(r"[A-Z0-9].*\.$", text, re.DOTALL), f"{name} {parameter.opts}: {text!r}"


def test_a_command_prints_json_or_has_a_reason() -> None:
    without = {name for name in ALL if not any("--json" in parameter.opts for parameter in ALL[name].params)}
    assert without == WITHOUT_JSON.keys()


def test_each_command_has_a_wrong_input() -> None:
    assert {name for name in ALL if any(f"{line} ".startswith(f"{name} ") for line, _ in ERRORS)} == set(ALL)


@pytest.mark.parametrize(("line", "said"), ERRORS)
def test_a_wrong_input_is_one_line_with_the_option_and_the_fix(line: str, said: str, tmp_path: Path) -> None:
    (file := tmp_path / "a-file").touch()
    code, out, err = run(tmp_path, *shlex.split(line.replace("a-file", str(file))))
    err = re.sub(r"[-0-9]{10}T[0-9:]{8}\.[0-9]+Z", "TIME", err.replace(f"{tmp_path}/", ""))
    assert (code, out, err) == (2, "", f"{said}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_disk_is_one_line_too() -> None:
    with Path("/dev/full").open("w") as full:
        command = (sys.executable, "-m", "bridge", "schemas", "check", "--json")
        done = ran(*command, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == (
        "error: the output cannot be written: No space left on device. Free some space, or write elsewhere."
    )


@pytest.mark.parametrize(
    ("closed", "command", "code", "said"),
    [
        (">&-", "schemas check", 1, "error: the output cannot be written: stdout is closed\n"),
        ("<&-", "checkpoint retire x", 2, "error: this ends a feed: give --yes\n"),
        (">&- 2>&-", "checkpoint retire x", 2, ""),
    ],
)
def test_a_command_runs_without_a_standard_stream(
    tmp_path: Path, closed: str, command: str, code: int, said: str
) -> None:
    script = f"import os, sys; sys.argv[1:] = {command.split()}; from bridge.cli import main\ntry: main()\n"
    script += "finally: print([os.readlink(f'/proc/self/fd/{n}') for n in range(3)], file=open('fds', 'w'))"
    command_line = ("sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, script)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = ran(*command_line, cwd=tmp_path, stdin=subprocess.DEVNULL, env=environment)
    assert (done.returncode, done.stderr) == (code, said)
    assert "/dev/null" in (tmp_path / "fds").read_text()


def test_ctrl_c_while_the_command_is_imported_is_no_traceback() -> None:
    script = "import os, signal, sys\nfrom bridge.__main__ import main\n"
    script += "class Finder:\n    def find_spec(self, name, *_):\n"
    script += "        if name == 'bridge.cli': os.kill(os.getpid(), signal.SIGINT)\n"
    script += "sys.meta_path.insert(0, Finder())\nmain()"
    # A test in the background ignores SIGINT.
    done = ran(sys.executable, "-c", script, preexec_fn=as_from_a_terminal)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


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
    done = ran(sys.executable, "-c", f"{script}sys.argv[:] = 'bridge {command}'.split(); main()")
    name = command.split()[0]
    package = "settlement-bridge-sandbox" if name == "simulate" else '"settlement-bridge-sandbox[cluster]"'
    said = f"error: No such command '{name}'. Try `pip install {package}`; see `bridge --help`\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


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
        ("doctor", 1, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    ],
)
def test_output_that_cannot_be_utf_8_is_printed_all_the_same(
    command: str, code: int, environment: dict[str, str]
) -> None:
    done = ran(sys.executable, "-m", "bridge", command, env=os.environ | environment, text=False)
    assert (done.returncode, done.stderr) == (code, b"")
    assert b"\\u" in done.stdout or "✗".encode() in done.stdout


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
    done = ran(sys.executable, "-c", BRIDGE, env=os.environ | asked("bash", "translations --kind "))
    assert (set(done.stdout.split()), done.stderr.strip()) == (set(KINDS), "")
