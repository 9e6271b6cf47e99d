"""A batch as a process: one that works is asked to stop, and one that does not is begun again with its own words."""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Lock, Thread

import msgspec

from treadle.app.errors.error_report import sentences_of
from treadle.app.hosting.descriptor_lines import write_whole
from treadle.app.reports.known_batches import find_batch, is_folder_anothers
from treadle.present.batch_progress import BatchProgress
from treadle.store.leases import is_alive, number_here

_STOPS_WITHIN, _BEGINS_WITHIN = 15.0, 120.0
"""Seconds in which a batch says that it stops, and in which another one works."""

_LOOKS = 0.1
_MOST_SAID = 2_000
_LOG, _RESULTS = "batch.log", "results.jsonl"
"""The files in the folder of a batch with what one prints that was begun here, and with how its tasks ended."""

ADDED_TASKS = "added.jsonl"
"""The file in the folder of a batch with the tasks that were added to it: JSON lines, as in its file of tasks."""

LONGEST_TASK_NAME = 128
TASK_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_TASK_NAME - 1}}}")
"""What a task may be called, and in how many characters: names are those of files."""

_ADDED_NAME = "added-{}"
_HEARS_WITHIN = 30.0
"""Seconds in which a batch that works reads a task that was added."""

_TOLD = Lock()
"""A second signal kills the workers: nobody sends one before the batch has said that it heard the first."""

_ADDS = Lock()
"""Of two tasks that are added to a batch that does not work the first one begins it, and the second one is heard."""

_BEGINS = Lock()
"""What is begun twice would do twice what failed: a batch that waits for the other one goes on after it."""


class _Named(msgspec.Struct):
    id: str


def stop_batch(run: str, *, at_once: bool) -> str:
    """Let a batch hand its tasks back; `at_once` kills the workers of one that does so. Gives why not, empty if so."""
    with _TOLD:
        found = find_batch(run)
        if found is None or not found[1]:
            return "This batch does not work now."
        one = found[0]
        if one.stopping is not at_once:
            return (
                "It is stopping already."
                if one.stopping
                else "Pause it first, so that its workers hand their tasks back."
            )
        if not _signal(one.process):
            return "Its process cannot be reached from here."
        end = time.monotonic() + _STOPS_WITHIN
        while not at_once and time.monotonic() < end:
            found = find_batch(run)
            if found is None or not found[1] or found[0].stopping:
                break
            time.sleep(_LOOKS)
    return ""


def begin_again(run: str, *, retry: Sequence[str] = (), more: Sequence[str] = ()) -> str:
    """Go on with a batch, do what ended as `retry` says again, with `more` options; gives why it did not begin.

    It works in a process of its own, which goes on when this one ends. Returns once it works, or has ended.
    """
    if not _BEGINS.acquire(blocking=False):
        return "A batch is being begun now. Try again when it works."
    try:
        found = find_batch(run)
        if found is None or found[1] or not found[0].command:
            return "This batch cannot be begun from here now."
        return _begin(found[0], (*(f"--retry={kind}" for kind in retry), *more))
    finally:
        _BEGINS.release()


def add_task(run: str, task: Mapping[str, str]) -> str:
    """Add a task to a batch, and begin the batch again where it does not work; gives why not, empty if so.

    `task` has the fields of a line: without an `id` it gets one of its own.
    """
    with _ADDS:
        return _added(run, task)


def _added(run: str, task: Mapping[str, str]) -> str:
    found = find_batch(run)
    if found is None or not found[0].command:
        return "Tasks cannot be added to this batch from here."
    if found[0].stopping and found[1]:
        return "It is stopping. Add the task when it is paused."
    name = task.get("id", "")
    if name and not TASK_NAME.fullmatch(name):
        return f"A name has 1 to {LONGEST_TASK_NAME} letters, digits, “.”, “_” or “-”, the first a letter or digit."
    try:
        line = _append(found[0], task)
    except OSError as error:
        return f"The task cannot be added: {error.strerror or error}."
    if line is None:
        return f"Another task of this batch has the name {name!r}. Choose another one."
    heard = _heard(run, line)
    if heard is None or heard.heard < line:  # it ended before it had read the task
        if trouble := begin_again(run):
            return f"The task is added, and waits until the batch continues. {trouble}"
        heard = _heard(run, line)
    if heard is None or heard.heard < line:
        return "The task is added. The batch has not read it yet."
    return heard.refused.get(line, "")


