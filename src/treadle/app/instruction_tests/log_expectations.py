"""What must hold of a run, held against its log and its folder: each failure says what, why and what to do."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec
from msgspec import Struct

from treadle.app.instruction_tests.instruction_file import COMPLETED, CalledTool, Expected
from treadle.policy.marks import fits_glob
from treadle.present.words import clip_text
from treadle.protocol.base import Record
from treadle.protocol.events import CallFinished, CallProposed, Event, ReplyFinished
from treadle.protocol.messages import text_of
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.sealed import ResultMade
from treadle.protocol.tools import Outcome

_SHOWN = 300


class FailedExpectation(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What does not hold of a run, why, and what to do about it."""

    what: str
    why: str
    fix: str


class MadeCall(Struct, kw_only=True):
    """A call of a run: its arguments as texts, with paths relative to the folder, and what came of it."""

    tool: str
    arguments: Mapping[str, str]
    outcome: Outcome | None = None

    @property
    def words(self) -> str:
        """The call in few words."""
        inside = ", ".join(f"{name}={clip_text(text, 60)}" for name, text in self.arguments.items())
        came = f": {self.outcome}" if self.outcome is not None else ""
        return f"{self.tool}({inside}){came}"

    def is_like(self, wanted: CalledTool) -> bool:
        """Whether it is a call that a test names."""
        return (
            fnmatchcase(self.tool, wanted.tool)
            and wanted.outcome in (None, self.outcome)
            and all(
                name in self.arguments and fnmatchcase(self.arguments[name], like)
                for name, like in wanted.arguments.items()
            )
        )


class FinishedRun(Struct, frozen=True, kw_only=True):
    """What is known of a run when it has ended: the calls, all texts of the model, and the paths that changed."""

    calls: Sequence[MadeCall]
    said: str
    changed: Sequence[str]
    outcome: TurnOutcome


def finished_run(events: Sequence[Event], outcome: TurnOutcome, changed: Sequence[str], folder: str) -> FinishedRun:
    """Read a run off its log."""
    calls: dict[str, MadeCall] = {}
    said: list[str] = []
    for event in events:
        match event.data:
            case CallProposed(call=call):
                texts = {name: _as_text(value).replace(f"{folder}/", "") for name, value in call.arguments.items()}
                calls[call.id] = MadeCall(tool=call.name, arguments=texts)
            case CallFinished(call_id=call_id, result=result) | ResultMade(call_id=call_id, result=result):
                if call_id in calls:
                    calls[call_id].outcome = result.outcome
            case ReplyFinished(message=message):
                said.append(text_of(message.content))
            case _:
                pass
    texts_of_model = "\n".join(_with_answer([text for text in said if text], outcome.text))
    return FinishedRun(calls=tuple(calls.values()), said=texts_of_model, changed=changed, outcome=outcome)


def _with_answer(said: Sequence[str], answer: str) -> Sequence[str]:
    """Add the answer of the turn, in the place of the replies that it was put together from."""
    for at in range(len(said)):
        if "".join(said[at:]).strip() == answer.strip():
            return [*said[:at], answer]
    return [*said, answer] if answer else said


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def failed_expectations(expected: Expected, run: FinishedRun) -> Iterator[FailedExpectation]:
    """Give what does not hold of a run, but for the check that a program makes."""
    yield from _ended(expected, run.outcome)
    yield from _calls(expected, run.calls)
    yield from _paths(expected, run.changed)
    yield from _texts(expected, run.said)
    yield from _bounds(expected, run.outcome)


def _ended(expected: Expected, outcome: TurnOutcome) -> Iterator[FailedExpectation]:
    ended = COMPLETED if outcome.stop is TurnStop.END_TURN else outcome.stop.value
    if ended != expected.outcome:
        error = "" if outcome.error is None else f" {outcome.error.message}"
        yield FailedExpectation(
            what=f"The outcome is {ended}, not {expected.outcome}.",
            why=f"{outcome.why or 'The turn ended like that'}.{error}",
            fix="Give it more steps, or expect this outcome.",
        )


def _wanted(one: str | CalledTool) -> CalledTool:
    return CalledTool(tool=one) if isinstance(one, str) else one


def _calls(expected: Expected, calls: Sequence[MadeCall]) -> Iterator[FailedExpectation]:
    listed = clip_text("; ".join(one.words for one in calls), _SHOWN) or "nothing"
    for wanted in map(_wanted, expected.called):
        if not any(one.is_like(wanted) for one in calls):
            yield FailedExpectation(
                what=f"{wanted.words} was not called.",
                why=f"Called were: {listed}.",
                fix="Say in the instructions when to call it, or correct the test.",
            )
    for wanted in map(_wanted, expected.never_called):
        if found := next((one for one in calls if one.is_like(wanted)), None):
            yield FailedExpectation(
                what=f"{wanted.words} was called.",
                why=f"The call was: {found.words}.",
                fix="Say in the instructions what to do instead, or deny it by a rule or a hook.",
            )


def _paths(expected: Expected, changed: Sequence[str]) -> Iterator[FailedExpectation]:
    listed = clip_text(", ".join(changed), _SHOWN) or "nothing"
    for glob in expected.changed:
        if not any(fits_glob(glob, path) for path in changed):
            yield FailedExpectation(
                what=f"{glob} was not changed.",
                why=f"Changed: {listed}.",
                fix="Say in the instructions where the work belongs, or correct the test.",
            )
    for glob in expected.untouched:
        if touched := [path for path in changed if fits_glob(glob, path)]:
            yield FailedExpectation(
                what=f"{glob} was changed.",
                why=f"Changed: {clip_text(', '.join(touched), _SHOWN)}.",
                fix="Say in the instructions to leave it, or deny it by a rule or a hook.",
            )


def _texts(expected: Expected, said: str) -> Iterator[FailedExpectation]:
    last = f"The model wrote: {clip_text(' '.join(said.split()), _SHOWN) or 'nothing'}"
    for text in expected.said:
        if text not in said:
            what = f"The model did not write {text!r}."
            yield FailedExpectation(what=what, why=last, fix="Ask for it in the instructions.")
    for pattern in expected.said_like:
        if not re.search(pattern, said):
            what = f"The model wrote nothing like {pattern!r}."
            yield FailedExpectation(what=what, why=last, fix="Ask for it in the instructions.")
    for text in expected.never_said:
        if text in said:
            what = f"The model wrote {text!r}."
            yield FailedExpectation(what=what, why=last, fix="Rule it out in the instructions.")


def _bounds(expected: Expected, outcome: TurnOutcome) -> Iterator[FailedExpectation]:
    if expected.cost_under is not None and (outcome.cost is None or outcome.cost >= expected.cost_under):
        cost = "is not known" if outcome.cost is None else f"is ${outcome.cost:.4f}"
        yield FailedExpectation(
            what=f"The cost {cost}, and must be under ${expected.cost_under}.",
            why=f"The run has {outcome.steps} steps.",
            fix="Shorten what the model reads, or raise the bound.",
        )
    if expected.steps_under is not None and outcome.steps >= expected.steps_under:
        yield FailedExpectation(
            what=f"The run has {outcome.steps} steps, and must have under {expected.steps_under}.",
            why="Each reply of the model is a step.",
            fix="Say in the instructions what to read first, or raise the bound.",
        )
