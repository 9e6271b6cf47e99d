"""Bring only what differs between SEARCH and REPLACE onto the file's own lines."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from rapidfuzz import distance  # not from the inside of it: two threads would lock each other out

from treadle.editing.edit_results import EditBlock, ErrorCode, Tier
from treadle.editing.file_form import in_form_of_file
from treadle.editing.indentation import IndentRule, learn_indentation
from treadle.editing.line_keys import TYPOGRAPHIC, indent_of, is_blank
from treadle.editing.regions import Alignment, Conflict, Opcode, Region, find_region
from treadle.editing.source import Hunk

_MOST_CELLS = 1_000_000
# How the lines of an exact match are divided changes nothing, so little time is spent on it.
_MOST_EXACT_CELLS = 40_000

_CURLY = frozenset("“”‘’")


def merge_block(block: EditBlock, found: Alignment, lines: Sequence[str]) -> list[Hunk] | Conflict:
    """The changes of `block` as hunks on `lines`. What is equal in SEARCH and REPLACE keeps the file's text."""
    written_by_model, block = block, block if found.tier is Tier.EXACT else in_form_of_file(block, found, lines)
    opcodes, drifted = _difference(block, found, lines)
    if drifted is None and any(new_low < new_high for *_, new_low, new_high in opcodes):
        return Conflict(ErrorCode.INDENTATION, found.first)
    conflict = _unproven_deletion(written_by_model, found, opcodes, lines) if found.tier is Tier.SIMILAR else None
    if conflict is not None:
        return conflict
    repair = _Repair(block, written_by_model.search, found, lines) if drifted else None
    hunks: list[Hunk] = []
    for opcode in opcodes:
        region = find_region(block, found, opcode, lines)
        if isinstance(region, Conflict):
            return region
        if region is not None:
            written = _written(region, block, repair)
            if written is None:
                return Conflict(ErrorCode.INDENTATION, region.start)
            hunks.append(Hunk(region.start, region.end, written))
    return hunks


def _written(region: Region, block: EditBlock, repair: "_Repair | None") -> tuple[str, ...] | None:
    """The new lines of a region without drift; None where their indentation is open."""
    if repair is None:
        return block.replace[region.new_low : region.new_high]
    lines = [
        repair.line(at, at - region.new_low + region.low, region.high) for at in range(region.new_low, region.new_high)
    ]
    kept = tuple(line for line in lines if line is not None)
    return kept if len(kept) == len(lines) else None


def line_changes(old: Sequence[str], new: Sequence[str], *, most: int = _MOST_CELLS) -> list[Opcode]:
    """The opcodes (as in difflib, without `equal`) from old to new; a single one beyond `most` pairs."""
    low, most = 0, min(len(old), len(new))
    while low < most and old[low] == new[low]:
        low += 1
    high = 0
    while high < most - low and old[-1 - high] == new[-1 - high]:
        high += 1
    old_end, new_end = len(old) - high, len(new) - high
    if low == old_end and low == new_end:
        return []
    if (old_end - low) * (new_end - low) > most or low in (old_end, new_end):
        return [("replace", low, old_end, low, new_end)]
    matcher = SequenceMatcher(None, old[low:old_end], new[low:new_end], autojunk=False)
    return [
        (tag, i1 + low, i2 + low, j1 + low, j2 + low) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"
    ]


def _difference(block: EditBlock, found: Alignment, lines: Sequence[str]) -> tuple[list[Opcode], bool | None]:
    """The opcodes from SEARCH to REPLACE, and whether REPLACE drifts as SEARCH does (None: unknown).

    A model often copies SEARCH wrongly but writes REPLACE well; then REPLACE is compared with the file.
    """
    if found.tier is Tier.EXACT:
        return line_changes(block.search, block.replace, most=_MOST_EXACT_CELLS), False
    search = [line.rstrip() for line in block.search]
    replace = [line.rstrip() for line in block.replace]
    own = [line if pair is None else lines[pair].rstrip() for line, pair in zip(search, found.pairs, strict=True)]
    by_search, by_file = line_changes(search, replace), line_changes(own, replace)
    if block.lines_only and len(block.search) > 1 and not _keeps_indentation(block, found, lines):
        return by_search, _added_lines_drift(block, found, by_search, lines)
    as_search, as_file = _likeness(search, replace, by_search), _likeness(own, replace, by_file)
    if as_file > as_search:
        return by_file, False
    if as_file == as_search == (0, 0):
        new, mine, theirs = (indent_of(next(filter(None, text), "")) for text in (replace, search, own))
        if new == theirs != mine:
            return by_file, found.tier is Tier.TYPOGRAPHY
    return by_search, True


def _likeness(old: Sequence[str], new: Sequence[str], opcodes: Sequence[Opcode]) -> tuple[int, int]:
    """How alike two texts are: the visible lines they share at both ends, then those they share at all."""
    head, tail = 0, 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    ends = sum(not is_blank(line) for line in (*old[:head], *old[len(old) - tail :]))
    changed = sum(not is_blank(old[at]) for _, low, high, _, _ in opcodes for at in range(low, high))
    return ends, sum(not is_blank(line) for line in old) - changed


