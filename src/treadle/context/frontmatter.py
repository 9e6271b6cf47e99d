"""The header of a rules, skill or command file: the part of YAML that such headers use, read without a library."""

from collections.abc import Mapping, Sequence
from textwrap import dedent
from typing import TypeAlias

from msgspec import Struct

from treadle.protocol.patterns import regex

HeaderValue: TypeAlias = str | bool | tuple[str, ...]

LONGEST_HEADER = 16_384
"""Characters; a header that does not end within them is broken."""

_FENCE = "---"
_ENTRY = regex(r"([A-Za-z_][\w.-]{0,63})[ \t]*:(?!//)[ \t]*(.*)")
_MAP_ENTRY = regex(r"(\"[^\"]*\"|'[^']*'|[\w.*/?-]{1,64})[ \t]*:(?:(?:[ \t]+|(?<=[\"']:))(.*))?")
_BLOCK = regex(r"[|>][+-]?[1-9]?[+-]?")
_ESCAPE = regex(r"\\(.)")
_BRACES = regex(r"\{([^{}]*)\}")
_ESCAPES = {"n": "\n", "t": "\t"}
_TRUTHS = {"true": True, "false": False, "yes": True, "no": False}


class Header(Struct, frozen=True, kw_only=True):
    """What the header says, and the text below it. `problem` says what of it cannot be read; the rest of it counts.

    `maps` are the entries that are maps, as `tools: {write: false}`; what is nested in one of theirs is a text.
    """

    values: Mapping[str, HeaderValue]
    body: str
    problem: str = ""
    maps: Mapping[str, Mapping[str, str]] = {}

    def text(self, name: str) -> str:
        """Give a value as text; empty where there is none."""
        found = self.values.get(name, "")
        if isinstance(found, bool):
            return str(found).lower()
        return ", ".join(found) if isinstance(found, tuple) else found

    def truth(self, name: str) -> bool:
        """Whether a value is true; a text such as "true" in quotes is too."""
        return self.values.get(name) in (True, "true")

    def listed(self, name: str) -> tuple[str, ...] | None:
        """Give a value as a list: a text is split at its commas, but not within braces. None where there is none."""
        found = self.values.get(name)
        if isinstance(found, str):
            return tuple(part for one in _split(found, "{", "}") if (part := one.strip()))
        return found if isinstance(found, tuple) else None


