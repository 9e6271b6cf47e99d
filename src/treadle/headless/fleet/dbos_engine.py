"""DBOS as the engine of a fleet, in a process of its own: it has threads, and a worker forks.

A task is a workflow of five steps, of which each waits until the worker says that it is done. DBOS has no leases: work
of a worker that is dead stays until somebody says so, which `WorkerRing` does.
"""

import os
import signal
import socket
from collections.abc import Collection, Sequence
from contextlib import suppress
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any

import msgspec

from treadle.door.reports import install_command
from treadle.headless.fleet.fleet_database import FleetDatabase
from treadle.headless.fleet.fleet_engine import TASK_STEPS, EngineGoneError, TakenForDeadError, WorkerRing
from treadle.protocol.errors import ConfigError

QUEUE = "treadle"
_VERSION = "1"
"""Of the workflow: workers with another one leave each other's tasks alone."""

_POLLS = 0.25
_CHUNK = 65_536

_REPEATABLE = {"submit", "cancel", "list"}
_MOST_ENDED = 3
"""Processes in a row that end without an answer: then something is wrong that does not pass."""


class DbosEngine:
    """The engine in its process. `room` is how many tasks a worker has at once: the last one that starts says so."""

    def __init__(self, url: str, worker: str, room: int) -> None:
        from dbos import DBOS

        self._dbos = DBOS
        self._worker = worker
        self._room = room
        self._offered: SimpleQueue[str] = SimpleQueue()
        self._kept: list[str] = []
        self._done: dict[str, SimpleQueue[str]] = {}
        self._ring = WorkerRing(FleetDatabase(url), worker)
        self._joined = False
        DBOS(
            config={
                "name": "treadle",
                "system_database_url": f"{url}-dbos" if url.startswith("sqlite:") else url,
                "application_version": _VERSION,
                "executor_id": worker,
                "log_level": "CRITICAL",
                "run_migrations": True,
            }
        )

        def wait_for(name: str, step: str) -> str:
            while self._done[name].get() != step:  # one that had been done before
                pass
            return step

        def task_flow(name: str) -> None:
            """Be a task: what was finished before is not waited for again."""
            self._done[name] = SimpleQueue()
            self._offered.put(name)
            for step in TASK_STEPS:
                DBOS.run_step({"name": step}, wait_for, name, step)

        self._flow = DBOS.workflow(name="treadle_task", max_recovery_attempts=None)(task_flow)

    def _join(self) -> None:
        if not self._joined:
            self._ring.join()
            if not self._room:  # it only submits
                self._dbos.listen_queues([])
            self._dbos.launch()
            self._dbos.register_queue(
                QUEUE,
                worker_concurrency=self._room or 1,
                polling_interval_sec=_POLLS,
                on_conflict="always_update" if self._room else "never_update",
            )
            self._joined = True

    def submit(self, _run: str, names: Sequence[str]) -> None:
        """Enqueue a workflow for each."""
        from dbos import SetWorkflowID

        self._join()
        for name in names:
            with SetWorkflowID(name):
                self._dbos.enqueue_workflow(QUEUE, self._flow, name)

    def claim(self, run: str, room: int) -> str | None:
        """Give what DBOS has begun here."""
        while not self._offered.empty():
            self._kept.append(self._offered.get())
        found = next((name for name in self._kept if name.startswith(f"{run}/")), None) if room > 0 else None
        if found is not None:
            self._kept.remove(found)
        return found

    def beat(self) -> None:
        """Count on, and have workflows of the dead done by somebody else."""
        self._join()
        if dead := self._ring.beat():
            self._dbos._recover_pending_workflows(dead)  # noqa: SLF001 - what its own admin server calls
            self._ring.bury(dead)

    def finish(self, name: str, step: str) -> None:
        """Let the workflow go on."""
        if name in self._done:
            self._done[name].put(step)

    def cancel(self, names: Sequence[str]) -> None:
        """Cancel the workflows."""
        self._join()
        self._dbos.cancel_workflows(list(names))

    def list(self, run: str) -> Collection[str]:
        """Name the workflows of a run."""
        self._join()
        rows = self._dbos.list_workflows(workflow_id_prefix=f"{run}/", load_input=False, load_output=False)
        return [row.workflow_id for row in rows]

    def close(self) -> None:
        """Say that this worker is gone; what it had is taken by others."""
        if self._joined:
            self._ring.leave()


class _Asked(msgspec.Struct, frozen=True, array_like=True):
    call: str
    values: list[Any]


