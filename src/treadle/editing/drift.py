"""Take systematic drift out of a block: line numbers, code fences, escapes."""

import re
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from treadle.editing.edit_results import EditBlock, Tier
from treadle.editing.line_keys import is_blank

_NUMBERED = tuple(
    re.compile(pattern)
    for pattern in (
        r"\s*(\d{1,9})\t(.*)",
        r"\s*(\d{1,9})\s*[|│](?: (.*)|$)",
        r"\s*(\d{1,9})\s*[|│](.*)",
        r"\s*(\d{1,9})→(.*)",
        r"\s*(\d{1,9}):(?: (.*)|$)",
        r"\s*(\d{1,9}):(.*)",
    )
)
PAIRED_QUOTES = re.compile(r"(?<!\\)(?:\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`)")
_LONE_QUOTE = re.compile(r"(?<![A-Za-z])'|'(?![A-Za-z])")
ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|#0*39|#0*34|#[xX]0*27|#[xX]0*22|#0*60|#0*62|#0*38);")
_ENTITY_CHARS = {
    "lt": "<", "#60": "<", "gt": ">", "#62": ">", "amp": "&", "#38": "&",
    "quot": '"', "#34": '"', "#x22": '"', "apos": "'", "#39": "'", "#x27": "'",
}  # fmt: skip
_SHOWN = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|r)")
_HIDDEN_KINDS = frozenset({"Cc", "Cf", "Cs"})
_LONE_BYTES = 0xDC00
_BACKSLASHED = re.compile(r"\\([\"'\\/nrt])")
_BACKSLASH_CHARS = {"n": "\n", "r": "", "t": "\t"}


class Interpretation(Struct, frozen=True):
    """A block as the model may have meant it, and the drift that was taken out of it."""

    tier: Tier
    block: EditBlock


def readings_without_drift(block: EditBlock) -> Iterator[Interpretation]:
    """Every other reading of a block whose SEARCH shows the signs of a known drift, the likeliest first."""
    yield from _without_fence(block)
    yield from _without_line_numbers(block)
    yield from _without_entities(block)
    yield from _without_escaped_newlines(block)
    yield from _without_escaped_quotes(block)


def readings_as_shown(block: EditBlock) -> Iterator[EditBlock]:
    """Readings in which the escapes of SEARCH are the control characters that a page of a file shows so.

    An escape from `\\x80` on is such a character, or a byte that is no UTF-8.
    """
    for lone in (0, _LONE_BYTES):
        used = {
            match[0]: char
            for line in block.search
            for match in _SHOWN.finditer(line)
            if (char := _shown_char(match, lone)) is not None
        }
        if not used or (lone and max(used.values()) < chr(lone)):
            continue

        read = partial(_SHOWN.sub, partial(_char_or_text, used))
        exact = block.exact and replace(block.exact, old=read(block.exact.old), new=read(block.exact.new))
        yield replace(_mapped(block, read), exact=exact)


def _char_or_text(used: Mapping[str, str], match: re.Match[str]) -> str:
    return used.get(match[0], match[0])


def _shown_char(match: re.Match[str], lone: int) -> str | None:
    """The character that is shown as an escape; None for one that is shown as itself. `lone` is added to a byte."""
    digits = match[1] or match[2] or match[3]
    number = int(digits, 16) if digits else ord("\r")
    if match[1] and number >= 0x80:
        number += lone
    char = chr(number) if number <= sys.maxunicode else ""
    return char if char and unicodedata.category(char) in _HIDDEN_KINDS and char not in "\t\n" else None


def _without_fence(block: EditBlock) -> Iterator[Interpretation]:
    search = _unfenced(block.search)
    if search is not None:
        yield Interpretation(
            Tier.FENCE, replace(block, search=search, replace=_unfenced(block.replace) or block.replace)
        )


