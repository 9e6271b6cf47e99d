"""The commands of a session that run, each with its call: who asks the user for what a program wants in the middle."""

from collections.abc import Callable

from msgspec import structs

from treadle.engine.ports import AskPerson
from treadle.workspace.confinement import Remark, Setup
from treadle.workspace.meter import descendants
from treadle.workspace.text import visible

_LONGEST_LINE = 80


class Caller:
    """One command: its line, and how its call asks. It ends with all that it started."""

    def __init__(self, line: str, ask: AskPerson) -> None:
        self.line = line
        self.ask = ask
        self.guard = 0
        """The process above all of its processes; 0 before it has started."""
        self.ended = False
        self.notes = 0
        """How much was said of what it called."""

    @property
    def shown(self) -> str:
        """The line in short, and in one line, as a part of a question."""
        line = visible(" ".join(self.line.split()))
        return line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}…"


class Callers:
    """Those of one session."""

    def __init__(self) -> None:
        self._all: list[Caller] = []

    @property
    def living(self) -> list[Caller]:
        """Those of which something runs."""
        self._all = [one for one in self._all if not one.ended]
        return self._all

    def enter(
        self, setup: Setup, line: str, ask: AskPerson, remarks: Callable[[], list[Remark]] = list
    ) -> tuple[Caller, Setup]:
        """Note a command that is about to run; `remarks` gives what its result says besides."""
        caller = Caller(line, ask)
        self.living.append(caller)

        def started(guard: int) -> None:
            setup.started(guard)
            caller.guard = guard

        def settled(output: str, *, ended: bool) -> tuple[Remark, ...]:
            caller.ended = caller.ended or ended
            return (*setup.settle(output, ended=ended), *remarks())

        return caller, structs.replace(setup, settle=settled, started=started)

    def of(self, process: int) -> Caller | None:
        """Find which command a process is of; the only one that runs, where that cannot be seen. Looks at /proc."""
        living = self.living
        for one in living if process else ():
            if one.guard and process in descendants(one.guard):
                return one
        return living[0] if len(living) == 1 else None