def _keeps_indentation(block: EditBlock, found: Alignment, lines: Sequence[str]) -> bool:
    """Whether no line but the first is indented otherwise than in the file."""
    return all(
        pair is None or is_blank(line) or indent_of(line) == indent_of(lines[pair])
        for line, pair in zip(block.search[1:], found.pairs[1:], strict=True)
    )


def _added_lines_drift(
    block: EditBlock, found: Alignment, opcodes: Sequence[Opcode], lines: Sequence[str]
) -> bool | None:
    """Whether the added lines of a diff are indented as its context or as the file; None when nothing tells.

    In a diff the context stands once, so only the added lines themselves, beside the lines they follow,
    precede or replace, can tell.
    """
    like_search = like_file = 0
    for _, low, high, new_low, new_high in opcodes:
        added = [indent_of(line) for line in block.replace[new_low:new_high] if not is_blank(line)]
        beside = range(low, high) if high > low else range(max(0, low - 1), min(low + 1, len(block.search)))
        paired = [(block.search[at], lines[pair]) for at in beside if (pair := found.pairs[at]) is not None]
        visible = [(indent_of(mine), indent_of(theirs)) for mine, theirs in paired if not is_blank(mine)]
        if not added or not visible:
            continue
        base, mine, theirs = min(added, key=len), [pair[0] for pair in visible], [pair[1] for pair in visible]
        if high > low:
            mine, theirs = [min(mine, key=len)], [min(theirs, key=len)]
        like_search += base in mine and base not in theirs
        like_file += base in theirs and base not in mine
    return like_search > 0 if bool(like_search) != bool(like_file) else None


class _Repair:
    """Takes the drift that SEARCH shows out of the lines of REPLACE."""

    def __init__(self, block: EditBlock, search: Sequence[str], found: Alignment, lines: Sequence[str]) -> None:
        """`search` is SEARCH as the model wrote it; the block may have the file's form of it already."""
        paired = [(line, lines[pair]) for line, pair in zip(search, found.pairs, strict=True) if pair is not None]
        visible = [(mine, theirs) for mine, theirs in paired if not is_blank(mine)]
        self._block = block
        self._rule: IndentRule | None = learn_indentation(
            [(indent_of(mine), indent_of(theirs)) for mine, theirs in visible]
        )
        real = "".join(theirs for _, theirs in paired)
        drift = {char for mine, _ in paired for char in mine if char in TYPOGRAPHIC and char not in real}
        if drift & _CURLY:
            drift |= {char for char in _CURLY if char not in real}
        self._folding = str.maketrans({char: TYPOGRAPHIC[char] for char in drift})
        self._strip_end = any(mine != mine.rstrip() and theirs == theirs.rstrip() for mine, theirs in paired)
        self._theirs = {
            at: lines[pair] for at, pair in enumerate(found.pairs) if pair is not None and not is_blank(lines[pair])
        }

    def line(self, at: int, beside: int, limit: int) -> str | None:
        """REPLACE line `at` as the file has it; `beside` (below `limit`) is the SEARCH line it stands for."""
        line = self._block.replace[at].translate(self._folding)
        if self._strip_end or is_blank(line):
            line = line.rstrip()
        if self._rule is not None:
            return self._rule.apply(line, is_first=at == 0)
        if is_blank(line):
            return line
        if beside < limit and beside in self._theirs and indent_of(self._block.search[beside]) == indent_of(line):
            return indent_of(self._theirs[beside]) + line.lstrip()
        return None


def _unproven_deletion(
    block: EditBlock, found: Alignment, opcodes: Sequence[Opcode], lines: Sequence[str]
) -> Conflict | None:
    """A similar line may go when it differs by a slip of the pen, never by a digit or an operator."""
    for _, low, high, new_low, new_high in opcodes:
        written = "\n".join(block.replace[new_low:new_high])
        for at in range(low, high):
            pair = found.pairs[at]
            if pair is None:
                continue
            mine, theirs = block.search[at].strip(), lines[pair].strip()
            if mine == theirs:
                continue
            slip = slipped_word(mine, theirs)
            if slip is None or slip in written:
                return Conflict(ErrorCode.CHANGED_SINCE, pair)
    return None


def slipped_word(mine: str, theirs: str) -> str | None:
    """The one misspelt word of `mine` when that is all that differs from `theirs`."""
    left, right = _words(mine), _words(theirs)
    if len(left) != len(right):
        return None
    wrong = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
    if len(wrong) != 1:
        return None
    word, meant = wrong[0]
    long_enough = len(word) >= 4 and len(meant) >= 4 and word.isalpha() and meant.isalpha()
    return word if long_enough and distance.Levenshtein.distance(word, meant, score_cutoff=2) <= 2 else None


def _words(line: str) -> list[str]:
    words: list[str] = [""]
    for char in line:
        if char.isalpha() and words[-1].isalpha():
            words[-1] += char
        else:
            words.append(char)
    return words
