"""What wakes a session: lines of commands in the background, their end, and timers. All of it is bounded.

Nothing here looks again and again: output, the end of a command and the clock of the event loop call.
"""

import asyncio
import contextlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

from msgspec import Struct

from treadle.protocol.errors import ToolError
from treadle.protocol.patterns import regex
from treadle.workspace.commands.process import CommandProcess
from treadle.workspace.commands.watch_records import ENDED_FILE, Armed, read_armed, write_armed
from treadle.workspace.files.owners import owner_of
from treadle.workspace.files.text import visible

MOST_ARMED = 16
MOST_WOKEN = 20
"""Times that a session is woken without a word of a person; then everything that would is ended."""

_BATCH = 1.0
_PER_MINUTE = 10
_MINUTE = 60.0
_LINES, _LINE, _MATCHED = 50, 500, 250
_SEARCHED = 0.02
"""Seconds that are searched for each batch: everything else waits meanwhile."""

_LONGEST_PATTERN = 200
_REPEATS = 2
_ESCAPED = regex(r"\\.|\[(?:\\.|[^\]\\])+\]")
_BACK = regex(r"\\[1-9]|\(\?P=|\(\?\(")
_REPEAT = regex(r"[*+{]")
_TICKS = regex(r"`{3,}")
_REPEATED_GROUP = regex(r"\)\s*[*+{]")


class Woken(Struct, frozen=True, kw_only=True):
    """What the model is sent: `kind` is `monitor` or `timer`."""

    kind: str
    id: str
    text: str


class _Monitor:
    """The lines of one command that match, as they come."""

    def __init__(self, armed: Armed, command: CommandProcess, pattern: re.Pattern[str]) -> None:
        self.armed = armed
        self.command = command
        self.lines: list[str] = []
        self.left_out = 0
        self.ended = ""
        self._pattern = pattern
        self._spent = 0.0
        self._unfinished = ""

    def feed(self, text: str) -> None:
        """Take output."""
        *lines, rest = (self._unfinished + text).split("\n")
        self._unfinished = rest[:_LINE]
        for line in lines:
            self._take(line)

    def _take(self, line: str) -> None:
        began = time.perf_counter()
        if self._spent > _SEARCHED:
            self.left_out += 1
            return
        found = self._pattern.search(line[:_MATCHED])
        self._spent += time.perf_counter() - began
        if found and len(self.lines) >= _LINES:
            self.left_out += 1
        elif found:
            self.lines.append(visible(line[:_LINE].rstrip("\r")))

    def end(self) -> None:
        """Take the end of the command, and what it printed last without ending its line."""
        if self._unfinished:
            self._take(self._unfinished)
            self._unfinished = ""
        self.ended = self.command.describe()

    def take(self) -> str:
        """Give what there is to say, and forget it."""
        name = f"Command {self.armed.number}"
        parts = []
        if self.lines:
            # Nothing in the lines can end the fence around them.
            fence = "`" * (1 + max(map(len, _TICKS.findall("\n".join(self.lines))), default=2))
            parts = [f"{name} printed lines that match `{self.armed.text}`:", fence, *self.lines, fence]
        if self.left_out:
            parts.append(f"[{self.left_out:,} more lines came too fast and are not shown]")
        if self.ended:
            parts.append(f"{name} has ended. {self.ended}")
        self.lines, self.left_out, self._spent = [], 0, 0.0
        return "\n".join(parts)


class _Timer(Struct, frozen=True):
    armed: Armed
    handle: asyncio.TimerHandle
    seconds: float


