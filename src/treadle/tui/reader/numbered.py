"""A question as plain lines, answered by the number of a choice, and by lines of words. Pure."""

import re
from collections.abc import Sequence

from msgspec import Struct

from treadle.present.answer_rows import Act
from treadle.present.escape import printable
from treadle.protocol.permissions import Mode, Question, QuestionKind
from treadle.tui.paint.lines import Line, line_text
from treadle.tui.question.asked import (
    FIELDS,
    Asking,
    AskingStep,
    Stage,
    ask,
    choices,
    comment,
    confirm,
    move,
    restart,
    take_words,
)
from treadle.tui.question.asked_about import question_text

_WIDTH = 100_000
"""Nothing is wrapped: a line is read as a line."""

_KEY = " (edits mode, shift-tab)"
_GAP = re.compile(r" {1000,}")

_COMMENT = "A plus behind it, such as 1+, adds a comment."

_ASKS = {
    Stage.INSTEAD: "No. Type what to do instead, or press Enter to say only no.",
    Stage.WORDS: "Type your answer.",
    Stage.SURE: "Type yes to run it. Anything else goes back to the choices.",
    Stage.COMMENT: "Type what to tell Treadle with your answer. Enter answers.",
}


def spoken(row: Line) -> str:
    """Give the text of a row; what is at the right end of a screen follows after a dash."""
    return _GAP.sub(" - ", line_text(row)).rstrip()


class NotUnderstood(Struct, frozen=True):
    """A line that is no answer: it is the draft's."""


def opening(question: Question, mode: Mode, roots: Sequence[str]) -> tuple[Asking, list[str]]:
    """Begin to ask, and write it; where nothing can be chosen, words are asked for."""
    asking = ask(question, mode)
    if [choice.act for choice in choices(asking)] != [Act.WORDS]:
        return asking, asked_lines(asking, roots)
    words = comment(asking)
    return words, [*_question(asking, roots), *asked_lines(words, roots)]


def asked_lines(asking: Asking, roots: Sequence[str]) -> list[str]:
    """Write what is asked, and how it is answered."""
    if asking.stage in FIELDS:
        return [_ASKS[asking.stage]]
    listed = [
        f"{number}. {printable(row.label.removesuffix(_KEY))}" for number, row in enumerate(choices(asking), start=1)
    ]
    how = f"Type a number from 1 to {len(listed)} and press Enter."
    can_comment = asking.stage is Stage.LIST and asking.question.kind is QuestionKind.PERMISSION
    return [*_question(asking, roots), *listed, f"{how} {_COMMENT}" if can_comment else how]


def _question(asking: Asking, roots: Sequence[str]) -> list[str]:
    """Write what is asked about; below the title it is the exact text."""
    rows = question_text(asking, roots, _WIDTH)
    return [f"Question. {spoken(rows[0])}", *map(line_text, rows[1:])] if rows else []


def take_line(asking: Asking, text: str) -> AskingStep | NotUnderstood:
    """Take a line as an answer."""
    words = text.strip()
    if asking.stage is Stage.SURE and words.lower() != "yes":
        return restart(asking)
    if asking.stage in FIELDS:
        return take_words(asking, words)
    number = words.removesuffix("+")
    if not (number.isascii() and number.isdecimal() and 1 <= int(number) <= len(choices(asking))):
        return NotUnderstood()
    chosen = move(asking, int(number) - 1 - asking.chosen)
    if number == words:
        return confirm(chosen)
    commented = comment(chosen)
    return NotUnderstood() if commented is chosen else commented
