"""A question to the person: the answers, the chosen one, and what Enter makes of it. No clock, no keys."""

from enum import Enum
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from treadle.door.open_session import block_spans, keep_blocks
from treadle.present.answer_rows import (
    BLOCKS_ARGUMENT,
    Act,
    AnswerRow,
    EditFirst,
    answer_rows,
    edits_mode_allows,
    text_arguments,
    text_to_change,
)
from treadle.present.forms import filled_in
from treadle.present.question_words import QuestionStyle, question_style
from treadle.protocol.events import Answer
from treadle.protocol.permissions import AllowScope, Mode, OptionKind, Question, QuestionKind

_SURE = "yes"

_PLAIN_NO = (QuestionKind.BUDGET, QuestionKind.ELICITATION)
"""Questions whose no takes no words."""

_YES = (Act.ALLOW, Act.TAKE, Act.SAVE)
_NO = (Act.REJECT, Act.DROP, Act.DO_NOT_SAVE)


class Stage(Enum):
    """What is asked for: a row of the list, each block of an edit, whether a rule is saved, or one line of words."""

    LIST = "list"
    BLOCKS = "blocks"
    RULE = "rule"
    COMMENT = "comment"
    INSTEAD = "instead"
    WORDS = "words"
    SURE = "sure"


FIELDS = frozenset({Stage.COMMENT, Stage.INSTEAD, Stage.WORDS, Stage.SURE})
"""Stages with a line of words."""


WITH_NO = frozenset({QuestionKind.PERMISSION, QuestionKind.BUDGET, QuestionKind.ELICITATION})
"""Questions that can be answered with no; any other stops the turn."""


class Asking(Struct, frozen=True, kw_only=True):
    """How far the answer to a question is.

    `mode` is the mode of the session; `changed` is the argument that the person edited, and its text. `blocks` are the
    places of an edit's blocks where there is a choice among them, `kept` what was said of the first. With `words` an
    answer in the person's own words is taken besides the options. Where several may be chosen, `ticked` are chosen.
    """

    question: Question
    mode: Mode = Mode.ASK
    stage: Stage = Stage.LIST
    chosen: int = 0
    comment: str = ""
    changed: "EditFirst | None" = None
    details: bool = False
    blocks: tuple[slice, ...] = ()
    kept: tuple[bool, ...] = ()
    words: bool = True
    ticked: tuple[int, ...] = ()

    @property
    def block(self) -> str:
        """The text of the block that is asked about."""
        return _text(self.question, BLOCKS_ARGUMENT)[self.blocks[len(self.kept)]]

    @property
    def danger(self) -> bool:
        """Whether the list begins with no, and yes wants to be typed."""
        return question_style(self.question) is QuestionStyle.DANGER

    @property
    def field(self) -> bool:
        """Whether a line of words is asked for."""
        return self.stage in FIELDS


class ShowWhole(Struct, frozen=True):
    """All that the question is about is to be shown; it stays open."""


class GivenAnswer(Struct, frozen=True):
    """The answer; with `edits`, the session goes to the mode edits first."""

    answer: Answer
    edits: bool = False


AskingStep: TypeAlias = Asking | GivenAnswer | ShowWhole


def ask(question: Question, mode: Mode = Mode.ASK) -> Asking:
    """Begin to ask."""
    blocks = block_spans(_text(question, BLOCKS_ARGUMENT)) if question.kind is QuestionKind.PERMISSION else ()
    return Asking(question=question, mode=mode, blocks=blocks if len(blocks) > 1 else ())


def restart(asking: Asking) -> Asking:
    """Go back to the first row of the list; what was written and changed stays."""
    return replace(asking, stage=Stage.LIST, chosen=0, kept=())


def choices(asking: Asking) -> tuple[AnswerRow, ...]:
    """List what there is to choose from."""
    match asking.stage:
        case Stage.BLOCKS:
            return (AnswerRow(Act.TAKE, "Take this block"), AnswerRow(Act.DROP, "Leave it out"))
        case Stage.RULE:
            return (AnswerRow(Act.DO_NOT_SAVE, "No"), AnswerRow(Act.SAVE, "Yes"))
        case _:
            return _listed(asking)