class Watchers:
    """What wakes one session. `wake` is called with each thing to say; `file` lists what is armed for other processes.

    A thing that is gone from the file does not wake any more. `spent` is called when the session was woken so often
    that everything was ended.
    """

    def __init__(
        self,
        wake: Callable[[Woken], None],
        spent: Callable[[], None],
        file: Path,
        *,
        stays: Callable[[], bool] = lambda: True,
    ) -> None:
        """`stays` says whether the session stays open when a turn has ended."""
        self.stays = stays
        self._wake = wake
        self._spent = spent
        self._file = file
        self._owner = owner_of(os.getpid())
        self._monitors: dict[int, _Monitor] = {}
        self._timers: dict[str, _Timer] = {}
        self._up: list[_Timer] = []
        self._flush: asyncio.TimerHandle | None = None
        self._woken: deque[float] = deque(maxlen=_PER_MINUTE)
        self._count = 0
        self._next = 1
        self._held = False
        self._kept = False
        self._tasks: set[asyncio.Task[None]] = set()

    def armed(self) -> tuple[Armed, ...]:
        """List what is armed."""
        return (
            *(monitor.armed for monitor in self._monitors.values()),
            *(timer.armed for timer in self._timers.values()),
        )

    @property
    def waits(self) -> bool:
        """Whether something will wake the session, or has and was not read yet."""
        self._listed()
        return self._held or bool(self._up or self.armed())

    def monitor(self, number: int, command: CommandProcess, expression: str) -> None:
        """Wake when a command prints a line that matches, and when it ends. Raises `ToolError`."""
        pattern = line_pattern(expression)
        self._listed()
        if number not in self._monitors:
            self._require_room()
        monitor = _Monitor(
            Armed(id=str(number), number=number, text=expression, owner=self._owner, set_at=_now()), command, pattern
        )
        self._monitors[number] = monitor
        self._write()

        def take(text: str) -> None:
            if self._monitors.get(number) is monitor:
                monitor.feed(text)
                self._soon(_BATCH)

        def gone() -> None:
            if self._monitors.get(number) is monitor:
                monitor.end()
                self._soon(0)

        command.listeners.append(take)
        command.when_gone(gone)

    def set_timer(self, seconds: float, note: str) -> None:
        """Wake after some seconds. Raises `ToolError`."""
        self._listed()
        self._require_room()
        name = f"t{self._next}"
        self._next += 1
        armed = Armed(id=name, text=note, owner=self._owner, set_at=_now(), at=_now() + int(seconds * 1000))
        handle = asyncio.get_running_loop().call_later(seconds, self._timer_up, name)
        self._timers[name] = _Timer(armed, handle, seconds)
        self._write()

    def cancel_timers(self) -> int:
        """End all timers; gives how many there were."""
        self._listed()
        count = len(self._timers)
        for timer in self._timers.values():
            timer.handle.cancel()
        self._timers.clear()
        self._write()
        return count

    def disarm(self, number: int) -> None:
        """Let a command wake nobody any more: it was looked at when it had ended, or stopped."""
        if number in self._monitors:
            self._listed()
            self._monitors.pop(number, None)
            self._write()

    def _require_room(self) -> None:
        if len(self._monitors) + len(self._timers) >= MOST_ARMED:
            raise ToolError(f"There are {MOST_ARMED} timers and watched commands already. Wait for one, or end one.")

    def hold(self, *, held: bool) -> None:
        """Say nothing more while what was said last has not been read."""
        self._held = held
        if not held and (self._up or self._monitors):
            self._soon(_BATCH)

    def person_spoke(self) -> None:
        """Begin to count again how often the session was woken."""
        self._count = 0

    def own(self, work: Coroutine[None, None, None]) -> None:
        """Run something that ends with this."""
        task = asyncio.create_task(work, name="watchers")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End everything; a file beside the other keeps what was armed, for who takes the session up."""
        with contextlib.suppress(OSError):
            self._listed()
            if self.armed():
                write_armed(self._file.with_name(ENDED_FILE), self.armed())
            self._file.unlink(missing_ok=True)
        if self._flush is not None:
            self._flush.cancel()
            self._flush = None
        for timer in self._timers.values():
            timer.handle.cancel()
        self._monitors.clear()
        self._timers.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _timer_up(self, name: str) -> None:
        self._up.append(self._timers.pop(name))
        self._soon(0)

    def _soon(self, seconds: float) -> None:
        """Say what there is after some seconds, or as soon as it may be said."""
        if self._held or self._flush is not None:
            return
        now = time.monotonic()
        if len(self._woken) == _PER_MINUTE:
            seconds = max(seconds, self._woken[0] + _MINUTE - now)
        self._flush = asyncio.get_running_loop().call_later(seconds, self._say)

    def _say(self) -> None:
        self._flush = None
        if self._held:
            return
        listed = self._listed()
        said = [one for one in self._ready() if one.id in listed]
        if said:
            self._write()
        for one in said:
            self._count += 1
            self._woken.append(time.monotonic())
            self._wake(one)
        if said and self._count >= MOST_WOKEN:
            self._end_all()

    def _end_all(self) -> None:
        if self.armed():
            self.cancel_timers()
            self._monitors.clear()
            self._write()
            self._spent()

    def _ready(self) -> Iterator[Woken]:
        up, self._up = self._up, []
        for timer in up:
            note = f" {timer.armed.text}" if timer.armed.text else ""
            text = f"The timer that you set {timer.seconds:g} seconds ago is up.{note}"
            yield Woken(kind="timer", id=timer.armed.id, text=text)
        for number, monitor in list(self._monitors.items()):
            monitor.command.flush()
            if text := monitor.take():
                yield Woken(kind="monitor", id=monitor.armed.id, text=text)
            if monitor.ended:
                del self._monitors[number]

    def _listed(self) -> frozenset[str]:
        """Give the ids that the file lists; those that another process has taken out are ended here too."""
        if not self._kept:
            return frozenset(one.id for one in (*self.armed(), *(timer.armed for timer in self._up)))
        listed = frozenset(one.id for one in read_armed(self._file))
        for number in [number for number, one in self._monitors.items() if one.armed.id not in listed]:
            del self._monitors[number]
        for name in [name for name in self._timers if name not in listed]:
            self._timers.pop(name).handle.cancel()
        return listed

    def _write(self) -> None:
        """Keep the list. A full disk costs what other processes know."""
        armed = (*self.armed(), *(timer.armed for timer in self._up))
        self._kept = False
        with contextlib.suppress(OSError):
            write_armed(self._file, armed)
            self._kept = True


def line_pattern(expression: str) -> re.Pattern[str]:
    """Read an expression that is searched in each line. Raises `ToolError` for one that may take long."""
    problem = ""
    bare = _ESCAPED.sub("x", expression)
    if not expression.strip() or len(expression) > _LONGEST_PATTERN:
        problem = f"it must have 1 to {_LONGEST_PATTERN} characters"
    elif _BACK.search(expression) or _REPEATED_GROUP.search(bare) or len(_REPEAT.findall(bare)) > _REPEATS:
        problem = f"at most {_REPEATS} repetitions such as `.*`, none of a group, and no references back"
    else:
        try:
            return re.compile(expression)
        except re.error as error:
            problem = str(error)
    raise ToolError(f"wake_on cannot be used: {problem}. Use plain words, such as `ERROR|ready`.", invalid=True)


def _now() -> int:
    return time.time_ns() // 1_000_000
