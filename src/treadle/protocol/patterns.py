"""Regular expressions that are compiled when they are first used, since the start needs hardly any of them."""

import re
from typing import Any, AnyStr, cast


def regex(text: AnyStr, flags: int = 0) -> "re.Pattern[AnyStr]":
    """Give what behaves like `re.compile(text, flags)`."""
    return cast("re.Pattern[AnyStr]", _Late(text, flags))


class _Late:
    """Stands for a pattern; its attributes are those of the pattern."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self.pattern = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self.pattern, self._flags), name)
        self.__dict__[name] = found
        return found