def _listed(asking: Asking) -> tuple[AnswerRow, ...]:
    rows = answer_rows(
        asking.question,
        asking.mode,
        changed=asking.changed is not None,
        blocks=len(asking.blocks),
        words=asking.words,
    )
    if not asking.question.multiple:
        return rows
    boxes = ["[x]" if at in asking.ticked else "[ ]" for at in range(len(asking.question.options))]
    return (
        *(AnswerRow(row.act, f"{box} {row.label}") for box, row in zip(boxes, rows, strict=False)),
        *rows[len(boxes) :],
    )


def may_switch(asking: Asking) -> bool:
    """Whether the mode edits would have allowed it."""
    return edits_mode_allows(asking.question, asking.mode)


def move(asking: Asking, rows: int) -> Asking:
    """Move the choice down, or up where negative; it stops at the ends."""
    last = len(choices(asking)) - 1
    return replace(asking, chosen=min(last, max(0, asking.chosen + rows)))


def pick(asking: Asking, char: str) -> Asking | None:
    """Move the choice to what a digit, y or n means; None for a character that means nothing here."""
    rows = choices(asking)
    if char.isdecimal() and char.isascii():
        return replace(asking, chosen=int(char) - 1) if 1 <= int(char) <= len(rows) else None
    acts = {"y": _YES, "n": _NO}.get(char.lower(), ())
    found = next((number for number, row in enumerate(rows) if row.act in acts), None)
    return None if found is None else replace(asking, chosen=found)


def comment(asking: Asking) -> Asking:
    """Open the line of words of the chosen row; rows that take none change nothing."""
    if asking.stage is not Stage.LIST:
        return asking
    match choices(asking)[asking.chosen].act:
        case Act.REJECT if asking.question.kind not in _PLAIN_NO:
            return replace(asking, stage=Stage.INSTEAD)
        case Act.WORDS if asking.question.kind is QuestionKind.ELICITATION:
            return replace(asking, stage=Stage.WORDS)
        case Act.WORDS | Act.OPTION | Act.CHOSEN:
            return replace(asking, stage=Stage.WORDS, chosen=len(choices(asking)) - 1)
        case Act.ALLOW | Act.SESSION | Act.EDITS | Act.FOR_REAL if asking.question.kind is QuestionKind.PERMISSION:
            return replace(asking, stage=Stage.COMMENT)
        case _:
            return asking


def confirm(asking: Asking) -> AskingStep:
    """Take the chosen row: give the answer, or ask for what it needs first."""
    act = choices(asking)[asking.chosen].act
    match act:
        case Act.ALLOW | Act.FOR_REAL if asking.danger:
            return replace(asking, stage=Stage.SURE)
        case Act.ALLOW | Act.SESSION | Act.EDITS | Act.SAVE | Act.FOR_REAL:
            return _allowed(asking, act)
        case Act.SHOW:
            return ShowWhole()
        case Act.ALWAYS | Act.BLOCKS:
            return replace(asking, stage=Stage.RULE if act is Act.ALWAYS else Stage.BLOCKS, chosen=0, kept=())
        case Act.TAKE | Act.DROP:
            return _block(asking, keep=act is Act.TAKE)
        case Act.DO_NOT_SAVE:
            return restart(asking)
        case Act.REJECT if asking.question.kind in _PLAIN_NO or asking.question.copy or asking.comment:
            return no(asking)
        case Act.REJECT | Act.WORDS:
            return comment(asking)
        case Act.OPTION | Act.CHOSEN:
            return _chosen(asking, ticks=act is Act.OPTION and asking.question.multiple)


def _chosen(asking: Asking, *, ticks: bool) -> AskingStep:
    """Answer with the chosen option, or with all that are ticked, in their order; none is no answer."""
    if ticks:
        return replace(asking, ticked=tuple({*asking.ticked} ^ {asking.chosen}))
    at = sorted(asking.ticked) if asking.question.multiple else [asking.chosen]
    text = "\n".join(asking.question.options[one] for one in at)
    return GivenAnswer(Answer(question_id=asking.question.id, option=OptionKind.ANSWER, text=text)) if at else asking


