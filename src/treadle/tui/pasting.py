"""Reading long pastes in time linear in their length."""

from prompt_toolkit.input import Input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

_END = "\x1b[201~"


class PasteParser(Vt100Parser):
    """Keeps what is pasted in pieces; the usual parser looks through the whole paste again for each piece."""

    def __init__(self, parser: Vt100Parser) -> None:
        self._pieces: list[str] = []
        self._last = ""
        super().__init__(parser.feed_key_callback)

    def feed(self, data: str) -> None:
        """Take what the terminal sent."""
        if not self._in_bracketed_paste:
            super().feed(data)
            return
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


def take_long_pastes(source: Input) -> None:
    """Let an input read pastes so, if it is a terminal's."""
    if isinstance(source, Vt100Input):
        source.vt100_parser = PasteParser(source.vt100_parser)
