"""Pieces of a draft: a long paste or an image is one character of it, and so is the mark of a shell line.

A draft is a text in which characters of a private plane stand for pieces. No such character comes into a draft as
itself: whoever types or pastes one gets a piece that holds it. So nothing that can be written looks like a piece.
"""

import re
from collections.abc import Callable, Sequence

from msgspec import Struct

from treadle.present.escape import exact
from treadle.present.words import counted
from treadle.protocol.messages import OWN_COMMAND, Text, UserContent

SHELL = "\U00100000"
"""Begins a draft that is a command of the person's own."""

_FIRST = 0x100001
_RESERVED = re.compile("[\U00100000-\U0010fffd]+")
_LINES, _CHARACTERS = 5, 400
"""A paste that has more is one piece."""


class Piece(Struct, frozen=True, kw_only=True):
    """What one character of a draft stands for: how it is shown, its whole text, and what goes along with it."""

    label: str
    text: str
    block: UserContent | None = None


class Pieces:
    """The pieces of all drafts of one session; none is forgotten, since undo and the history may bring it back."""

    def __init__(self) -> None:
        self._pieces: list[Piece] = []

    def add(self, piece: Piece) -> str:
        """Keep a piece; gives its character."""
        self._pieces.append(piece)
        return chr(_FIRST + len(self._pieces) - 1)

    def get(self, char: str) -> Piece | None:
        """Find what a character stands for; None for one that is itself."""
        number = ord(char) - _FIRST
        return self._pieces[number] if 0 <= number < len(self._pieces) else None

    def embed(self, text: str) -> str:
        """Make a draft of a text."""
        if not _RESERVED.search(text):
            return text
        return _RESERVED.sub(lambda found: self.add(Piece(label=exact(found[0]), text=found[0])), text)

    def fold(self, pasted: str) -> str:
        """Make a draft of what is pasted: one piece where it is long."""
        pasted = pasted.replace("\r\n", "\n").replace("\r", "\n")
        lines = pasted.rstrip("\n").count("\n") + 1
        if lines > _LINES:
            return self.add(Piece(label=f"[pasted {counted(lines, 'line')}]", text=pasted))
        if len(pasted) > _CHARACTERS:
            return self.add(Piece(label=f"[pasted {counted(len(pasted), 'character')}]", text=pasted))
        return self.embed(pasted)

    def shown(self, draft: str) -> str:
        """Write a draft with the labels of its pieces."""
        return self._written(draft, lambda piece: piece.label)

    def text(self, draft: str) -> str:
        """Write a draft with all that its pieces hold."""
        return self._written(draft, lambda piece: piece.text)

    def _written(self, draft: str, write: Callable[[Piece], str]) -> str:
        def one(char: str) -> str:
            piece = self.get(char)
            return "!" if char == SHELL else char if piece is None else write(piece)

        return _RESERVED.sub(lambda found: "".join(map(one, found[0])), draft)

    def content(self, draft: str) -> tuple[UserContent, ...]:
        """Make a message of a draft: pasted text in its place, images by their labels there, and behind the text."""
        found = [piece for char in draft if (piece := self.get(char)) is not None and piece.block is not None]
        text = self._written(draft, lambda piece: piece.text if piece.block is None else piece.label)
        return (Text(text=text), *(piece.block for piece in found if piece.block is not None))

    def draft_of(self, content: Sequence[UserContent]) -> str:
        """Make a draft of a message that was not written here; what is no text becomes a piece."""
        parts: list[str] = []
        for block in content:
            if isinstance(block, Text) and not block.text.startswith(OWN_COMMAND):
                parts.append(self.embed(block.text))
            else:
                label = "[output of a command]" if isinstance(block, Text) else f"[{block.media_type}]"
                parts.append(self.add(Piece(label=label, text=label, block=block)))
        return "\n".join(parts)

    def refold(self, draft: str, edited: str) -> str:
        """Make a draft of its text as it was changed elsewhere; pieces that are still whole in it stay pieces."""
        mark = SHELL if draft.startswith(SHELL) and edited.startswith("!") else ""
        made, at = [mark], len(mark)
        for char in draft:
            piece = self.get(char)
            begin = edited.find(piece.text, at) if piece is not None else -1
            if piece is not None and begin >= 0:
                made += [self.embed(edited[at:begin]), char]
                at = begin + len(piece.text)
        return "".join([*made, self.embed(edited[at:])])

    def recalled(self, stored: str) -> str:
        """Make a draft of an earlier message from the history's file; a very long one is one piece."""
        mark = SHELL if stored.startswith("!") else ""
        rest = stored[len(mark) :]
        lines = rest.count("\n") + 1
        if lines > 8 * _LINES or len(rest) > 8 * _CHARACTERS:
            size = counted(lines, "line") if lines > _LINES else counted(len(rest), "character")
            return mark + self.add(Piece(label=f"[earlier message, {size}]", text=rest))
        return mark + self.embed(rest)