def no(asking: Asking, words: str = "") -> GivenAnswer:
    """Say no, with words where there are any."""
    return GivenAnswer(
        Answer(question_id=asking.question.id, option=OptionKind.REJECT_ONCE, text=words.strip() or asking.comment)
    )


def take_words(asking: Asking, words: str) -> AskingStep:
    """Take the line of words with Enter; a comment alone allows nothing, it goes with the row that Enter takes then."""
    words = words.strip()
    match asking.stage:
        case Stage.INSTEAD:
            return no(asking, words)
        case Stage.WORDS if words and asking.question.kind is QuestionKind.ELICITATION:
            return _filled_in(asking, words)
        case Stage.WORDS if words:
            return GivenAnswer(Answer(question_id=asking.question.id, option=OptionKind.ANSWER, text=words))
        case Stage.SURE if words.lower() == _SURE:
            return _allowed(asking, Act.FOR_REAL if asking.question.yes is OptionKind.RUN_FOR_REAL else Act.ALLOW)
        case Stage.COMMENT:
            return confirm(keep_words(asking, words))
        case _:
            return asking


def _filled_in(asking: Asking, words: str) -> AskingStep:
    """Take the values of a form; it goes out when it is complete, else what it has so far is shown."""
    question = asking.question
    values, wrong = filled_in(question.form, words, question.arguments)
    if wrong:
        return replace(asking, stage=Stage.LIST, chosen=0, question=replace(question, arguments=values))
    return GivenAnswer(Answer(question_id=question.id, option=OptionKind.ALLOW_ONCE, arguments=values))


def keep_words(asking: Asking, words: str) -> Asking:
    """Go back to the list; a comment is kept with it."""
    kept = words.strip() if asking.stage in (Stage.COMMENT, Stage.INSTEAD) else asking.comment
    return replace(asking, stage=Stage.LIST, comment=kept)


def back(asking: Asking) -> Asking | None:
    """Give what Esc goes back to; None in the list, where Esc is no."""
    return restart(asking) if asking.stage in (Stage.BLOCKS, Stage.RULE) else None


_OPTIONS = {
    Act.SESSION: OptionKind.ALLOW_ALWAYS,
    Act.SAVE: OptionKind.ALLOW_ALWAYS,
    Act.FOR_REAL: OptionKind.RUN_FOR_REAL,
}


def _allowed(asking: Asking, act: Act) -> GivenAnswer:
    answer = Answer(
        question_id=asking.question.id,
        option=_OPTIONS.get(act, OptionKind.ALLOW_ONCE),
        scope=AllowScope.USER if act is Act.SAVE else AllowScope.SESSION,
        text=asking.comment,
        arguments=_amended(asking),
    )
    return GivenAnswer(answer, edits=act is Act.EDITS)


def _amended(asking: Asking) -> dict[str, Any] | None:
    if asking.changed is None:
        return None
    amended = {**asking.question.arguments, asking.changed.name: asking.changed.text}
    return None if amended == asking.question.arguments else amended


def _block(asking: Asking, *, keep: bool) -> AskingStep:
    """Take a block or leave it out; after the last one that is the answer."""
    kept = (*asking.kept, keep)
    if len(kept) < len(asking.blocks):
        return replace(asking, kept=kept, chosen=0)
    if not any(kept):
        return no(asking)
    text = keep_blocks(_text(asking.question, BLOCKS_ARGUMENT), asking.blocks, kept)
    return _allowed(replace(asking, changed=EditFirst(BLOCKS_ARGUMENT, text)), Act.ALLOW)


def change(asking: Asking, name: str, text: str) -> Asking:
    """Ask about the call with another text as its argument `name`; there are no blocks to choose among any more."""
    return replace(restart(asking), changed=EditFirst(name, text), blocks=())


def main_text(asking: Asking) -> EditFirst | None:
    """Find the text of a call that a person would want to change, as it is now."""
    return asking.changed or text_to_change(asking.question)


def _text(question: Question, name: str) -> str:
    return text_arguments(question.arguments).get(name, "")
