"""What the terminal is told besides what is drawn, and what it says of itself: title, bell, clipboard, background."""

import asyncio
import os
from contextlib import suppress

from prompt_toolkit.output import Output

from treadle.tui.draft.clipboard import terminal_copy
from treadle.tui.draft.pasting import KeyParser
from treadle.tui.paint.colour_replies import ASK
from treadle.tui.paint.program_status import NO_STATUS

_BEGIN = "\x1b[22;0t\x1b[?1004h"
_END = "\x1b[?1004l\x1b[23;0t"
"""Keep the title of the window and give it back; be told whether the person looks at it."""

_ANSWER_SECONDS = 1.0
"""How long a terminal may take to say what its background is while a session runs: nothing waits for it."""


class WindowSignals:
    """The window of one application; a terminal that takes no control sequences is told `nothing`."""

    def __init__(self, output: Output, parser: KeyParser | None, *, nothing: bool) -> None:
        self._output = output
        self._parser = parser
        self._nothing = nothing
        self._title = self._report = ""

    def begin(self) -> None:
        """Keep the title of the window."""
        if not self._nothing:
            self._output.write_raw(_BEGIN)

    def end(self) -> None:
        """Give it back."""
        if not self._nothing:
            self._output.write_raw(_END + (NO_STATUS if self._report else ""))
            self._output.flush()

    @property
    def looked_at(self) -> bool | None:
        """Whether the person looks at this terminal; None where it does not say."""
        return self._parser.looked_at if self._parser is not None else None

    def set_title(self, title: str, report: str = "") -> None:
        """Name the window; `report` is a control sequence that goes along with another title or by itself."""
        if not self._nothing and (title, report) != (self._title, self._report):
            self._title, self._report = title, report
            self._output.set_title(title)
            self._output.write_raw(report)
            self._output.flush()

    def bell(self, text: str) -> None:
        """Ring, and notify the person if the terminal can."""
        self._output.bell()
        if self.looked_at is False:
            self._output.write_raw(f"\x1b]9;{text}\x07")
        self._output.flush()

    def copy(self, text: str) -> bool:
        """Let the terminal copy a text; gives whether it was sent."""
        sequence = "" if self._nothing else terminal_copy(text, os.environ)
        self._output.write_raw(sequence)
        self._output.flush()
        return bool(sequence)

    async def is_dark(self) -> bool | None:
        """Ask the terminal whether its background is dark; None where it does not say so in time."""
        if self._parser is None or self._nothing:
            return None
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._parser.on_background = lambda dark: None if answer.done() else answer.set_result(dark)
        self._output.write_raw(ASK)
        self._output.flush()
        with suppress(TimeoutError):
            return await asyncio.wait_for(answer, _ANSWER_SECONDS)
        return None
