"""Elisions: comments such as `# ... existing code ...` that stand for lines the model left out."""

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from msgspec.structs import replace

from treadle.editing.edit_results import EditBlock
from treadle.editing.line_keys import TextViews, is_blank

_LEADER = re.compile(r"^(?://+|#+|--+|;+|%+|/\*+|<!--+|\{/\*+|\*|'|rem\b|\(\*|\"\"\"|\[|\(|\{-)\s*", re.IGNORECASE)
_CLOSER = re.compile(r"\s*(?:\*+/\}?|--+>|\*\)|\"\"\"|\]|\)|-\})$")
_LONGEST_COMMENT = 200
_LONGEST_DOCSTRING = 60
_QUOTES = ('"""', "'''")
_DOTS = r"(?:\.{3,}|…)"
_KEY_WORD = re.compile(
    r"\b(existing|unchanged|rest|remain\w*|same|omitted|elided|previous|other|keep|kept|code|lines?|implementation|"
    r"content|as before|above|snip\w*|etc|methods?|functions?|imports?|tests?)\b",
    re.IGNORECASE,
)
_THINGS = (
    r"(?:(?:source )?code|file|lines?|class(?:es)?|methods?|functions?|implementation|imports?|tests?|module|content|"
    r"body|logic|definitions?|fields?|properties|routes?|styles?|config(?:uration)?|section|document|text|script)"
)
_KNOWN = rf"(?:the |your |all )*(?:existing|unchanged|previous|original|remaining|other) {_THINGS}"
_REST = r"(?:the |your )?(?:rest|remainder)"
_OF = r" of (?:the |this |your )?\S+(?: \S+){0,2}?"
_STATE = (
    r"(?:(?:is|are|stays?|remains?|left|goes) )?(?:unchanged|unmodified|untouched|omitted|the same|same|here|"
    r"as (?:is|before|above|it (?:is|was)|they (?:are|were)))(?: for brevity| (?:as|here|above|below|before).{0,12})?"
)
_ALONE = (
    r"no changes?(?: here| above| below)?|unchanged|same as (?:before|above)|as before|snip(?:ped)?|"
    r"keep(?: the)? rest|omitted(?: for brevity)?"
)
_PLAIN = re.compile(
    rf"(?:keep |leave )?(?:all )?(?:{_REST}(?:{_OF})?|{_KNOWN}(?: .{{1,20}}?)?|(?:the )?{_THINGS}|everything(?: else)?)"
    rf" {_STATE}|(?:keep |leave )?(?:{_REST}{_OF}|{_KNOWN}(?: .{{1,20}})?)|{_ALONE}",
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
        return _KEY_WORD.search(body) is not None and len(body.split()) <= 8
    return _PLAIN.fullmatch(body.strip("()[] .:;-")) is not None


def expand_replace(block: EditBlock, views: TextViews) -> EditBlock | None:
    """REPLACE with each elision that only it has expanded from SEARCH; None when an elision cannot be told.

    An elision is told when it stands for exactly the SEARCH lines between its neighbours. A placeholder that
    SEARCH or the file (bare dots: SEARCH) has is content, and so is one in a fence that the edit brings.
    """
    elided = placeholders(block.replace, {line.strip() for line in block.search}, views)
    if not elided:
        return block
    search, new = [line.rstrip() for line in block.search], [line.rstrip() for line in block.replace]
    opcodes = SequenceMatcher(None, search, new, autojunk=False).get_opcodes()
    expanded: list[str] = []
    changed = False
    for number, (tag, low, high, new_low, new_high) in enumerate(opcodes):
        marks = elided.intersection(range(new_low, new_high))
        own = [new[at] for at in range(new_low, new_high) if not is_blank(new[at])]
        if tag == "equal" or not marks or _is_content(search[low:high], own):
            expanded.extend(block.replace[new_low:new_high])
            continue
        around = [opcodes[at] for at in (number - 1, number + 1) if 0 <= at < len(opcodes)]
        if len(own) != 1 or low == high or not all(_holds(search[i1:i2]) for _, i1, i2, _, _ in around):
            return None
        expanded.extend(block.search[low:high])
        changed = True
    return replace(block, replace=tuple(expanded)) if changed else block


def placeholders(lines: Sequence[str], known: Collection[str], views: TextViews) -> set[int]:
    """The indexes of the lines that stand for omitted ones and are neither known (stripped) nor in the file."""
    found = {at for at, line in enumerate(lines) if line.strip() not in known and is_elision(line)}
    return {
        at for at in found if not (_is_body(lines, at, known) if _is_bare(lines[at]) else _stands(lines[at], views))
    }


def _is_bare(line: str) -> bool:
    return re.fullmatch(_DOTS, line.strip()) is not None


def _stands(line: str, views: TextViews) -> bool:
    return bool(views.stripped.places([line.strip()]))


def _is_body(lines: Sequence[str], at: int, known: Collection[str]) -> bool:
    """Whether bare dots are code: the empty body of a new Python function, or a doctest's omitted output."""
    above = [line.strip() for line in lines[max(0, at - _LONGEST_DOCSTRING) : at] if not is_blank(line)]
    if above and above[-1].startswith((">>>", "Traceback")):
        return True
    if above and above[-1].endswith(_QUOTES):
        quote = above[-1][-3:]
        opening = (at for at in range(len(above) - 1, -1, -1) if above[at].startswith(quote) and above[at:] != [quote])
        above = above[: next(opening, 0)]
    return bool(above) and above[-1].endswith(":") and above[-1] not in known


def _is_content(old: Sequence[str], new: Sequence[str]) -> bool:
    """Whether a placeholder is what the model wants: for an empty body, or within new lines that bring a fence."""
    gone = [line.strip() for line in old if line]
    if not gone:
        return any(line.lstrip().startswith(("```", "~~~")) for line in new)
    return len(gone) == len(new) == 1 and (gone[0] == "pass" or gone[0].startswith("raise NotImplementedError"))


def _holds(lines: Sequence[str]) -> bool:
    """Whether the lines beside an elision are telling enough to say where it ends."""
    return any(sum(map(str.isalnum, line)) > 5 for line in lines)


def split_at_elisions(block: EditBlock) -> list[EditBlock] | None:
    """The parts between the elisions that SEARCH and REPLACE share; None when they do not share them."""
    search, new = _parts(block.search), _parts(block.replace)
    if len(search) != len(new) or len(search) < 2:
        return None
    return [
        replace(block, search=old, replace=own, hint=None, at_end=False) for old, own in zip(search, new, strict=True)
    ]


def _parts(lines: Sequence[str]) -> list[tuple[str, ...]]:
    parts: list[list[str]] = [[]]
    for line in lines:
        if is_elision(line):
            parts.append([])
        else:
            parts[-1].append(line)
    return [tuple(part) for part in parts]
