"""Models that do not get on: each goes on for ever, and each must be ended soon."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, cycle
from random import Random

from tests.rehearsal.model import Moves, call, reply, run
from tests.rehearsal.work import FOREIGN, Job, edit
from treadle.app.errors.exits import Exit
from treadle.protocol.models import ToolProtocol
from treadle.providers.scripted.script import MakeCall, SayThinking, ScriptItem, Turn

MOST_STEPS = 12
"""Model calls after which a loop must have been ended."""

Replies = Callable[[], Iterator[Turn]]


@dataclass(frozen=True, slots=True)
class Loop:
    """One way of not getting on. `exits` are the ways to end it; without `protocol` it is the same in both."""

    name: str
    replies: Replies
    exits: tuple[Exit, ...] = (Exit.LOOP,)
    protocol: ToolProtocol | None = None

    def moves(self, job: Job) -> Moves:
        """Give what the model does, whatever it reads."""
        for turn in self.replies():  # noqa: UP028 - what the model reads is sent to this generator, and lost here
            yield turn


def _always(*items: ScriptItem | str) -> Replies:
    return lambda: cycle([reply(*items)])


def _in_turn(*turns: Turn) -> Replies:
    return lambda: cycle(turns)


def _numbered(make: Callable[[int], Turn]) -> Replies:
    return lambda: (make(number) for number in count())


_WRONG = edit("src/limits.py", "no such line", "limit = 0")
_READ = call("read_file", path="src/limits.py")
_CHECK = run("sh tests/check.sh 99")
_ASK = call("ask_followup_question", question="Shall I go on?")
_MISTAKES = (Exit.MISTAKES,)
_NATIVE, _XML = ToolProtocol.NATIVE, ToolProtocol.XML

LOOPS = (
    Loop("reads the same file", _always(_READ)),
    Loop("runs the same check, which fails", _always(_CHECK)),
    Loop("runs the same command, which succeeds", _always(run("echo done"))),
    Loop(
        "lists and searches in the same reply",
        _always(call("list_files", path="."), call("search_files", path=".", regex="zz")),
    ),
    Loop("reads and checks by turns", _in_turn(reply(_READ), reply(_CHECK))),
    Loop("does three things by turns", _in_turn(reply(_READ), reply(_CHECK), reply(call("list_files", path=".")))),
    Loop("says something new before the same call", _numbered(lambda n: reply(f"Attempt {n}.", _CHECK))),
    Loop("makes an edit that never matches", _always(_WRONG)),
    Loop("reads before an edit that never matches", _in_turn(reply(_READ), reply(_WRONG))),
    Loop("makes two edits that never match in one reply", _always(_WRONG, _WRONG)),
    Loop(
        "writes what is there already",
        _always(call("write_to_file", path="src/limits.py", content="limit = 1\nstep = 2\nname = 'shelf'\n")),
    ),
    Loop("asks nobody the same", _always(_ASK), (Exit.LOOP, Exit.MISTAKES)),
    Loop(
        "asks nobody something new",
        _numbered(lambda n: reply(call("ask_followup_question", question=f"Shall I go on with part {n}?"))),
        (Exit.LOOP, Exit.MISTAKES),
    ),
    Loop("looks at a command that is not there", _always(call("read_command_output", command_number=7))),
    Loop("runs what nobody allows", _always(run("rm -rf ~")), (Exit.LOOP, Exit.PERMISSION)),
    Loop(
        "finishes with a command that fails",
        _always(call("attempt_completion", result="Done.", command="false")),
        (Exit.LOOP, Exit.DONE),
    ),
    Loop("calls without what is needed", _always(call("read_file")), _MISTAKES),
    Loop(
        "calls with what is not known", _numbered(lambda n: reply(call("list_files", nothing=f"value {n}"))), _MISTAKES
    ),
    Loop("calls a tool that is not there", _numbered(lambda n: reply(call(f"tool_{n}", path="."))), _MISTAKES),
    Loop(
        "answers as in plan mode",
        _always(call("plan_mode_respond", response="I would look first.")),
        (Exit.MISTAKES, Exit.LOOP),
    ),
    Loop("says nothing", _always(), _MISTAKES),
    Loop("thinks only", _numbered(lambda n: reply(SayThinking(text=f"Thought {n}."))), _MISTAKES),
    Loop("writes in another notation", _always(FOREIGN[0]), _MISTAKES),
    Loop("says text only", _numbered(lambda n: reply(f"I am at it, part {n}.")), _MISTAKES, _XML),
    Loop("writes damaged calls", _always(MakeCall(name="read_file", raw='{"path": "src')), _MISTAKES, _NATIVE),
)


@dataclass(frozen=True, slots=True)
class LoopPlan:
    """One session in a loop."""

    number: int
    loop: Loop
    protocol: ToolProtocol

    def __str__(self) -> str:
        return f"loop {self.number}: {self.loop.name}, {self.protocol}"


def loop_plans(seed: int, limit: int | None = None) -> list[LoopPlan]:
    """Give every loop in the protocols in which it can be; with a `limit`, so many of them, by the seed."""
    pairs = [
        (loop, protocol) for loop in LOOPS for protocol in (ToolProtocol if loop.protocol is None else (loop.protocol,))
    ]
    plans = [LoopPlan(number, loop, protocol) for number, (loop, protocol) in enumerate(pairs)]
    return plans if limit is None else Random(seed).sample(plans, min(limit, len(plans)))
