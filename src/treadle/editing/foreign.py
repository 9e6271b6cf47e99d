"""Signs that new text was escaped, or indented, otherwise than the file it goes into."""

import re
from collections.abc import Sequence

from treadle.editing.drift import ENTITY, PAIRED_QUOTES, entity_char
from treadle.editing.line_keys import TextViews, indent_of

_CURLY = "“”‘’"
_CURLY_AS_CODE = re.compile(rf"[=(\[{{,:]\s*[{_CURLY}]|[{_CURLY}]\s*[)\]}};:]|[{_CURLY}][\"']|[\"'][{_CURLY}]")
_PLAIN_QUOTE = re.compile(r'(?<!\\)"')
_ENOUGH_LINES = 20


def escaped_sign(added: Sequence[str], search: Sequence[str], views: TextViews) -> str | None:
    """An escape in new lines that cannot be code there and that the file never has; None when there is none.

    Models escape whole replies by mistake. Where the search text has nothing to escape, only the new lines
    show it. What either text also has unescaped was not escaped by mistake.
    """
    bare = [PAIRED_QUOTES.sub("", line) for line in added]
    text, mine = views.exact.joined, "\n".join((*search, *added))
    plain = ENTITY.sub("", mine)
    found = (match for line in bare for match in ENTITY.finditer(line))
    entity = next((match[0] for match in found if entity_char(match) not in plain), None)
    if entity is not None and "</" not in text and ENTITY.search(text) is None:
        return entity
    if any('\\"' in line for line in bare) and '\\"' not in text and _PLAIN_QUOTE.search(mine) is None:
        return '\\"'
    if any(map(_CURLY_AS_CODE.search, added)) and not any(char in text for char in _CURLY):
        return "“"
    return None


def has_escapes(added: Sequence[str], views: TextViews) -> bool:
    """Whether new lines have an escape that the file has nowhere: enough where another block drifted."""
    text, new = views.exact.joined, "\n".join(added)
    return any((ENTITY.search(new) and not ENTITY.search(text), '\\"' in new and '\\"' not in text)) or any(
        char in new and char not in text for char in _CURLY
    )


def indented_as_file(added: Sequence[str], views: TextViews) -> tuple[str, ...]:
    """New lines with tabs for blanks or blanks for tabs where the whole file is indented the other way."""
    indents = [indent_of(line) for line in added]
    if any("\t" in indent for indent in indents):
        if views.space_indented >= _ENOUGH_LINES and not views.tab_indented:
            unit = " " * views.space_width
            return tuple(_expanded(line, indent, unit) for line, indent in zip(added, indents, strict=True))
    elif (
        any(len(indent) > 1 for indent in indents) and views.tab_indented >= _ENOUGH_LINES and not views.space_indented
    ):
        width = 4 if all(len(indent) % 4 == 0 for indent in indents) else 2
        return tuple(
            indent.replace(" " * width, "\t") + line.lstrip() for line, indent in zip(added, indents, strict=True)
        )
    return tuple(added)


def _expanded(line: str, indent: str, unit: str) -> str:
    return indent.replace("\t", unit) + line[len(indent) :]