class _Answer(msgspec.Struct, frozen=True, array_like=True):
    value: Any = None
    dead: bool = False
    error: str = ""


class EngineProcess:
    """The six calls to an engine in a process of its own, which ends with this one.

    A process that ends is begun again as long as nothing hangs on it: before it has answered at all, and for calls
    that may be made twice. `descriptor` stays the same.
    """

    def __init__(self, url: str, worker: str, room: int) -> None:
        _require()
        self._for = url, worker, room
        ours, theirs = socket.socketpair()
        self._socket = ours
        self.descriptor = ours.fileno()
        self._begin(theirs)

    def _begin(self, theirs: socket.socket) -> None:
        self._rest = b""
        self._answered = False
        self._pid = os.fork()
        if not self._pid:
            _serve_engine(theirs, *self._for)
        theirs.close()

    def _begin_again(self) -> None:
        self._end()
        ours, theirs = socket.socketpair()
        os.dup2(ours.fileno(), self.descriptor, inheritable=False)
        ours.close()
        self._begin(theirs)

    def _end(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)

    def submit(self, run: str, names: Sequence[str]) -> None:
        """Let workers have these tasks."""
        self._ask("submit", run, list(names))

    def claim(self, run: str, room: int) -> str | None:
        """Give a task of a run."""
        name: str | None = self._ask("claim", run, room)
        return name

    def beat(self) -> None:
        """Say that this worker lives."""
        self._ask("beat")

    def finish(self, name: str, step: str) -> None:
        """Note that a step is done."""
        self._ask("finish", name, step)

    def cancel(self, names: Sequence[str]) -> None:
        """Let nobody begin these any more."""
        self._ask("cancel", list(names))

    def list(self, run: str) -> Collection[str]:
        """Name the tasks of a run."""
        found: Collection[str] = self._ask("list", run)
        return found

    def close(self) -> None:
        """End the process."""
        with suppress(ConfigError, OSError):
            self._answer(_Asked("close", []))
        self._socket.close()
        self._end()

    def _ask(self, call: str, *values: object) -> Any:
        asked, ended = _Asked(call, list(values)), 0
        while True:
            try:
                return self._answer(asked)
            except OSError as error:
                if self._answered and call not in _REPEATABLE:
                    raise EngineGoneError from error
                if (ended := ended + 1) >= _MOST_ENDED:
                    raise _engine_failed(f"its process ended {ended} times before it answered") from error
                self._begin_again()

    def _answer(self, asked: _Asked) -> Any:
        """Give what the process answers; raises `OSError` where it has ended."""
        self._socket.sendall(msgspec.json.encode(asked) + b"\n")
        while b"\n" not in self._rest:
            if not (data := self._socket.recv(_CHUNK)):
                raise ConnectionError("it ended")
            self._rest += data
        self._answered = True
        line, _, self._rest = self._rest.partition(b"\n")
        answer = msgspec.json.decode(line, type=_Answer)
        if answer.dead:
            raise TakenForDeadError
        if answer.error:
            raise _engine_failed(answer.error)
        return answer.value


def _require() -> None:
    if find_spec("dbos") is None:
        raise ConfigError(
            "fleet-missing",
            "DBOS, which --engine names, is not installed.",
            why="It comes with the extra `fleet` of Treadle.",
            fix=f"{install_command('fleet')}, or start without --engine.",
        )


def _engine_failed(why: str) -> ConfigError:
    return ConfigError(
        "fleet-engine",
        "The engine of the fleet has failed.",
        why=f"{why}.",
        fix="Start the same command again: nothing that was finished is lost.",
    )


def _serve_engine(theirs: socket.socket, url: str, worker: str, room: int) -> None:
    """Answer until the worker is gone, then end at once: threads of DBOS may be waiting."""
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.closerange(3, theirs.fileno())
        os.closerange(theirs.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
        rest, engine = b"", None
        while data := theirs.recv(_CHUNK):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                asked = msgspec.json.decode(line, type=_Asked)
                try:
                    engine = engine or DbosEngine(url, worker, room)
                    answer = _Answer(value=getattr(engine, asked.call)(*asked.values))
                except TakenForDeadError:
                    answer = _Answer(dead=True)
                except Exception as error:  # noqa: BLE001 - foreign code; the worker ends with its words
                    answer = _Answer(error=f"{type(error).__name__}: {error}")
                theirs.sendall(msgspec.json.encode(answer) + b"\n")
    finally:
        os._exit(0)
