"""A mention of a file while it is being written: where it is in a text, and how a path takes its place."""

import re

from msgspec import Struct

from treadle.app.session.mentions.mention_text import LINE_RANGE, MENTION_START, PUNCTUATION

_BEGUN = re.compile(rf'{MENTION_START}(?:"([^"\n]*)|([^\s"]*))\Z')
_ENDS_IN_LINES = re.compile(rf"{LINE_RANGE}\Z")
_AFTER = re.compile(rf'"?(?:{LINE_RANGE})?')
_ESCAPE = re.compile(r"\\(?:[\\nrt]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})?")


class Mention(Struct, frozen=True):
    """A mention that is being written: from `start` to `end` in the text, the path as far as it is there, its lines."""

    start: int
    end: int
    path: str
    lines: str = ""


def mention_at(text: str, cursor: int) -> Mention | None:
    """Find the mention whose end is at the cursor."""
    line = text.rfind("\n", 0, cursor) + 1
    found = _BEGUN.search(text[line:cursor])
    if found is None:
        return None
    start, quoted = line + found.start(), found[1] is not None
    if quoted:
        after = _AFTER.match(text, cursor)
        rest = after[0] if after is not None and after[0].startswith('"') else ""
        return Mention(start, cursor + len(rest), found[1], rest.removeprefix('"'))
    lines = _ENDS_IN_LINES.search(found[2])
    path = found[2] if lines is None else found[2][: lines.start()]
    return Mention(start, cursor, path, "" if lines is None else lines[0])


def complete(text: str, mention: Mention, path: str) -> tuple[str, int]:
    """Put a path in the place of a mention; gives the text, and where the cursor is then.

    After a file comes a blank; a folder can be followed by what is in it.
    """
    before, after = text[: mention.start], text[mention.end :]
    if path.endswith("/"):
        written = written_path(path)
        return f"{before}@{written}{after}", len(before) + 1 + len(written) - written.endswith('"')
    written = f"@{written_path(path)}{mention.lines}"
    blank = "" if after[:1].isspace() else " "
    return f"{before}{written}{blank}{after}", len(before) + len(written) + 1


def written_path(path: str) -> str:
    """Write a shown name so that it is read as one path: in quotes where it has blanks, or ends as no name does."""
    if not re.search(r'[\s"]', path) and not _ENDS_IN_LINES.search(path) and path[-1:] not in PUNCTUATION:
        return path
    return '"' + "/".join(_without_quotes(part) for part in path.split("/")) + '"'


def _without_quotes(part: str) -> str:
    """Write a quote as an escape of shown names; then a backslash is one, too."""
    if '"' not in part:
        return part
    return _ESCAPE.sub(lambda found: found[0] if len(found[0]) > 1 else 2 * found[0], part).replace('"', "\\x22")
