"""What the machine itself says and decides, as the log keeps it: parts of a user message, and events of its own."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Any, TypeAlias

from treadle.protocol.base import Record, Tagged
from treadle.protocol.models import money
from treadle.protocol.notifications import Notice, TurnOutcome
from treadle.protocol.permissions import Question
from treadle.protocol.tools import CallResult
from treadle.protocol.usage import Usage


class PassageKind(StrEnum):
    """What a text of Treadle's own in a user message is: the frame of the task, a note, the environment, ..."""

    TASK = "task"
    NOTE = "note"
    ENVIRONMENT = "environment"
    RULES = "rules"
    FILES = "files"
    SKILL = "skill"


class Passage(Tagged, frozen=True, kw_only=True, tag="passage"):
    """A text of Treadle's own in a user message, as the model reads it; `origin` names the file it comes from."""

    kind: PassageKind
    text: str
    origin: str = ""


class PromptPart(Record, frozen=True, kw_only=True):
    """One part of the system prompt; `origin` names the file that it comes from where that is the user's."""

    name: str
    text: str
    origin: str = ""


def system_text(parts: Iterable[PromptPart]) -> str:
    """Put the parts of a system prompt together."""
    return "\n\n".join(part.text for part in parts)


class PromptContent(Tagged, frozen=True, kw_only=True, tag="prompt_content"):
    """The place of a prompt in a user message: what it held when it was delivered."""

    prompt_id: str


class SealedResult(Record, frozen=True, kw_only=True):
    """The place of a call's result in a user message. `text` is read where the result has no content of its own."""

    call_id: str
    text: str = ""


class PromptsDelivered(Tagged, frozen=True, kw_only=True, tag="prompts_delivered"):
    """These prompts left the queue for the next user message of this turn; the first ones begin it."""

    turn: int
    prompt_ids: tuple[str, ...]


class ResultMade(Tagged, frozen=True, kw_only=True, tag="result_made"):
    """What the model reads as the outcome of a call where that is not what the call itself brought, if it ran."""

    call_id: str
    result: CallResult


class QuestionPut(Tagged, frozen=True, kw_only=True, tag="question_put"):
    """The user is asked. What the question shows of its call is not repeated: its judgement and its result hold it."""

    question: Question


class RetryPlanned(Tagged, frozen=True, kw_only=True, tag="retry_planned"):
    """The request that failed goes out again after `seconds`: the `attempt`th time of `most`.

    `until` is the moment (milliseconds since 1970) at which the provider's limit resets, where that is waited for.
    """

    attempt: int
    seconds: float
    most: int
    until: int = 0


class ModelReplaced(Tagged, frozen=True, kw_only=True, tag="model_replaced"):
    """Another model, `provider/name`, is called from here on without the user having asked for it."""

    model: str
    why: str


class ChecklistUpdated(Tagged, frozen=True, kw_only=True, tag="checklist_updated"):
    """The task's checklist is this Markdown now."""

    text: str


class TurnSettled(Tagged, frozen=True, kw_only=True, tag="turn_settled"):
    """A turn is over. `state` is the machine's whole state after it, in which the next turn may have begun.

    The session goes on from there: what was before is never run again by another version of the machine.
    """

    turn: int
    outcome: TurnOutcome
    state: dict[str, Any]


class StateSealed(Tagged, frozen=True, kw_only=True, tag="state_sealed"):
    """The machine's whole state within a long turn: no event before it is folded again."""

    state: dict[str, Any]


OF_SUMMARY = "(a summary of the conversation)"
"""In the place of a question beside the work: a summary that nobody waits for any more."""
OF_GOAL = "(a check of the goal)"
"""In its place: the model is asked whether the goal of the session is met."""
OF_COMMIT = "(the message of a commit)"
"""In its place: the model writes the message of a commit."""

WRITTEN_SUMMARY = "The summary"
"""What it is called that the model wrote for a person."""
_WHAT = {
    OF_SUMMARY: "Nothing was removed. The summary that was cut",
    OF_GOAL: "The check of the goal",
    OF_COMMIT: "The message of the commit",
}


def used_outside(what: str, usage: Usage, cost: float | None) -> Notice:
    """Tell what a model call used that is of no turn."""
    spent = f"{usage.context_tokens:,} tokens, {money(cost, estimated=usage.estimated)}"
    text = f"{what} used {spent}. It is part of what the session and the day cost, and of no turn."
    return Notice(text=text, usage=usage, cost=cost, quiet=True)


class SideAsked(Tagged, frozen=True, kw_only=True, tag="side_asked"):
    """The model is about to be asked something beside the work, or for a summary: it is billed from here on.

    `shown`: a person asked, so surfaces show the question and its answer.
    """

    question: str
    shown: bool = False

    def notices(self) -> tuple[Notice, ...]:
        """Give what the user is shown of it."""
        return (Notice(text=f"Asked beside the work: {self.question}", quiet=True),) if self.shown else ()


class SideAnswered(Tagged, frozen=True, kw_only=True, tag="side_answered"):
    """A question beside the work was answered, or why not (`error`). The conversation has nothing of it."""

    question: str
    text: str = ""
    error: str = ""
    usage: Usage = Usage()
    cost: float | None = 0.0
    shown: bool = False

    def notices(self, *, working: bool) -> Iterator[Notice]:
        """Give what the user is shown of it; also what it used where no turn is `working`, whose line would have it."""
        if self.shown:
            yield Notice(text=self.text or f"No answer: {self.error}.", quiet=not self.error)
        if self.usage.context_tokens and not working:
            yield used_outside(_WHAT.get(self.question, "The question beside the work"), self.usage, self.cost)


Sealed: TypeAlias = (
    PromptsDelivered
    | ResultMade
    | QuestionPut
    | RetryPlanned
    | ModelReplaced
    | ChecklistUpdated
    | TurnSettled
    | StateSealed
)
"""What the machine said and decided; each follows on the event that was its cause."""