def _heard(run: str, line: int) -> BatchProgress | None:
    """Give a batch once it has read a line of the added tasks, or works no more."""
    until = time.monotonic() + _HEARS_WITHIN
    found = find_batch(run)
    while found is not None and found[1] and found[0].heard < line and time.monotonic() < until:
        time.sleep(_LOOKS)
        found = find_batch(run)
    return None if found is None else found[0]


def _append(one: BatchProgress, task: Mapping[str, str]) -> int | None:
    """Write a line; gives its number, or nothing where its name is taken: such a line would stay and be named."""
    with open(Path(one.folder) / ADDED_TASKS, "a+b", buffering=0, opener=_no_link) as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        before = stream.read()
        number = before.count(b"\n") + 1
        broken = b"\n" if before and not before.endswith(b"\n") else b""  # it was written by hand
        number += len(broken)
        taken = one.taken | set(_names_in(before.split(b"\n")[one.heard :]))
        free = next(name for name in map(_ADDED_NAME.format, count(number)) if name not in taken)
        named = {"id": free, **task}
        if named["id"].lower() in taken:
            return None
        write_whole(stream.fileno(), broken + msgspec.json.encode(named) + b"\n")
        os.fsync(stream.fileno())
    return number


def _names_in(lines: Iterable[bytes]) -> Iterator[str]:
    """Name the tasks of lines that the batch has not read yet, in small letters."""
    for line in lines:
        with suppress(msgspec.MsgspecError):
            yield msgspec.json.decode(line, type=_Named).id.lower()


def _begin(one: BatchProgress, more: Sequence[str]) -> str:
    words = list(_lasting(one.command))
    end = words.index("--") if "--" in words else len(words)  # behind it nothing is an option
    words[end:end] = more
    log = Path(one.folder) / _LOG
    try:
        with open(log, "wb", opener=_no_link) as stream:
            process = subprocess.Popen(
                (sys.executable, "-P", "-m", "treadle", "batch", *words),
                cwd=one.began_in,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        return f"The batch cannot be begun: {error.strerror or error}."
    Thread(target=process.wait, daemon=True).start()  # else it would stay in the list of processes
    until = time.monotonic() + _BEGINS_WITHIN
    while time.monotonic() < until:
        ended = process.poll() is not None
        now = find_batch(one.run)
        if now is not None and number_here(now[0].process) == process.pid:
            return ""
        if ended:
            return _end_of(log) or f"It ended with {process.returncode}."
        time.sleep(_LOOKS)
    return f"It has not begun to work yet: see {log}."


def has_results(one: BatchProgress) -> bool:
    """Whether its folder is there, is still that of this batch, and has how its tasks ended."""
    file = _results_of(one)
    return not is_folder_anothers(one) and file.is_file() and not file.is_symlink()


def batch_results(run: str) -> bytes | None:
    """Read how the tasks of a batch ended, a JSON object in each line; None where there are none."""
    found = find_batch(run)
    if found is None or not has_results(found[0]):
        return None
    try:
        with open(_results_of(found[0]), "rb", opener=_no_link) as stream:
            return stream.read()
    except OSError:
        return None


def _results_of(one: BatchProgress) -> Path:
    return Path(one.folder) / _RESULTS


def _end_of(log: Path) -> str:
    with suppress(OSError), open(log, "rb", opener=_no_link) as stream:
        stream.seek(max(0, log.stat().st_size - _MOST_SAID))
        return sentences_of(stream.read().decode(errors="replace"))
    return ""


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def _lasting(words: Sequence[str]) -> Iterator[str]:
    """Leave out what was said for one time alone: which tasks are done again."""
    given = iter(words)
    for word in given:
        if word == "--retry":
            next(given, "")
        elif word != "--redo" and not word.startswith("--retry="):
            yield word


def _signal(owner: str) -> bool:
    """Send SIGTERM to a process of this computer; another one that has its number by now is none."""
    number = number_here(owner)
    if number is None or number == os.getpid():
        return False
    with suppress(OSError):
        if not hasattr(os, "pidfd_open"):
            os.kill(number, signal.SIGTERM)
            return True
        descriptor = os.pidfd_open(number)
        try:
            if is_alive(owner, time.time()):  # asked once it is held
                signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                return True
        finally:
            os.close(descriptor)
    return False