def _unfenced(lines: tuple[str, ...]) -> tuple[str, ...] | None:
    if len(lines) < 2 or not lines[0].lstrip().startswith("```") or lines[-1].strip() != "```":
        return None
    return lines[1:-1]


def _without_line_numbers(block: EditBlock) -> Iterator[Interpretation]:
    for pattern in _NUMBERED:
        found = [pattern.fullmatch(line) for line in block.search if not is_blank(line)]
        matches = [match for match in found if match is not None]
        if not matches or len(matches) < len(found):
            continue
        numbers = [int(match[1]) for match in matches]
        if any(later <= earlier for earlier, later in pairwise(numbers)):
            continue
        yield Interpretation(
            Tier.LINE_NUMBERS,
            replace(
                block,
                search=tuple(_unnumbered(line, pattern) for line in block.search),
                replace=tuple(_unnumbered(line, pattern) for line in block.replace),
                hint=numbers[0],
            ),
        )


def _unnumbered(line: str, pattern: re.Pattern[str]) -> str:
    match = pattern.fullmatch(line)
    return line if match is None else match[2] or ""


def _without_entities(block: EditBlock) -> Iterator[Interpretation]:
    """Decode the entities that SEARCH uses, and those it has no plain character for."""
    search, new = "\n".join(block.search), "\n".join(block.replace)
    used = {entity_char(match) for match in ENTITY.finditer(search)}
    if not used:
        return
    # A character that stands plain in the model's text was not escaped, so its entity there is content.
    chars = used | {char for char in "<>&\"'" if char not in ENTITY.sub("", search + new)}

    def decoded(line: str) -> str:
        return ENTITY.sub(lambda match: char if (char := entity_char(match)) in chars else match[0], line)

    yield Interpretation(Tier.ENTITIES, _mapped(block, decoded))


def entity_char(match: re.Match[str]) -> str:
    return _ENTITY_CHARS[re.sub(r"(?<=#)0+|(?<=#x)0+", "", match[1].lower())]


def _without_escaped_newlines(block: EditBlock) -> Iterator[Interpretation]:
    """One line with `\\n` in it that stands for several lines."""
    if len(block.search) != 1 or "\\n" not in block.search[0] or len(block.replace) > 1:
        return
    for decode in (lambda text: text.replace("\\n", "\n"), _decoded_backslashes):
        old, new = decode(block.search[0]), decode("".join(block.replace))
        if old.endswith("\n") and (not new or new.endswith("\n")):
            old, new = old.removesuffix("\n"), new.removesuffix("\n")
        search, replaced = tuple(old.split("\n")), tuple(new.split("\n")) if new else ()
        if not _cuts_strings([line for line in replaced if line not in search]):
            yield Interpretation(Tier.ESCAPES, replace(block, search=search, replace=replaced))


def _cuts_strings(lines: Sequence[str]) -> bool:
    """Whether decoding cut a string literal in two: a line has a quote without its partner."""
    return any(line.count('"') % 2 or _LONE_QUOTE.search(PAIRED_QUOTES.sub("", line)) for line in lines)


def _without_escaped_quotes(block: EditBlock) -> Iterator[Interpretation]:
    if not any('\\"' in line or "\\'" in line for line in block.search):
        return
    yield Interpretation(Tier.ESCAPES, _mapped(block, lambda line: line.replace('\\"', '"').replace("\\'", "'")))
    yield Interpretation(Tier.ESCAPES, _mapped(block, lambda line: line.replace('\\"', '"')))
    yield Interpretation(Tier.ESCAPES, _mapped(block, lambda line: re.sub(r"\\([\"'\\])", r"\1", line)))


def _decoded_backslashes(text: str) -> str:
    return _BACKSLASHED.sub(lambda match: _BACKSLASH_CHARS.get(match[1], match[1]), text)


def _mapped(block: EditBlock, change: Callable[[str], str]) -> EditBlock:
    return replace(block, search=tuple(map(change, block.search)), replace=tuple(map(change, block.replace)))
