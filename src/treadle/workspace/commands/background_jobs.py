"""Commands in the background, written down beside their output, so that other processes can list and end them."""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from treadle.protocol.patterns import regex
from treadle.workspace.files.owners import Owner, lives, owner_of
from treadle.workspace.files.private_file import make_private_folder

if TYPE_CHECKING:
    from treadle.workspace.commands.process import CommandProcess

_NAME = regex(r"job-(\d{1,9})\.json")
_KILLED = "Stopped when its session was killed."
_TICK = 0.02
_PATIENCE = 6.0  # seconds: a guard asks for three, and then kills


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A command that went on in the background. Times are milliseconds since 1970; `ended` says how, once it has.

    `guard` is the process above all that the command started, `owner` the Treadle that started it.
    """

    number: int
    command: str
    started_at: int
    guard: Owner
    owner: Owner
    output: str
    ended: str = ""
    ended_at: int = 0

    @property
    def runs(self) -> bool:
        """Whether something of it still runs; looks at the processes."""
        return not self.ended and lives(self.guard)

    @property
    def state(self) -> str:
        """Say how it stands; looks at the processes."""
        if self.ended:
            return self.ended
        if not lives(self.guard):
            return _KILLED
        return "Running." if lives(self.owner) else "Stopping: its session was killed."


class JobBook:
    """The jobs of one session, a file for each in the folder of its output. `redact` hides secrets in the command."""

    def __init__(self, folder: Path, redact: Callable[[str], str]) -> None:
        self._folder = folder
        self._redact = redact

    @property
    def highest(self) -> int:
        """The highest number that was given out before."""
        found = (_NAME.fullmatch(name) for name in _names(self._folder))
        return max((int(one[1]) for one in found if one), default=0)

    def note(self, number: int, command: "CommandProcess") -> None:
        """Write down a command that goes on, and once it has ended how. A full disk costs the note, not the command."""
        job = Job(
            number=number,
            command=self._redact(command.line),
            started_at=_now() - int(command.age * 1000),
            guard=owner_of(command.pid),
            owner=owner_of(os.getpid()),
            output=command.keep_output() or "",
        )
        self._write(job)

        def ended() -> None:
            self._write(msgspec.structs.replace(job, ended=command.describe(), ended_at=_now()))

        command.when_gone(ended)

    def _write(self, job: Job) -> None:
        _write_job(self._folder, job)


def _write_job(folder: Path, job: Job) -> None:
    path = folder / f"job-{job.number}.json"
    with contextlib.suppress(OSError):
        make_private_folder(folder)
        fresh = path.with_suffix(".new")
        fresh.write_bytes(msgspec.json.encode(job))
        fresh.chmod(0o600)
        fresh.replace(path)


def read_jobs(folder: Path) -> tuple[Job, ...]:
    """Read the jobs of one session, by number; what cannot be read is left out."""
    jobs = []
    for name in _names(folder):
        if _NAME.fullmatch(name):
            with contextlib.suppress(OSError, msgspec.DecodeError):
                jobs.append(msgspec.json.decode((folder / name).read_bytes(), type=Job))
    return tuple(sorted(jobs, key=lambda job: job.number))


def ran_since(folder: Path, at: int) -> bool:
    """Whether a job of a session runs now or ran after a time, in milliseconds since 1970.

    One that was killed with its session ended nobody knows when: now, and that is noted.
    """
    found = False
    for job in read_jobs(folder):
        if not job.ended and not job.runs and not lives(job.owner):
            job = msgspec.structs.replace(job, ended=_KILLED, ended_at=_now())  # noqa: PLW2901 - the same job
            _write_job(folder, job)
        found = found or not job.ended or job.ended_at >= at
    return found


def end_job(job: Job) -> bool:
    """Have the guard of a job end it, TERM and then KILL; says whether nothing of it is left. Blocks meanwhile.

    Nothing is touched when the guard's number belongs to another process by now. A guard that does not do it is killed.
    """
    if lives(job.guard):
        _send(job.guard.pid, signal.SIGUSR1)
    start = time.monotonic()
    while lives(job.guard):
        if time.monotonic() - start > _PATIENCE:
            _send(job.guard.pid, signal.SIGKILL)
            return False
        time.sleep(_TICK)
    return True


def _send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except OSError:
        return []


def _now() -> int:
    return time.time_ns() // 1_000_000
