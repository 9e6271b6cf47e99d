"""Which hooks a moment is about: pure, from matchers and conditions as Claude Code reads them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from treadle.app.config.hook_settings import named_exactly
from treadle.protocol.patterns import regex

_RULE = regex(r"([\w.*-]+)(?:\((.*)\))?", re.DOTALL)
_BETWEEN = regex(r"&&|\|\||[;|&\n]")
_NOT_PLAIN = frozenset("`$(){}<>\\'\"=")
_ABOUT = ("file_path", "path", "url", "pattern")


def matches_any(matcher: str, names: Sequence[str]) -> bool:
    """Whether a matcher matches one of the names.

    Nothing and `*` match all; letters, digits, `_`, `-`, blanks, commas and `|` are exact names; anything else is a
    regular expression that may match anywhere in a name. One that is broken matches: whoever guards must see the call.
    """
    if matcher in ("", "*"):
        return True
    exact = named_exactly(matcher)
    if exact is not None:
        return any(name in exact for name in names)
    try:
        pattern = re.compile(matcher)
    except re.error:
        return True
    return any(pattern.search(name) for name in names)


def condition_holds(condition: str, names: Sequence[str], given: Mapping[str, Any]) -> bool:
    """Whether a call is what a condition such as `Bash(git push *)` names; what cannot be told is.

    A line with quotes, variables or substitutions may run anything: no condition leaves it out.
    """
    rule = _RULE.fullmatch(condition.strip())
    if rule is None:
        return True
    tool, content = rule.groups()
    if not any(fnmatchcase(name, tool) for name in names):
        return False
    if content in (None, "", "*"):
        return True
    if isinstance(line := given.get("command"), str):
        return bool(_NOT_PLAIN & set(line)) or any(_covers(content, part) for part in _parts(line))
    texts = [text for name in _ABOUT if isinstance(text := given.get(name), str)]
    if content.startswith("domain:"):
        return not texts or any(content.removeprefix("domain:") in text for text in texts)
    wanted = content.removeprefix("./").removeprefix("//")
    return not texts or any(fnmatchcase(text, wanted) or fnmatchcase(text, f"*/{wanted}") for text in texts)


def _parts(line: str) -> Iterator[str]:
    yield from (part.strip() for part in (line, *_BETWEEN.split(line)))


def _covers(content: str, part: str) -> bool:
    if content.endswith(":*"):
        prefix = content[:-2]
        return part == prefix or part.startswith(f"{prefix} ")
    return fnmatchcase(part, content) or (content.endswith(" *") and part == content[:-2])
