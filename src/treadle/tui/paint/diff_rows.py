"""Unified diffs as numbered rows: what goes and what comes, with the words that changed."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

from msgspec import Struct

from treadle.present.escape import exact, printable
from treadle.tui.paint.code_lines import MOST_COLOURED, CodePlaces, code_places, in_roles, without_tabs
from treadle.tui.paint.lines import Line, apart, clip, line, wrap
from treadle.tui.paint.theme import Signs

_HEAD = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@ ?(.*)")
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
_MARKER = re.compile(r"[-<]{3,} ?SEARCH>?|={3,}$|[+>]{3,} ?(REPLACE|$)|\*\*\* ")
_ALIKE = 0.4
"""Part of two lines that is the same, from which on single words are marked."""

_GIT = "diff --git "
_GIT_WORDS = (
    *("rename from", "rename to", "copy from", "copy to", "old mode", "new mode", "new file mode"),
    *("deleted file mode", "Binary files"),
)
_MOST, _FIRST, _LAST = 30, 20, 8
_LONGEST_LINE = 2_000
_WIDE = 110


class DiffRow(Struct, frozen=True):
    """One row of a diff: its sign (`+`, `-`, blank for what stays, `⋯` between parts), line number and pieces.

    A piece is a text and whether it changed within the line.
    """

    sign: str
    number: int
    pieces: tuple[tuple[str, bool], ...]


class FileDiff(Struct, frozen=True):
    """The diff of one file; `notes` say what is no line. `section` is the function or class that it begins in.

    `heads` say what became of the file itself: another name, another mode.
    """

    path: str
    rows: tuple[DiffRow, ...]
    heads: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    section: str = ""

    @property
    def counted(self) -> str:
        """How many lines come and go: `+3 -1`; empty where none does."""
        if not self.rows:
            return ""
        return f"+{sum(row.sign == '+' for row in self.rows)} -{sum(row.sign == '-' for row in self.rows)}"


def read_diff(text: str) -> tuple[FileDiff, ...]:
    """Read a unified diff; lines that are none are left out."""
    files: list[FileDiff] = []
    part: list[str] = []
    for one in text.split("\n"):
        if one.startswith(("--- ", _GIT)) and _starts_file(part, one):
            files += _file(part)
            part = []
        part.append(one)
    return (*files, *_file(part))


def _starts_file(before: Sequence[str], one: str) -> bool:
    """Whether a line can begin a file: within a part it is a removed one, and git's words come before the names."""
    headed = one.startswith("--- ") and any(line.startswith(_GIT) for line in before)
    if headed and not any(line.startswith("@@ -") for line in before):
        return False
    return not before or _left_in_part(before) <= 0


def _left_in_part(lines: Sequence[str]) -> int:
    """Count the lines that the last part still has to come."""
    start = next((number for number in range(len(lines) - 1, -1, -1) if lines[number].startswith("@@ -")), None)
    if start is None:
        return 0
    sizes = re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", lines[start])
    if sizes is None:
        return 0
    old, new = (int(size) if size is not None else 1 for size in sizes.groups())
    for one in lines[start + 1 :]:
        old -= one[:1] in ("-", " ", "")
        new -= one[:1] in ("+", " ", "")
    return max(old, new)


def _file(lines: Sequence[str]) -> Iterator[FileDiff]:
    begin = next((number for number, one in enumerate(lines) if one.startswith("@@ -")), len(lines))
    path, heads = _git_heads(lines[:begin])
    if begin == len(lines) and not heads:
        return
    section, rows, notes = "", list[DiffRow](), list[str]()
    before = after = 0
    for one in lines:
        head = _HEAD.match(one)
        if not rows and one.startswith(("--- ", "+++ ")) and not before:
            name = one[4:].split("\t")[0]
            path = name.removeprefix("a/").removeprefix("b/") if name != "/dev/null" else path
        elif head is not None:
            if rows:
                rows.append(DiffRow("⋯", 0, ()))
            before, after, section = int(head[1]), int(head[2]), section or head[3].strip()
        elif one.startswith("\\"):
            notes.append("no line feed at the end of the file")
        elif one[:1] == "-":
            rows.append(DiffRow("-", before, ((one[1:], False),)))
            before += 1
        elif one[:1] == "+":
            rows.append(DiffRow("+", after, ((one[1:], False),)))
            after += 1
        elif one[:1] == " ":
            rows.append(DiffRow(" ", after, ((one[1:], False),)))
            before, after = before + 1, after + 1
    yield FileDiff(path, tuple(_marked(rows)), heads, tuple(dict.fromkeys(notes)), section)


