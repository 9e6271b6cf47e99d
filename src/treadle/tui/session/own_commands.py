"""The person's own commands: running ones below the scrollback, and what waits to go with the next message."""

import asyncio
from collections.abc import Callable, Sequence

from msgspec import Struct, structs

from treadle.door.open_session import Ended, OwnShell
from treadle.present.escape import printable
from treadle.present.items import ProblemItem
from treadle.present.words import span
from treadle.protocol.errors import ToolError
from treadle.tui.paint.lines import Line, clip, line
from treadle.tui.paint.printed_items import OwnDone
from treadle.tui.paint.printed_lines import own_command_row, tail_lines
from treadle.tui.paint.theme import Signs

_SHOWN = 6
_KEPT = 8_000
_GOES = "goes with your next message"


class Running(Struct, frozen=True, kw_only=True):
    """A command that runs: since when, the end of what it printed, and the number of lines before that."""

    line: str
    since: float
    stop: asyncio.Event
    output: str = ""
    above: int = 0

    def printed(self, text: str) -> "Running":
        """Add what it printed."""
        output = self.output + text
        dropped, kept = output[:-_KEPT], output[-_KEPT:]
        return structs.replace(self, output=kept, above=self.above + dropped.count("\n"))


class OwnCommands:
    """Runs the commands that the person enters; `show` prints what is left of one, `changed` draws anew."""

    def __init__(self, shell: OwnShell, *, show: Callable[..., None], changed: Callable[[], None]) -> None:
        self._shell = shell
        self._show = show
        self._changed = changed
        self._entered: asyncio.Queue[str] = asyncio.Queue()
        self._running: dict[int, Running] = {}
        self._done: list[Ended] = []
        self._count = 0

    @property
    def active(self) -> bool:
        """Whether a command runs."""
        return bool(self._running)

    def start(self, command: str) -> None:
        """Run a command, beside whatever else runs."""
        self._entered.put_nowait(command)

    def stop(self) -> bool:
        """Stop the command that was started last; gives whether there was one."""
        running = [one for one in self._running.values() if not one.stop.is_set()]
        if running:
            running[-1].stop.set()
        return bool(running)

    def take(self) -> tuple[Ended, ...]:
        """Give what ended since the last message, to go with the next one."""
        done, self._done = self._done, []
        return tuple(done)

    def take_back(self, ended: Sequence[Ended]) -> None:
        """Let these go with the next message after all."""
        self._done[:0] = ended

    async def run(self) -> None:
        """Run what is entered until cancelled; that ends what runs."""
        async with asyncio.TaskGroup() as group:
            while True:
                command = await self._entered.get()
                self._count += 1
                group.create_task(self._run(self._count, command), name="own command")

    async def _run(self, number: int, command: str) -> None:
        now = asyncio.get_running_loop().time()
        running = Running(line=command, since=now, stop=asyncio.Event())
        self._running[number] = running

        def printed(text: str) -> None:
            self._running[number] = self._running[number].printed(text)
            self._changed()

        self._changed()
        try:
            ended = await self._shell.run(command, printed, running.stop)
        except ToolError as error:
            self._show(ProblemItem(error.text))
        else:
            self._done.append(ended)
            self._show(OwnDone(ended))
        finally:
            del self._running[number]
            self._changed()

    def rows(self, now: float, width: int, signs: Signs) -> list[Line]:
        """Show what runs, with the end of its output, and what goes with the next message."""
        rows: list[Line] = []
        for one in self._running.values():
            rows += [own_command_row(one.line, "accent", _ran(now - one.since), width, signs)]
            rows += tail_lines(one.output, (_SHOWN, one.above), width, signs, role="dim") if one.output.strip() else []
        for ended in self._done[-_SHOWN // 2 :]:
            begin = line("  ", ("dim", f"! {printable(ended.line.partition(chr(10))[0])}"))
            note = f"  {_GOES}"
            rows.append((*clip(begin, max(10, width - len(note)), signs.more), ("dim", note)))
        return rows


def _ran(seconds: float) -> str:
    return span(seconds) if seconds >= 1 else ""
