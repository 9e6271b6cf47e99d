"""What of a call can be changed before it is allowed: which blocks of an edit are kept, and its texts."""

from collections.abc import Iterator, Sequence
from difflib import unified_diff

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from treadle.door.open_session import block_spans, block_texts
from treadle.present.answer_rows import BLOCKS_ARGUMENT, can_be_changed, text_to_change
from treadle.present.escape import exact, exact_line
from treadle.protocol.permissions import Question
from treadle.web.changed_lines import DiffBlock, diff_blocks

_LONGEST_CHANGED = 100_000
"""Characters of a call that can be changed on the page."""

_FEWEST_ROWS, _MOST_ROWS = 3, 16
"""Rows of a field in which a text is changed."""


class FieldToChange(Struct, frozen=True):
    """A text of a call that can be changed: of the argument `name`, of all of them without one, or of one block."""

    label: str
    text: str
    name: str = ""
    of_block: bool = False

    @property
    def rows(self) -> int:
        """How high its field is; 0: one line is all that it takes."""
        one_line = self.name == "command" and "\n" not in self.text
        return 0 if one_line else min(_MOST_ROWS, max(_FEWEST_ROWS, self.text.count("\n") + 1))


class BlockToChoose(Struct, frozen=True):
    """A block of an edit: what it changes, or its own text where that cannot be told."""

    diff: Sequence[DiffBlock]
    text: str


def edit_blocks(question: Question) -> tuple[str, ...]:
    """Give the blocks of an edit where there is a choice among them."""
    text = question.arguments.get(BLOCKS_ARGUMENT)
    if not can_be_changed(question) or not isinstance(text, str):
        return ()
    spans = block_spans(text)
    return tuple(text[span] for span in spans) if len(spans) > 1 else ()


def blocks_to_choose(question: Question, blocks: Sequence[str]) -> Iterator[BlockToChoose]:
    """Give the blocks of an edit as what each changes."""
    texts = block_texts(str(question.arguments.get(BLOCKS_ARGUMENT, "")))
    path = exact_line(str(question.arguments.get("path", "")))
    for at, block in enumerate(blocks):
        yield BlockToChoose(_block_diff(path, *texts[at]) if texts else (), exact(block))


def _block_diff(path: str, old: str, new: str) -> list[DiffBlock]:
    """Give what a block changes, without numbers: where it is in its file is not in it."""
    before, after = (text.split("\n")[:-1] for text in (old, new))
    diff = "\n".join(unified_diff(before, after, f"a/{path}", f"b/{path}", n=1, lineterm=""))
    return [replace(one, rows=[("", kind, line) for _, kind, line in one.rows]) for one in diff_blocks(diff)]


def fields_to_change(question: Question) -> Sequence[FieldToChange]:
    """Give what of a call can be changed first: its texts, or as JSON all its arguments; none of what is too long."""
    if not can_be_changed(question) or not question.arguments:
        return ()
    found = text_to_change(question)
    if found is None:
        whole = msgspec.json.format(msgspec.json.encode(question.arguments), indent=2).decode()
        fields = [FieldToChange("Changed arguments, in JSON", whole)]
    elif found.name == BLOCKS_ARGUMENT and (texts := block_texts(found.text)):
        numbers = [f" of block {at} of {len(texts)}" if len(texts) > 1 else "" for at in range(1, len(texts) + 1)]
        fields = [
            FieldToChange(f"New text{number}", new, of_block=True)
            for number, (_, new) in zip(numbers, texts, strict=True)
        ]
    else:
        fields = [FieldToChange(f"Changed {found.name}", found.text, found.name)]
    return fields if sum(len(one.text) for one in fields) <= _LONGEST_CHANGED else ()