def _git_heads(lines: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Read what git says of a file before its lines: its name, and in words what became of it."""
    words = {key: one.removeprefix(f"{key} ") for one in lines for key in _GIT_WORDS if one.startswith(f"{key} ")}
    named = next((one.partition(" b/")[2] for one in lines if one.startswith(_GIT)), "")
    heads = [
        f"renamed from {words['rename from']}" if "rename from" in words else "",
        f"copied from {words['copy from']}" if "copy from" in words else "",
        f"mode {words['new mode']}, was {words.get('old mode', '')}" if "new mode" in words else "",
        "new file" if "new file mode" in words else "",
        "deleted" if "deleted file mode" in words else "",
        "binary: its content is not shown" if "Binary files" in words or "GIT binary patch" in lines else "",
    ]
    return words.get("rename to", words.get("copy to", named)), tuple(filter(None, heads))


def _marked(rows: Sequence[DiffRow]) -> Iterator[DiffRow]:
    """Mark the words that differ between the lines that go and as many that come right after them."""
    number = 0
    while number < len(rows):
        gone = _run(rows, number, "-")
        come = _run(rows, number + len(gone), "+") if gone else []
        if not gone or not come:
            yield from gone or [rows[number]]
            number += max(1, len(gone))
            continue
        pairs = [_pair(old, new) for old, new in zip(gone, come, strict=False)]
        yield from [old for old, _ in pairs] + gone[len(pairs) :]
        yield from [new for _, new in pairs] + come[len(pairs) :]
        number += len(gone) + len(come)


def _run(rows: Sequence[DiffRow], start: int, sign: str) -> list[DiffRow]:
    end = start
    while end < len(rows) and rows[end].sign == sign:
        end += 1
    return list(rows[start:end])


def _pair(old: DiffRow, new: DiffRow) -> tuple[DiffRow, DiffRow]:
    before, after = _text(old), _text(new)
    if max(len(before), len(after)) > _LONGEST_LINE:
        return old, new
    left, right = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, left, right, autojunk=False)
    same = sum(len("".join(left[one.a : one.a + one.size]).strip()) for one in matcher.get_matching_blocks())
    if same < _ALIKE * max(1, len(before.strip()), len(after.strip())):
        return old, new
    codes = matcher.get_opcodes()
    left_pieces = tuple(("".join(left[a:b]), tag != "equal") for tag, a, b, _, _ in codes if b > a)
    right_pieces = tuple(("".join(right[a:b]), tag != "equal") for tag, _, _, a, b in codes if b > a)
    return DiffRow(old.sign, old.number, left_pieces), DiffRow(new.sign, new.number, right_pieces)


def _text(row: DiffRow) -> str:
    return "".join(text for text, _ in row.pieces)


def diff_lines(text: str, width: int, signs: Signs, *, whole: bool = False) -> list[Line]:
    """Lay out a unified diff; of many rows the first and the last, and how many more there are."""
    shown: list[Line] = []
    for file in read_diff(text):
        shown += _file_lines(file, width)
        for head in file.heads:
            shown += wrap(line(("dim", f"      {exact(head)}")), width, indent=line("      "))
        places = _code_places(file)
        rows = list(zip(file.rows, places, strict=True))
        left_out = 0 if whole or len(rows) <= _MOST else len(rows) - _FIRST - _LAST
        first = rows[:_FIRST] if left_out else rows
        shown += [part for row, of in first for part in _row_lines(row, of, width, signs)]
        if left_out:
            more = line(("dim", f"      {signs.more} {left_out:,} more lines, ctrl-o shows all"))
            shown.append(clip(more, width, signs.more))
            shown += [part for row, of in rows[-_LAST:] for part in _row_lines(row, of, width, signs)]
        for note in file.notes:
            shown += wrap(line(("dim", f"      {note}")), width, indent=line("      "))
    return shown


def from_first_change(rows: list[Line]) -> list[Line]:
    """Leave out of a diff what stands before its first changed line."""
    changed = {"add-row", "del-row"}
    first = next((at for at, row in enumerate(rows) if any(changed & {*roles.split()} for roles, _ in row)), 0)
    return rows[first:]


def _code_places(file: FileDiff) -> list[CodePlaces]:
    """Give the coloured places of each row: each part of the file is read as it was, and as it becomes."""
    found: list[CodePlaces] = [()] * len(file.rows)
    if sum(len(_text(row)) + 1 for row in file.rows) > MOST_COLOURED:
        return found
    start = 0
    for is_gap, part in groupby(file.rows, key=lambda row: row.sign not in _ROLES):
        count = len(list(part))
        for side in () if is_gap else ("-", "+"):
            places = [at for at in range(start, start + count) if file.rows[at].sign in (side, " ")]
            coloured = code_places([_text(file.rows[at]) for at in places], name=file.path)
            for at, of in zip(places, coloured, strict=False):
                found[at] = of
        start += count
    return found


def _file_lines(file: FileDiff, width: int) -> list[Line]:
    row = line("  ", ("bold", exact(file.path)), "  ", *counts(file.counted))
    section = line(("dim", exact(file.section) if width >= _WIDE else ""))
    return [together] if (together := apart(row, section, width)) else wrap(row, width, indent=line("    "))


def is_folded(text: str) -> bool:
    """Whether `diff_lines` leaves rows of a diff out."""
    return any(len(file.rows) > _MOST for file in read_diff(text))


def counts(counted: str) -> Line:
    """Colour `+3 -1`."""
    plus, _, minus = counted.partition(" ")
    return (("add", plus), ("", " "), ("del", minus)) if minus else (("dim", counted),)


_ROLES = {"+": ("add", "add-row", "add-word"), "-": ("del", "del-row", "del-word"), " ": ("dim", "", "")}


def _row_lines(row: DiffRow, places: CodePlaces, width: int, signs: Signs) -> list[Line]:
    if row.sign not in _ROLES:
        return [line(("dim", f"    {signs.gap}"))]
    sign, plain, word = _ROLES[row.sign]
    begin = line((f"dim {plain}", f"  {row.number:>4} "), (f"{sign} {plain}", row.sign), (plain, " "))
    pieces = without_tabs((roles, exact(piece)) for roles, piece in in_roles(row.pieces, places, plain, word))
    # Further rows stand under the text: its own blanks must not count as words.
    return wrap((*begin, *pieces), width, indent=line((f"dim {plain}", f"       {signs.wrapped} ")), keep=9)


_LIVE_ROWS = 8


def live_edit_lines(body: str, width: int, name: str = "") -> list[Line]:
    """Show the end of an edit of a file while it is written: lines that go and lines that come, without markers."""
    rows = [(sign, text) for sign, text in _edit_rows(printable(body)) if sign.strip() or text.strip()][-_LIVE_ROWS:]
    return [clip(row, width) for row in _edit_lines(rows, name)]


def edit_block_lines(body: str, width: int, name: str = "") -> list[Line]:
    """Show one block of an edit whole: lines that go and lines that come, without markers."""
    rows = _edit_lines(list(_edit_rows(body.rstrip("\n"))), name)
    return [part for row in rows for part in wrap(row, width, indent=line("    "), keep=4)]


def _edit_rows(body: str) -> Iterator[tuple[str, str]]:
    """Read blocks of SEARCH and REPLACE, or the lines of a patch: the sign of each line and its text."""
    sign = "-" if "SEARCH" in body else ""
    for one in body.split("\n"):
        if _MARKER.match(one):
            sign = "+" if one.startswith("=") else "-" if "SEARCH" in one else ""
        elif sign or one[:1] not in ("+", "-"):
            yield sign or " ", one
        else:
            yield one[:1], one[1:]


def _edit_lines(rows: Sequence[tuple[str, str]], name: str) -> Iterator[Line]:
    texts = [text for _, text in rows]
    places = code_places(texts, name=name) or [()] * len(texts)
    for (sign, text), of in zip(rows, places, strict=True):
        kind, plain, _ = _ROLES[sign]
        pieces = without_tabs((roles, exact(part)) for roles, part in in_roles([(text, False)], of, plain))
        yield line("  ", (f"{kind} {plain}", sign), (plain, " "), *pieces)
