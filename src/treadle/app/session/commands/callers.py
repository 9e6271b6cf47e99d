"""The commands of a session that run, each with its call: who asks the user for what a program wants in the middle."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType

from msgspec import Struct, structs

from treadle.engine.ports import Asked, AskPerson, PersonReply, ask_person
from treadle.protocol.permissions import Allowance, AllowScope, Mode, Standing
from treadle.protocol.tools import Risk
from treadle.workspace.commands.confinement import Remark, Setup
from treadle.workspace.commands.meter import descendants
from treadle.workspace.files.text import visible

PATIENCE = 50.0
"""Seconds for which a command waits for an answer in the middle: some programs give up after a minute."""

_UNTIL_ENDED = 10.0
"""Seconds in which a command that was interrupted ends; one in the background goes on, with a refusal."""

_LOOK = 0.01

_MOST_OPEN = 3
_MOST_REFUSALS = 8
_LONGEST_LINE = 80


GitCallRisks = Mapping[tuple[str, ...], Risk]
"""Words of calls of git, which may be unknown in part (`policy/marks.py`), with the risk that was seen in each."""

NONE_JUDGED: GitCallRisks = MappingProxyType({})


class CallerReply(Struct, frozen=True, kw_only=True):
    """What came of a question in the middle; `why` is empty for a yes. `final`: a person said no, or chose plan mode.

    `open`: nobody answered, so that a person may be asked once more with the result. `scope` says for how long a
    lasting yes holds.
    """

    why: str = ""
    final: bool = False
    open: bool = False
    scope: AllowScope | None = None


class Caller:
    """One command: its line, and how its call asks. It ends with all that it started."""

    def __init__(self, line: str, ask: AskPerson, judged: GitCallRisks = NONE_JUDGED) -> None:
        """`judged` are the calls of git in the line that were judged, and allowed, with it."""
        self.line = line
        self.ask = ask
        self.judged = judged
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
    """Those of one session. They are noted in threads; what asks, and who is asked, runs in the session's loop."""

    def __init__(self, standing: Callable[[], Standing]) -> None:
        self._standing = standing
        self._all: dict[Caller, None] = {}
        self._open = 0
        self._refusals = 0

    @property
    def living(self) -> list[Caller]:
        """Those of which something runs."""
        return [one for one in tuple(self._all) if one.guard and not one.ended]

    def enter(self, setup: Setup, caller: Caller, remarks: Callable[[], list[Remark]] = list) -> Setup:
        """Note a command that is about to run; `remarks` gives what its result says besides."""
        self._all[caller] = None

        def started(guard: int) -> None:
            setup.started(guard)
            caller.guard = guard

        def settled(output: str, *, ended: bool) -> tuple[Remark, ...]:
            if ended:
                caller.ended = True
                self._all.pop(caller, None)
            return (*setup.settle(output, ended=ended), *remarks())

        return structs.replace(setup, settle=settled, started=started)

    @staticmethod
    def caller(line: str, judged: GitCallRisks = NONE_JUDGED) -> Caller:
        """Make the caller for a command that the call of this context runs."""
        return Caller(line, ask_person.get(), judged)

    def of(self, process: int) -> Caller | None:
        """Find which command a process is of; the only one that runs, where that cannot be seen. Looks at /proc."""
        living = self.living
        for one in living if process else ():
            if process in descendants(one.guard):
                return one
        return living[0] if len(living) == 1 else None

    async def ask(self, caller: Caller, text: str, offers: tuple[Allowance, ...] = ()) -> CallerReply:
        """Ask the user for what a command wants in the middle: few at a time, and not for ever.

        What runs on in the background when its call is over is asked about, too.
        """
        if self._refusals >= _MOST_REFUSALS or self._open >= _MOST_OPEN:
            return CallerReply(why="too much was asked in the middle of commands")
        reply = PersonReply()
        self._open += 1
        try:
            async with asyncio.timeout(PATIENCE):
                reply = await caller.ask(Asked(text=text, offers=offers, outlives=True))
        except TimeoutError:
            self._refusals += 1
            return CallerReply(why=f"nobody answered within {PATIENCE:.0f} s", open=True)
        finally:
            self._open -= 1
        if reply.withdrawn:
            # The command is being ended. An answer would have its line go on meanwhile with what stands behind.
            await self._until_ended(caller)
            return CallerReply(why="the user interrupted")
        if reply.accepted and self._standing().mode is Mode.PLAN:
            return CallerReply(why="plan mode was chosen meanwhile, which gives no right", final=True)
        if reply.accepted:
            return CallerReply(scope=reply.scope)
        if reply.declined:
            self._refusals += 1
            return CallerReply(why="the user said no", final=True)
        return CallerReply(why="nobody could be asked: nobody is there", open=True)

    @staticmethod
    async def _until_ended(caller: Caller) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_UNTIL_ENDED):
                while not caller.ended:  # noqa: ASYNC110 - a thread says so
                    await asyncio.sleep(_LOOK)
