"""Results that a model writes by itself behind its call, instead of waiting for the real one."""

import re
from collections.abc import Sequence

from treadle.protocol.patterns import regex

_LONGEST_HEAD = 400
"""Characters of a line in which the head of a result can end."""

_HEAD_BEGUN = regex(r"[ \t]{0,8}(?:[\[<]|\Z)")
_OTHER = "\0"
"""Stands for the beginning of a line that is no head."""

_TAGS = "function_results?|tool_results?|tool_response|tool_output|function_response|observation|environment_details"


class InventedResults:
    """Watches the text behind a reply's calls for the head of a result, as this or another agent writes it.

    That is `[NAME] Result:` or `[NAME for '...'] Error:` with the name of a tool, or a tag of results, at the start of
    a line. Only results are written so, and those come with the next request. Time is linear in the text.
    """

    __slots__ = ("_head", "_line")

    def __init__(self, tools: Sequence[str]) -> None:
        names = "|".join(map(re.escape, tools)) or "(?!)"
        self._head = re.compile(
            rf"^[ \t]{{0,8}}(?:\[(?:{names})(?:[ \t][^\]\n]{{0,300}})?\][ \t]?(?:Result|Error|Output):|<(?:{_TAGS})>)",
            re.MULTILINE,
        )
        self._line = ""

    def begin(self) -> None:
        """A call ended here: what follows begins a line."""
        self._line = ""

    def feed(self, text: str) -> int:
        """Take the next piece; gives how many characters before its end an invented result began, 0 if none did."""
        if self._line == _OTHER and "\n" not in text:
            return 0
        data = self._line + text
        found = self._head.search(data)
        if found is not None:
            return len(data) - found.start()
        line = data[data.rfind("\n") + 1 :]
        self._line = line if len(line) <= _LONGEST_HEAD and _HEAD_BEGUN.match(line) else _OTHER
        return 0
