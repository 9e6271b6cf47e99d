"""The text that is being written: whether it was written just now, or came from somewhere else."""

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History


class Draft(Buffer):
    """`typed` hears of every change of the text and of every movement of the cursor.

    It is told whether the text was written by hand: what is recalled from the history or put here was not.
    """

    def __init__(self, history: History, typed: Callable[[bool], None]) -> None:
        super().__init__(multiline=True, history=history)
        self._typed = typed
        self._putting = False
        self._from_end = 0
        self._by_hand = True
        self.on_text_changed += lambda _: self._changed()
        self.on_cursor_position_changed += lambda _: self._typed(self._by_hand)

    @property
    def by_hand(self) -> bool:
        """Whether the text was written by hand."""
        return self._by_hand

    def put(self, text: str) -> None:
        """Replace the text."""
        self._putting = True
        try:
            self.document = Document(text, len(text))
        finally:
            self._putting = False

    def complete(self, text: str, cursor: int) -> None:
        """Replace the text by what it was completed to, as if that had been typed; undo brings it back."""
        self.save_to_undo_stack()
        self.document = Document(text, cursor)

    def _changed(self) -> None:
        from_end = len(self._working_lines) - self.working_index
        recalled, self._from_end = from_end != self._from_end and bool(self._from_end), from_end
        self._by_hand = not (self._putting or recalled)
        self._typed(self._by_hand)
