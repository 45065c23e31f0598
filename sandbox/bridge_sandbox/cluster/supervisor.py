"""Runs one program and takes it along when the owner dies, even on SIGKILL of the owner.

Run as a script by its path, never imported: the interpreter then loads next to nothing, and stays small.

    supervisor.py PROGRAM ARGUMENT…

stdin   a pipe that the owner holds open. End of file: the owner is gone, so the program goes too, quickly.
        Any byte: the owner lets go, and the program runs until it is stopped.
stdout  one line, the pid of the program; then closed.
stderr  becomes the program's stdout and stderr.
SIGTERM stops the program gracefully.
"""

import ctypes
import os
import select
import signal
import sys
import time

GRACE_SECONDS = 20.0
"""From a stop that was asked for to SIGKILL."""
ORPHAN_GRACE_SECONDS = 1.0
"""The same when the owner is gone: nothing will read what is not yet on disk."""
PR_SET_PDEATHSIG = 1


def spawn(command: list[str]) -> int:
    """Start the program; on Linux the kernel kills it when this process dies in whatever way."""
    libc = ctypes.CDLL(None) if sys.platform == "linux" else None
    supervisor = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        if libc is not None:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:  # it died before prctl took effect
            os._exit(1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        os.execv(command[0], command)  # noqa: S606
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def main(command: list[str]) -> None:
    os.setsid()  # Ctrl-C in the owner's terminal is the owner's to handle
    signals, wakeup = os.pipe()
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)

    owner = os.getppid()
    pid = spawn(command)
    os.write(1, b"%d\n" % pid)
    os.close(1)

    owned, deadline = True, float("inf")
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() >= deadline:
            os.kill(pid, signal.SIGKILL)
        tick = 0.1 if deadline < float("inf") else 1.0 if owned else None
        ready, _, _ = select.select([signals, 0] if owned else [signals], [], [], tick)
        grace = float("inf")
        if signals in ready and signal.SIGTERM in os.read(signals, 64):
            grace = GRACE_SECONDS
        if 0 in ready and os.read(0, 64):
            owned = False
        # A fork of the owner may still hold the pipe open: then only the parent's pid shows its end.
        elif owned and (0 in ready or os.getppid() != owner):
            owned, grace = False, ORPHAN_GRACE_SECONDS
        if grace < float("inf"):
            deadline = min(deadline, time.monotonic() + grace)
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)  # a paused program would not see the signal


if __name__ == "__main__":
    main(sys.argv[1:])
