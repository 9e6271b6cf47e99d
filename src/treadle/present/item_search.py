"""Finding words in a session: in which items they are, and in which line of it."""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from treadle.present.escape import printable
from treadle.present.items import (
    AnswerItem,
    CallItem,
    ChecklistItem,
    CompactedItem,
    Item,
    ModeItem,
    ModelItem,
    NoteItem,
    OwnCommandItem,
    Placed,
    ProblemItem,
    ProseItem,
    RetryItem,
    SaidItem,
    ThoughtItem,
    TurnItem,
    WritingItem,
)
from treadle.present.words import describe_call, output_of

_MOST_FOUND = 60
_BEFORE, _SHOWN = 30, 160
"""Characters of a line that are shown before what was found, and in all."""


class FoundItem(Struct, frozen=True):
    """An item with the words: its position, what it is, and its first line that has them, cut around them."""

    position: int
    what: str
    line: str


def found_items(items: Iterable[Placed], words: str) -> Sequence[FoundItem]:
    """Find words in items, large letters like small ones; the newest first, 60 at most."""
    wanted = words.casefold()
    found: list[FoundItem] = []
    for placed in reversed(tuple(items)):
        if placed.item is None or len(found) == _MOST_FOUND:
            continue
        what, text = _text_of(placed.item)
        if wanted in text.casefold():
            line = next((one for one in text.splitlines() if wanted in one.casefold()), text)
            found.append(FoundItem(placed.position, what, _around(line, wanted)))
    return found


def _around(line: str, wanted: str) -> str:
    line = printable(line)
    start = max(0, line.casefold().find(wanted) - _BEFORE)
    cut = line[start : start + _SHOWN].strip()
    return f"{'…' if start else ''}{cut}{'…' if start + _SHOWN < len(line) else ''}"


def _plain(markdown: str) -> str:
    """Leave out the marks that no page shows."""
    return markdown.replace("**", "").replace("`", "")


def _text_of(item: Item) -> tuple[str, str]:  # noqa: C901 - one line for each item
    """Give what an item is, and all of its text that a person reads."""
    match item:
        case SaidItem(text=text):
            return "You", text
        case ProseItem(markdown=text):
            return "Answer", _plain(text)
        case ThoughtItem(text=text):
            return "Thought", text
        case CallItem(changed=changed, output=output):
            preview = "" if changed.preview is None else changed.preview.text
            came = output if changed.result is None else output_of(changed.kind, changed.result)
            name = describe_call(changed)
            return name.verb, f"{name.text}\n{preview}\n{came}"
        case OwnCommandItem(line=line, output=output):
            return "Your command", f"{line}\n{output}"
        case AnswerItem(asked=asked, answer=answer):
            return "Question", f"{asked}\n{answer.text}"
        case ChecklistItem(markdown=text):
            return "Plan", _plain(text)
        case NoteItem(text=text):
            return "Note", text
        case ProblemItem(what=what, why=why, fix=fix):
            return "Problem", f"{what}\n{why}\n{fix}"
        case ModeItem() | ModelItem() | CompactedItem() | RetryItem() | TurnItem() | WritingItem():
            return "", ""
