"""How a model's indentation maps to the file's, learnt from the lines both have."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

IndentPair = tuple[str, str]

_TAB_WIDTHS = (4, 2, 8, 3)


class IndentRule(Struct, frozen=True):
    """Maps an indentation of the model to one of the file.

    `convert` gives None where nothing is known. `first` holds for the first line alone: models lose the
    indentation of the first line when their text is stripped.
    """

    convert: Callable[[str], str | None]
    first: IndentPair | None = None

    def apply(self, line: str, *, is_first: bool) -> str | None:
        """The line with the file's indentation, or None."""
        body = line.lstrip()
        if not body:
            return line
        indent = line[: len(line) - len(body)]
        if is_first and self.first is not None and indent == self.first[0]:
            return self.first[1] + body
        mapped = self.convert(indent)
        return None if mapped is None else mapped + body


def learn_indentation(pairs: Sequence[IndentPair]) -> IndentRule | None:
    """The rule behind pairs of (model's, file's) indentation in line order; None when they contradict."""
    if all(model == file for model, file in pairs):
        return IndentRule(_same)
    rest = pairs[1:]
    if rest and not pairs[0][0] and all(model == file for model, file in rest):
        return IndentRule(_same, first=pairs[0])
    convert = _learn(pairs)
    if convert is not None:
        return IndentRule(convert)
    convert = _learn(rest)
    return None if convert is None or pairs[0][0] else IndentRule(convert, first=pairs[0])


def _same(indent: str) -> str | None:
    return indent


def _replaced(old: str, new: str, indent: str) -> str | None:
    return indent.replace(old, new)


def _learn(pairs: Sequence[IndentPair]) -> Callable[[str], str | None] | None:
    known = dict(pairs)
    if not pairs or any(known[model] != file for model, file in pairs):
        return None
    shift = _shift(known) or _tab_width(known)

    def convert(indent: str) -> str | None:
        if indent in known:
            return known[indent]
        if shift is not None:
            return shift(indent)
        base = max((model for model in known if indent.startswith(model)), key=len, default=None)
        return None if base is None else known[base] + indent[len(base) :]

    return convert


def _shift(known: dict[str, str]) -> Callable[[str], str | None] | None:
    """A constant prefix that the model added or left out."""
    model, file = next(iter(known.items()))
    if len(file) > len(model):
        added = file[: len(file) - len(model)]
        if all(theirs == added + mine for mine, theirs in known.items()):
            return lambda indent: added + indent
    extra = model[: max(0, len(model) - len(file))]
    if extra and all(mine == extra + theirs for mine, theirs in known.items()):
        return lambda indent: indent.removeprefix(extra) if indent.startswith(extra) else None
    return None


def _tab_width(known: dict[str, str]) -> Callable[[str], str | None] | None:
    """Tabs written as a constant number of blanks, or the other way round."""
    for width in _TAB_WIDTHS:
        blanks = " " * width
        if all("\t" not in theirs and mine.replace("\t", blanks) == theirs for mine, theirs in known.items()):
            return partial(_replaced, "\t", blanks)
        if all("\t" not in mine and theirs.replace("\t", blanks) == mine for mine, theirs in known.items()):
            return partial(_replaced, blanks, "\t")
    return None
