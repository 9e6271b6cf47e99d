"""What a question can be answered with: the rows that every surface offers, and what of a call can be changed."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from msgspec import Struct

from treadle.present.forms import filled_in, form_fields
from treadle.present.grants import Grants, grants_of
from treadle.present.question_words import QuestionStyle, is_edit, once, question_style
from treadle.present.words import counted
from treadle.protocol.permissions import Mode, Question, QuestionKind
from treadle.protocol.tools import CopyChanges, Risk

NO_WITH_WORDS = "No, and say what to do instead"

BLOCKS_ARGUMENT = "diff"
"""The argument that may hold several SEARCH/REPLACE blocks."""

_MAIN_TEXTS = ("diff", "patch", "content", "command")


class Act(Enum):
    """What a row of the list does."""

    ALLOW = "allow"
    SESSION = "session"
    ALWAYS = "always"
    EDITS = "edits"
    BLOCKS = "blocks"
    REJECT = "reject"
    SHOW = "show"
    FOR_REAL = "for real"
    OPTION = "option"
    CHOSEN = "chosen"
    WORDS = "words"
    TAKE = "take"
    DROP = "drop"
    SAVE = "save"
    DO_NOT_SAVE = "do not save"


class AnswerRow(Struct, frozen=True):
    """One row of the list."""

    act: Act
    label: str


class EditFirst(Struct, frozen=True):
    """The argument `name` of a call with its text."""

    name: str
    text: str


def answer_rows(
    question: Question, mode: Mode, *, changed: bool = False, blocks: int = 0, words: bool = True
) -> tuple[AnswerRow, ...]:
    """List the answers to a question, the first one first; `mode` is the session's.

    `changed`: the person changed the call. `blocks` is how many there are to choose from, `words` whether an answer of
    one's own is taken besides the options.
    """
    match question.kind:
        case QuestionKind.PERMISSION if question.denial is not None:
            return _again(danger=question_style(question) is QuestionStyle.DANGER)
        case QuestionKind.PERMISSION if question.copy is not None:
            return _about_copy(question, question.copy)
        case QuestionKind.PERMISSION:
            return _permission(question, mode, changed=changed, blocks=blocks)
        case QuestionKind.BUDGET:
            yes = f"Yes, {question.more}" if question.more else "Yes"
            return (AnswerRow(Act.ALLOW, yes), AnswerRow(Act.REJECT, "No"))
        case QuestionKind.ELICITATION:
            return _elicitation(question)
        case QuestionKind.FOLLOWUP | QuestionKind.SUMMARY if question.options:
            options = tuple(AnswerRow(Act.OPTION, option) for option in question.options)
            options += (AnswerRow(Act.CHOSEN, "Send what is chosen"),) * question.multiple
            return (*options, AnswerRow(Act.WORDS, "Something else…")) if words else options
        case QuestionKind.FOLLOWUP | QuestionKind.GUIDANCE | QuestionKind.SUMMARY:
            return (AnswerRow(Act.WORDS, "Answer in your own words"),)


def _elicitation(question: Question) -> tuple[AnswerRow, ...]:
    if grants := grants_of(question):
        yes = AnswerRow(Act.ALLOW, "Yes, for this command")
        return (yes, *_lasting(grants), AnswerRow(Act.REJECT, "No"))
    wants = bool(form_fields(question.form))
    complete = not filled_in(question.form, "", question.arguments)[1]
    send = (AnswerRow(Act.ALLOW, "Send this" if wants else "Yes, I opened it" if question.url else "Yes"),) * complete
    fill = (AnswerRow(Act.WORDS, "Fill in (name=value, or the value where there is one field)…"),) * wants
    return (*send, *fill, AnswerRow(Act.REJECT, "No"))


def _about_copy(question: Question, copy: CopyChanges) -> tuple[AnswerRow, ...]:
    """Offer to apply all of the changes; where that cannot be, to run the command for real."""
    show, drop = AnswerRow(Act.SHOW, "Show the diff"), AnswerRow(Act.REJECT, "Discard")
    real = AnswerRow(Act.FOR_REAL, "Run it for real")
    if copy.whole:
        apply = f"Apply, with {counted(len(copy.unshown), 'file')} not shown" if question.more else "Apply"
        return (AnswerRow(Act.ALLOW, apply), show, drop, real)
    danger = question_style(question) is QuestionStyle.DANGER
    return (drop, show, real) if danger else (real, show, drop)


def _again(*, danger: bool) -> tuple[AnswerRow, ...]:
    yes, no = AnswerRow(Act.ALLOW, "Yes, once, with this right"), AnswerRow(Act.REJECT, NO_WITH_WORDS)
    return (no, yes) if danger else (yes, no)


def _permission(question: Question, mode: Mode, *, changed: bool, blocks: int) -> tuple[AnswerRow, ...]:
    no = AnswerRow(Act.REJECT, NO_WITH_WORDS)
    if question_style(question) is QuestionStyle.DANGER:
        return (no, AnswerRow(Act.ALLOW, once(question)))
    rows = [AnswerRow(Act.ALLOW, "Yes, with your change" if changed else "Yes")]
    if changed:
        return (*rows, no)
    if edits_mode_allows(question, mode):
        rows.append(AnswerRow(Act.EDITS, "Yes, and all edits in this project this session (edits mode, shift-tab)"))
    elif grants := grants_of(question):
        rows += _lasting(grants)
    if blocks:
        rows.append(AnswerRow(Act.BLOCKS, f"Choose block by block ({blocks})"))
    return (*rows, no)


def _lasting(grants: Grants) -> tuple[AnswerRow, AnswerRow]:
    return (
        AnswerRow(Act.SESSION, f"Yes, and don't ask again this session for: {grants.session}"),
        AnswerRow(Act.ALWAYS, f"Always {grants.where}: {grants.always}"),
    )


def edits_mode_allows(question: Question, mode: Mode) -> bool:
    """Whether the mode edits would have allowed it: an edit inside the project that mode ask asks about."""
    decision = question.decision
    return (
        mode is Mode.ASK
        and is_edit(question)
        and decision is not None
        and decision.risk is Risk.WRITE
        and question_style(question) is QuestionStyle.USUAL
    )


def text_to_change(question: Question) -> EditFirst | None:
    """Find the text of a call that a person would want to change: a known one, or the only one there is."""
    if not can_be_changed(question):
        return None
    texts = text_arguments(question.arguments)
    name = next((known for known in _MAIN_TEXTS if known in texts), next(iter(texts)) if len(texts) == 1 else None)
    return None if name is None else EditFirst(name, texts[name])


def can_be_changed(question: Question) -> bool:
    """Whether the call can be changed before it is allowed: it has not run yet."""
    return question.kind is QuestionKind.PERMISSION and question.denial is None and question.copy is None


def text_arguments(arguments: Mapping[str, Any]) -> dict[str, str]:
    """Give the arguments that are texts."""
    return {name: value for name, value in arguments.items() if isinstance(value, str)}
