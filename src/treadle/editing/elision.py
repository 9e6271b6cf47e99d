"""Elisions: comments such as `# ... existing code ...` that stand for lines the model left out."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from msgspec.structs import replace

from treadle.editing.keys import is_blank
from treadle.editing.results import Block

_LEADER = re.compile(r"^(?://+|#+|--+|;+|%+|/\*+|<!--+|\{/\*+|\*|'|rem\b|\(\*|\"\"\"|\[|\(|\{-)\s*", re.IGNORECASE)
_CLOSER = re.compile(r"\s*(?:\*+/\}?|--+>|\*\)|\"\"\"|\]|\)|-\})$")
_LONGEST_COMMENT = 200
_DOTS = r"(?:\.{3,}|…)"
_WORDS = re.compile(
    r"\b(existing|unchanged|rest|remain\w*|same|omitted|elided|previous|other|keep|kept|code|lines?|implementation|"
    r"content|as before|above|snip\w*|etc|methods?|functions?|imports?|tests?)\b",
    re.IGNORECASE,
)
_PLAIN = re.compile(
    r"(the )?(rest|remainder) of .{1,40}|(existing|unchanged) (code|lines|methods|implementation)( .{1,20})?",
    re.IGNORECASE,
)


def is_elision(line: str) -> bool:
    """Whether the line stands for omitted lines: bare dots, or a comment that says so."""
    text = line.strip()
    if len(text) > _LONGEST_COMMENT:
        return False
    if re.fullmatch(_DOTS, text):
        return True
    leader = _LEADER.match(text)
    if leader is None:
        return False
    body = _CLOSER.sub("", text[leader.end() :]).strip()
    if re.fullmatch(_DOTS, body):
        return True
    opens, closes = re.match(_DOTS, body), re.search(_DOTS + "$", body)
    if opens is not None and closes is not None:
        return True
    if opens is not None or closes is not None:
        return _WORDS.search(body) is not None and len(body.split()) <= 8
    return _PLAIN.fullmatch(body) is not None


def expand_replace(block: Block) -> Block | None:
    """REPLACE with each elision that only it has expanded from SEARCH; None when an elision cannot be told.

    An elision is told when it stands for exactly the SEARCH lines between its neighbours.
    """
    known = {line.strip() for line in block.search}
    elided = [_elides(block.replace, at, known) for at in range(len(block.replace))]
    if not any(elided):
        return block
    search, new = [line.rstrip() for line in block.search], [line.rstrip() for line in block.replace]
    opcodes = SequenceMatcher(None, search, new, autojunk=False).get_opcodes()
    expanded: list[str] = []
    for number, (tag, low, high, new_low, new_high) in enumerate(opcodes):
        if tag == "equal" or not any(elided[new_low:new_high]):
            expanded.extend(block.replace[new_low:new_high])
            continue
        own = [at for at in range(new_low, new_high) if not is_blank(new[at])]
        around = [opcodes[at] for at in (number - 1, number + 1) if 0 <= at < len(opcodes)]
        if len(own) != 1 or low == high or not all(_holds(search[i1:i2]) for _, i1, i2, _, _ in around):
            return None
        expanded.extend(block.search[low:high])
    return replace(block, replace=tuple(expanded))


def _holds(lines: Sequence[str]) -> bool:
    """Whether the lines beside an elision are telling enough to say where it ends."""
    return any(sum(map(str.isalnum, line)) > 5 for line in lines)


def split_at_elisions(block: Block) -> list[Block] | None:
    """The parts between the elisions that SEARCH and REPLACE share; None when they do not share them."""
    search, new = _parts(block.search), _parts(block.replace)
    if len(search) != len(new) or len(search) < 2:
        return None
    return [
        replace(block, search=old, replace=own, hint=None, at_end=False) for old, own in zip(search, new, strict=True)
    ]


def _elides(lines: Sequence[str], at: int, known: set[str]) -> bool:
    line = lines[at].strip()
    if line in known or not is_elision(line):
        return False
    # `...` below a new line that ends in a colon is Python's empty body; doctests continue with it.
    above = next((each.strip() for each in reversed(lines[:at]) if not is_blank(each)), "")
    return line != "..." or not ((above not in known and above.endswith(":")) or above.startswith((">>>", "Traceback")))


def _parts(lines: Sequence[str]) -> list[tuple[str, ...]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if is_elision(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return [tuple(part) for part in parts]
