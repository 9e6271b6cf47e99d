"""Code mode: a program is a subagent that works where its session does, and whose model is the program."""

from dataclasses import dataclass

from msgspec import UNSET
from msgspec.structs import replace

from treadle.app.models.model_choice import OwnModel
from treadle.app.session.children.child_run import ChildResult, ChildRun, is_done
from treadle.app.session.children.child_shape import ChildShape
from treadle.app.session.children.program_model import FAILED, PROGRAM_SPEC, ProgramModel
from treadle.app.session.children.wanted_child import OpenChild, WantedChild
from treadle.app.subagents.agent_files import AgentFile
from treadle.engine.ports import Ports
from treadle.protocol.children import ChildOutcome
from treadle.protocol.limits import Budget
from treadle.protocol.messages import Text
from treadle.protocol.permissions import Situation
from treadle.protocol.sealed import PromptPart
from treadle.protocol.tools import CallResult, Origin, Outcome
from treadle.tools.declarations import ASK_FOLLOWUP_QUESTION, ATTEMPT_COMPLETION, CONDENSE, PLAN_MODE_RESPOND

MOST_WAITS = 200
"""How often a program may wait for calls."""

_MOST_MINUTES = 10
_NEVER = 10**6
_GO_ON = "What its calls did stays. Correct the program and leave out what is done, or make the calls one by one."

CODE_MODE = AgentFile(
    name="code mode",  # no file of an agent can have a name with a blank in it
    description="A program that calls tools.",
    prompt="The calls of this session are those of a program, which is its first message. No model reads this.",
    origin="Treadle",
    without=tuple(spec.name for spec in (ASK_FOLLOWUP_QUESTION, CONDENSE, PLAN_MODE_RESPOND, ATTEMPT_COMPLETION)),
    max_steps=MOST_WAITS,
    seconds=_MOST_MINUTES * 60.0,
    writes=False,  # it has no copy: it works where its session does
)


@dataclass(frozen=True, slots=True)
class _NoSurroundings:
    """The `Environment` port of a program: it asks tools."""

    async def describe(self, *, first: bool, situation: Situation | None) -> str:  # noqa: ARG002 - the port's shape
        return ""


class ProgramShape(ChildShape, frozen=True, kw_only=True):
    """The shape of a session whose model is a program: no words but one line, and nothing is billed."""

    def applied(self, ports: Ports) -> Ports:
        return replace(super().applied(ports), environment=_NoSurroundings())

    def _shaped(self, parts: tuple[PromptPart, ...]) -> tuple[PromptPart, ...]:  # noqa: ARG002 - the shape of all
        return (self.words,)


def program_wanted(wanted: WantedChild, program: ProgramModel) -> WantedChild:
    """Want a program in the place of a model: it is not told twice that it repeats itself, and costs nothing."""
    limits = replace(
        wanted.limits,
        session=Budget(),
        tree=UNSET,
        max_mistakes=_NEVER,
        max_repeats=_NEVER,
        warn_repeats=_NEVER,
    )
    shape = ProgramShape(**{name: getattr(wanted.shape, name) for name in wanted.shape.__struct_fields__})
    model = OwnModel(spec=PROGRAM_SPEC, provider=program)
    return replace(wanted, model=PROGRAM_SPEC.ref, thinking=None, limits=limits, shape=shape, program=model)


async def run_in_session(
    program: ProgramModel, run: ChildRun, open_child: OpenChild, wanted: WantedChild
) -> ChildResult:
    """Run a program to its end; what it changed is in the workspace, as each of its calls was judged."""
    try:
        result = await run.work(await open_child(wanted), program.code)
        text = result.text or program.printed()
    finally:
        await program.close()
    ended = replace(result.ended, changes=run.changes, exact=run.changes_are_all)
    if is_done(result) and program.failed_by:
        ended = replace(ended, outcome=ChildOutcome.FAILED, why=program.failed_by)
    return replace(result, ended=ended, text=text, applied=run.changes)


def program_answer(result: ChildResult) -> CallResult:
    """Give what a program printed, as the model reads it, and why it did not come to its end."""
    ended, text = result.ended, result.text.rstrip()
    if ended.outcome is not ChildOutcome.DONE and FAILED not in text:
        why = ended.why.rstrip(".") or "it is not known why"
        text = "\n\n".join(filter(None, (text, f"The program did not come to its end: {why}.")))
    if not is_done(result):
        text = f"{text}\n\n{_GO_ON}"
    if result.after:
        text = f"{text}\n\n{result.after}"
    return CallResult(
        outcome=Outcome.OK if is_done(result) else Outcome.FAILED,
        content=(Text(text=text),),
        changes=result.applied,
        origin=Origin.WEB if result.tainted else Origin.TREADLE,
    )
