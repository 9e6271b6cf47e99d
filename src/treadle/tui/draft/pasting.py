"""Reading keys: long pastes in time linear in their length, how many came in one read, and what is none of them."""

from collections.abc import Callable

from prompt_toolkit.input import Input
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from treadle.tui.paint.colour_replies import ReplyFilter

_END = "\x1b[201~"
_LOOKS = {"\x1b[I": True, "\x1b[O": False}
for _sequence in _LOOKS:
    ANSI_SEQUENCES.setdefault(_sequence, Keys.Ignore)


class KeyParser(Vt100Parser):
    """Keeps what is pasted in pieces; the usual parser looks through the whole paste again for each piece.

    `keys` is the number of keys in the last read: what was typed by hand comes one by one. `looked_at` is whether the
    person looks at the terminal, None where it has not said; what it says of that is no key. `on_background` hears
    whether the background is dark when the terminal answers that.
    """

    def __init__(self, parser: Vt100Parser) -> None:
        self.keys = 0
        self.looked_at: bool | None = None
        self.on_background: Callable[[bool], None] = lambda _: None
        self._escaped = self._continued = False
        self._pieces: list[str] = []
        self._last = ""
        self._depth = 0
        self._replies = ReplyFilter()
        self._deliver = parser.feed_key_callback
        super().__init__(self._count)

    @property
    def chord(self) -> bool:
        """Whether the last read was Alt with another key: what comes after an Esc of its own is none."""
        return self.keys == 2 and not self._continued

    def _count(self, key: KeyPress) -> None:
        if key.data in _LOOKS:
            self.looked_at = _LOOKS[key.data]
            return
        self.keys += 1
        self._deliver(key)

    def feed(self, data: str) -> None:
        """Take what the terminal sent."""
        if not self._depth:
            self.keys = 0
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
                super().feed(data)
        finally:
            self._depth -= 1

    def flush(self) -> None:
        """Take what was sent as it is: nothing followed in time."""
        held = self._replies.release()
        if held:
            self._feed(held)
        super().flush()

    def _feed_paste(self, data: str) -> None:
        data = self._last + data
        end = data.find(_END)
        if end < 0:
            self._last = data[1 - len(_END) :]
            self._pieces.append(data[: 1 - len(_END)])
            return
        pasted = "".join([*self._pieces, data[:end]])
        self._pieces.clear()
        self._last = ""
        self._in_bracketed_paste = False
        self.feed_key_callback(KeyPress(Keys.BracketedPaste, pasted))
        self.feed(data[end + len(_END) :])


def parse_keys(source: Input) -> KeyParser | None:
    """Let an input read keys so, if it is a terminal's; from one use of it to the next nothing is forgotten."""
    if not isinstance(source, Vt100Input):
        return None
    if isinstance(source.vt100_parser, KeyParser):
        return source.vt100_parser
    parser = KeyParser(source.vt100_parser)
    source.vt100_parser = parser
    return parser