def read_header(text: str) -> Header:
    """Split a file into its header and its body. Never raises: what cannot be read is said in `problem`."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    below = text.lstrip()
    if below != text:
        header = _read_at_start(below)  # a line that begins with blanks is no fence, and a lone rule no header
        is_one = header.values and not header.problem and text[: -len(below)].endswith("\n")
        return header if is_one else Header(values={}, body=text)
    return _read_at_start(text)


def _read_at_start(text: str) -> Header:
    lines = text[: LONGEST_HEADER + 1].split("\n")
    if lines[0].rstrip() != _FENCE:
        return Header(values={}, body=text)
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), None)
    if end is None or sum(len(line) + 1 for line in lines[:end]) > LONGEST_HEADER:
        return Header(values={}, body=text, problem="Its header begins with --- and has no --- at its end.")
    rest = sum(len(line) + 1 for line in lines[: end + 1])
    maps: dict[str, dict[str, str]] = {}
    values, problem = _read_entries(dedent("\n".join(lines[1:end])).split("\n") if end > 1 else (), maps)
    return Header(values=values, body=text[rest:].lstrip("\n"), problem=problem, maps=maps)


def _read_entries(lines: Sequence[str], maps: dict[str, dict[str, str]]) -> tuple[dict[str, HeaderValue], str]:
    """Read the lines of a header. What is nested under a key, such as `metadata`, goes to `maps` but for lists."""
    values: dict[str, HeaderValue] = {}
    problem, at = "", 0
    while at < len(lines):
        line, number = lines[at], at + 2
        below = at + 1
        if not line.strip() or line.lstrip().startswith("#"):
            at = below
            continue
        entry = _ENTRY.fullmatch(line.rstrip())
        while below < len(lines) and _is_below(lines[below]):
            below += 1
        if entry is None:
            problem = problem or f"Line {number} of its header is not `name: value`."
        else:
            found = _map(entry[2] or "", lines[at + 1 : below])
            if found is not None:
                maps[entry[1]] = found
            value = _value(entry[2] or "", lines[at + 1 : below])
            if value is None:
                problem = problem or f"Line {number} of its header has a value that cannot be read."
            else:
                if entry[1] in values:
                    problem = problem or f"Its header has {entry[1]!r} more than once; the last one applies."
                values[entry[1]] = value
        at = below
    return values, problem


def _is_below(line: str) -> bool:
    """Whether a line belongs to the entry above it: it is indented, empty, an item of a list, or an end."""
    return not line.strip() or line[0] in " \t]}" or line.startswith("- ") or line.rstrip() == "-"


def _value(said: str, below: Sequence[str]) -> HeaderValue | None:
    """Read one value; None for what is not closed."""
    said = _without_comment(said.strip())
    if _BLOCK.fullmatch(said):
        joint = "\n" if said[0] == "|" else " "
        return joint.join(line.strip() for line in below).strip()
    inside = [line.strip() for line in below if line.strip() and not line.lstrip().startswith("#")]
    if said.startswith("["):
        return _flow(" ".join([said, *inside]))
    if not said and inside and inside[0].startswith("-"):
        items = [_scalar(_without_comment(item[1:].strip())) for item in inside if item.startswith("-")]
        return None if None in items else tuple(str(item) for item in items)
    if not said and (not inside or _ENTRY.fullmatch(inside[0]) or _MAP_ENTRY.fullmatch(inside[0])):
        return ""
    found = _scalar(" ".join([said, *inside]).strip())
    return _TRUTHS.get(found.lower(), found) if found is not None and found == said else found


def _map(said: str, below: Sequence[str]) -> dict[str, str] | None:
    """Read an entry that is a map, in braces or in indented lines; None for what is none."""
    said = _without_comment(said.strip())
    inside = [line for line in below if line.strip() and not line.lstrip().startswith("#")]
    if said.startswith("{") and (whole := " ".join([said, *map(str.strip, inside)])).endswith("}"):
        lines = [part.strip() for part in _split(whole[1:-1], "{[", "}]") if part.strip()]
    elif said or not inside or not _MAP_ENTRY.fullmatch(inside[0].strip()):
        return None
    else:
        lines = dedent("\n".join(inside)).split("\n")
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        entry = _MAP_ENTRY.fullmatch(line.rstrip())
        if entry is not None:
            name = entry[1].strip("\"'")
            text = _without_comment((entry[2] or "").strip())
            found[name] = text if text.startswith("{") else _scalar(text) or ""
        elif name:
            found[name] = f"{found[name]} {_without_comment(line.strip())}".strip()
    return found


def _flow(text: str) -> tuple[str, ...] | None:
    """Read a list in brackets."""
    text = _without_comment(text)
    if not text.endswith("]"):
        return None
    items = [_scalar(part.strip()) for part in _split(text[1:-1], "{[", "}]") if part.strip()]
    return None if None in items else tuple(str(item) for item in items)


def _scalar(text: str) -> str | None:
    """Read a plain or quoted text; None where its quotes are not closed."""
    if text[:1] not in ("'", '"'):
        return text
    quote, inside = text[0], text[1:-1]
    if len(text) < 2 or text[-1] != quote:
        return None
    if quote == "'":
        return inside.replace("''", "'")
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), inside)


def _without_comment(text: str) -> str:
    """Cut a comment off: from a `#` behind a blank that is in no quotes."""
    quote = ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and not _is_escaped(text, at, quote) else quote
        elif char in "'\"" and (at == 0 or text[at - 1] in (*" ,[", char)):  # two in quotes are one
            quote = char
        elif char == "#" and (at == 0 or text[at - 1] in " \t"):
            return text[:at].rstrip()
    return text.rstrip()


def _is_escaped(text: str, at: int, quote: str) -> bool:
    """Whether a quote within double quotes has a backslash before it that has none itself."""
    before = text[:at]
    return quote == '"' and (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _split(text: str, opening: str, closing: str) -> list[str]:
    """Split at commas that are in no brackets and no quotes."""
    parts, depth, quote = [""], 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and not _is_escaped(text, at, quote) else quote
        elif char in "'\"" and (not parts[-1].strip() or text[at - 1] == char):
            quote = char
        elif char in opening:
            depth += 1
        elif char in closing:
            depth = max(0, depth - 1)
        if char == "," and not depth and not quote:
            parts.append("")
        else:
            parts[-1] += char
    return parts


def braces(pattern: str, most: int = 64) -> tuple[str, ...]:
    """Write out the alternatives of a glob, `*.{ts,tsx}`; of very many, the pattern as it is."""
    done: list[str] = []
    waiting = [pattern]
    while waiting:
        one = waiting.pop()
        found = _BRACES.search(one)
        if found is None:
            done.append(one)
        else:
            waiting += [f"{one[: found.start()]}{each}{one[found.end() :]}" for each in found[1].split(",")]
        if len(waiting) + len(done) > most:
            return (pattern,)
    return tuple(sorted(done))
