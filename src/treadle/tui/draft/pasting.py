"""Reading keys: long pastes in time linear in their length, how many came in one read, and what is none of them."""

import time
from collections.abc import Callable

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from treadle.tui.draft.key_sequences import NEXT_BYTE_WITHIN, PASTE_ENDS, SequenceFilter
from treadle.tui.paint.colour_replies import ReplyFilter

_STOP = "\x03"
_LOOKS = {"\x1b[I": True, "\x1b[O": False}
for _sequence in (*_LOOKS, PASTE_ENDS):
    ANSI_SEQUENCES.setdefault(_sequence, Keys.Ignore)


class KeyParser(Vt100Parser):
    """Keeps what is pasted in pieces; the usual parser looks through the whole paste again for each piece.

    `keys` is the number of keys in the last read: what was typed by hand comes one by one. `looked_at` is whether the
    person looks at the terminal, None where it has not said; what it says of that is no key. `on_background` hears
    whether the background is dark when the terminal answers that. A Ctrl-C that comes by itself in a paste of which
    nothing came for a while is a key: its end is lost, and so is what of it came.
    """

    def __init__(self, parser: Vt100Parser, clock: Callable[[], float] = time.monotonic) -> None:
        self.keys = 0
        self.looked_at: bool | None = None
        self.on_background: Callable[[bool], None] = lambda _: None
        self._escaped = self._continued = False
        self._pieces: list[str] = []
        self._last = ""
        self._depth = 0
        self._clock, self._read_at = clock, clock()
        self._replies = ReplyFilter()
        self._sequences = SequenceFilter(lambda sequence: self._get_match(sequence) is not None, clock)
        self._deliver = parser.feed_key_callback
        super().__init__(self._count)

    @property
    def chord(self) -> bool:
        """Whether the last read was Alt with another key: what comes after an Esc of its own is none."""
        return self.keys == 2 and not self._continued

    def _count(self, key: KeyPress) -> None:
        self.looked_at = _LOOKS.get(key.data, self.looked_at)
        if key.key is Keys.Ignore:
            return
        self.keys += 1
        self._deliver(key)

    def feed(self, data: str) -> None:
        """Take what the terminal sent."""
        if not self._depth:
            self.keys = 0
            before, self._read_at = self._read_at, self._clock()
            if self._in_bracketed_paste and data == _STOP and self._read_at - before > NEXT_BYTE_WITHIN:
                self._leave_paste()
            self._continued, self._escaped = self._escaped, data.endswith("\x1b")
            data = self._replies.rest() + data if self._in_bracketed_paste else self._replies.feed(data)
            dark, self._replies.dark = self._replies.dark, None
            if dark is not None:
                self.on_background(dark)
        self._feed(data)

    def _feed(self, data: str) -> None:
        self._depth += 1
        try:
            if self._in_bracketed_paste:
                self._feed_paste(data)
            else:
                super().feed(self._sequences.feed(data))
        finally:
            self._depth -= 1

    def flush(self) -> None:
        """Take an Esc that is alone for a key: nothing followed in time."""
        held = self._replies.release()
        if held:
            self._feed(held)
        super().feed(self._sequences.release())
        super().flush()

    def _feed_paste(self, data: str) -> None:
        data = self._last + data
        end = data.find(PASTE_ENDS)
        if end < 0:
            self._last = data[1 - len(PASTE_ENDS) :]
            self._pieces.append(data[: 1 - len(PASTE_ENDS)])
            return
        pasted = "".join([*self._pieces, data[:end]])
        self._leave_paste()
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))
        self.feed(data[end + len(PASTE_ENDS) :])

    def _leave_paste(self) -> None:
        self._pieces.clear()
        self._last = ""
        self._in_bracketed_paste = False


def parse_keys(source: Input) -> KeyParser | None:
    """Let an input read keys so, if it is a terminal's; from one use of it to the next nothing is forgotten."""
    if not isinstance(source, Vt100Input):
        return None
    if isinstance(source.vt100_parser, KeyParser):
        return source.vt100_parser
    parser = KeyParser(source.vt100_parser)
    source.vt100_parser = parser
    return parser
