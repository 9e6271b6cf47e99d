"""What a client's user reads before they answer, and the form that they fill in."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from treadle.door.trust import SessionTrust, shown_path, trust_lines
from treadle.mcp_server.running_task import ServedTask
from treadle.present.escape import exact
from treadle.present.forms import filled_in, form_fields
from treadle.present.question_words import asked_in_words
from treadle.present.words import shorten_middle
from treadle.protocol.codec import encode
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Answer
from treadle.protocol.permissions import OptionKind, Question, QuestionKind

_MOST_LINES, _MOST_CHARACTERS = 4_000, 100_000
"""Of a question; one that is longer cannot be shown whole, and so not be approved here."""

APPROVALS = (OptionKind.ALLOW_ONCE, OptionKind.ALLOW_ALWAYS, OptionKind.RUN_FOR_REAL)
_MOST_ITEMS = 200
_YES_OR_NO = (QuestionKind.PERMISSION, QuestionKind.BUDGET, QuestionKind.ELICITATION)

Trusting = Literal["trust", "not_now", "never"]


class TrustForm(BaseModel):
    """The answer about a folder."""

    decision: Trusting = Field(description="Whether to trust the folder.")


class AnswerForm(BaseModel):
    """An answer in words."""

    answer: str = Field(description="Your answer.")


def trust_words(trust: SessionTrust) -> str:
    """Put the question whether a folder is trusted, with what would be used in it."""
    items = list(trust_lines(trust.trust))
    more = len(items) - _MOST_ITEMS
    changed = "Do you still trust this folder? It changed." if trust.trust.changed else "Do you trust this folder?"
    return "\n".join(
        [
            f"{changed} {shown_path(str(trust.workspace))}",
            "If you do, Treadle uses these files, which can run or configure something:"
            if items
            else "Nothing in it runs automatically today. If you do, Treadle may read its git state.",
            *items[:_MOST_ITEMS],
            *([f"  and {more} more"] if more > 0 else []),
            f"Fingerprint of all of it: {_fingerprint(trust)}",
            "Treadle works in it either way; without trust it does not use them.",
        ]
    )


def _fingerprint(trust: SessionTrust) -> str:
    """Name everything that the answer is about, what is not listed too: a change asks again."""
    return sha256(encode([(one.path, one.kind, one.digest) for one in trust.trust.listed])).hexdigest()[:16]


def question_words(task: ServedTask, question: Question) -> str:
    """Put a question whole: what it is about, why it asks, and the change that it is about."""
    words = _words(task, question)
    if _is_short(words):
        return words
    short = shorten_middle(words, lines=_MOST_LINES, characters=_MOST_CHARACTERS)
    return f"{short}\n{too_long(task)}"


def too_long(task: ServedTask) -> str:
    """Say where a question can be answered that is too long to be shown here."""
    return f"It is too long to be approved here. To see it whole and answer it: treadle --attach {task.id}"


def in_terminal(task: ServedTask) -> str:
    """Say where else a question can be answered."""
    return f"To answer it in a terminal: treadle --attach {task.id}"


def can_be_approved(task: ServedTask, question: Question) -> bool:
    """Whether a question is shown whole: what is hidden cannot be approved."""
    return _is_short(_words(task, question))


def _is_short(words: str) -> bool:
    return len(words) <= _MOST_CHARACTERS and words.count("\n") < _MOST_LINES


def _words(task: ServedTask, question: Question) -> str:
    return "\n".join(_lines(task, question))


def _lines(task: ServedTask, question: Question) -> Iterator[str]:
    session = task.client.session
    asked = asked_in_words(question, (str(session.workspace), *session.roots))
    # The id binds the answer to this question: the same words may be asked again.
    yield f"{asked.title} [{question.id}, task {task.id}]"
    yield from filter(None, (asked.text, asked.whole_headline, asked.rights, *asked.why))
    for part in asked.parts:
        yield f"- {part.effect.verb} {part.text}  {part.where}".rstrip()
    if question.preview is not None and question.preview.is_diff:
        yield exact(question.preview.text)
    if question.kind not in _YES_OR_NO and question.options:
        yield f"Suggested: {' / '.join(question.options)}"
    if question.more:
        yield f"A yes gives {question.more}."
    if form_fields(question.form):
        yield "Answer with name=value for each field, or with the value where there is one."
    yield from asked.details


def decisions(task: ServedTask, question: Question) -> list[str]:
    """List what can be decided about a question here."""
    if question.kind not in _YES_OR_NO:
        return [OptionKind.ANSWER.value]
    whole = can_be_approved(task, question)
    return [option for option in question.options if whole or option not in APPROVALS]


def question_form(question: Question, options: Sequence[str]) -> type[BaseModel]:
    """Make the form for a question: one of these options with a comment, or an answer in words."""
    if question.kind not in _YES_OR_NO or (form_fields(question.form) and OptionKind.ALLOW_ONCE in options):
        return AnswerForm
    offered: Any = Literal[tuple(options)]
    comment = Annotated[str, Field(description="What the model reads with it; can be empty.")]
    return create_model("DecisionForm", decision=(offered, Field(description="Your decision.")), comment=(comment, ""))


def form_answer(question: Question, form: BaseModel) -> Answer:
    """Make an answer of a filled form; raises `SessionError` where a field of the question is missing or wrong."""
    match form:
        case AnswerForm(answer=words) if form_fields(question.form):
            return given_answer(question, OptionKind.ALLOW_ONCE, words)
        case AnswerForm(answer=words):
            return Answer(question_id=question.id, option=OptionKind.ANSWER, text=words)
        case _:
            said = form.model_dump()
            return Answer(question_id=question.id, option=OptionKind(said["decision"]), text=said["comment"])


def given_answer(question: Question, option: OptionKind, text: str) -> Answer:
    """Make an answer of an option and words, which fill in the fields that a question may have (`name=value`).

    Raises `SessionError` where one of them is missing or wrong.
    """
    if option is not OptionKind.ALLOW_ONCE or not form_fields(question.form):
        return Answer(question_id=question.id, option=option, text=text)
    values, wrong = filled_in(question.form, text, question.arguments)
    if wrong:
        raise SessionError("mcp-form", f"The form is not complete. {wrong}", fix="Answer it again: name=value.")
    return Answer(question_id=question.id, option=option, arguments=values)
