"""A question as plain lines, answered by the number of a choice, and by lines of words. Pure."""

from collections.abc import Sequence

from msgspec import Struct

from treadle.app.presentation.escape import printable
from treadle.tui.asking import FIELDS, Answered, Asking, Stage, choices, confirm, move, restart, say
from treadle.tui.lines import text_of
from treadle.tui.question_lines import question_text

_WIDTH = 100_000
"""Nothing is wrapped: a line is read as a line."""

_ASKS = {
    Stage.INSTEAD: "No. Type what to do instead, or press Enter to say only no.",
    Stage.WORDS: "Type your answer.",
    Stage.SURE: "Type yes to run it. Anything else goes back to the choices.",
    Stage.COMMENT: "Type what to tell Treadle with your answer.",
}


class NotUnderstood(Struct, frozen=True):
    """A line that is no answer: it is the draft's."""


def asked_lines(asking: Asking, roots: Sequence[str]) -> list[str]:
    """Write what is asked, and how it is answered."""
    if asking.stage in FIELDS:
        return [_ASKS[asking.stage]]
    rows = [text_of(row) for row in question_text(asking, roots, _WIDTH)]
    listed = [f"{number}. {printable(row.label)}" for number, row in enumerate(choices(asking), start=1)]
    first = [f"Question. {rows[0]}", *rows[1:]] if rows else []
    return [*first, *listed, f"Type a number from 1 to {len(listed)} and press Enter."]


def take_line(asking: Asking, text: str) -> Answered | NotUnderstood:
    """Take a line as an answer."""
    words = text.strip()
    if asking.stage is Stage.SURE and words.lower() != "yes":
        return restart(asking)
    if asking.stage in FIELDS:
        return say(asking, words)
    if not (words.isascii() and words.isdecimal() and 1 <= int(words) <= len(choices(asking))):
        return NotUnderstood()
    return confirm(move(asking, int(words) - 1 - asking.chosen))
