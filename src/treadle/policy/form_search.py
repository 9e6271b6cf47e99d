"""Many texts looked for at once, in one pass: by blocks of bytes of which each occurrence holds one whole."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from msgspec import Struct

_Code = Literal["Q", "I"]
_SIZES: tuple[tuple[int, int, _Code], ...] = ((15, 8, "Q"), (0, 4, "I"))
"""Bytes that a form has at least, bytes of its blocks, and how memory is read as such blocks."""


class _Blocks(Struct, frozen=True):
    """The blocks with which forms may begin, wherever they stand in a text that is read `step` blocks apart."""

    size: int
    code: _Code
    step: int
    known: frozenset[int]
    forms: Mapping[int, tuple[str, ...]]


class Forms(Struct, frozen=True):
    """Texts with their names; `least` is how long the shortest is, in bytes."""

    names: Mapping[str, str]
    least: int
    blocks: tuple[_Blocks, ...]

    def candidates(self, data: bytes) -> Iterator[str]:
        """Give the forms that may stand in some bytes: all that do, and hardly another."""
        given: set[str] = set()
        for blocks in self.blocks:
            read = memoryview(data)[: len(data) // blocks.size * blocks.size].cast(blocks.code)
            for block in blocks.known.intersection(read[:: blocks.step]):
                given.update(blocks.forms[block])
        return (form for form in self.names if form in given) if given else iter(())

    def places(self, data: bytes) -> Iterator[tuple[int, int, str]]:
        """Find each form in some bytes: begin, end and name."""
        for form in self.candidates(data):
            needle = in_bytes(form)
            at = data.find(needle)
            while at >= 0:
                yield at, at + len(needle), self.names[form]
                at = data.find(needle, at + len(needle))


def in_bytes(text: str) -> bytes:
    """Give a text in UTF-8, with what is no character as it is."""
    return text.encode(errors="surrogatepass")


def forms_of(names: Mapping[str, str]) -> Forms:
    """Prepare to look for texts, each with its name and of at least 7 bytes."""
    parted: dict[int, list[str]] = {}
    for form in names:
        parted.setdefault(next(least for least, *_ in _SIZES if len(in_bytes(form)) >= least), []).append(form)
    blocks = tuple(_blocks(parted[least], size, code) for least, size, code in _SIZES if least in parted)
    return Forms(names, min((len(in_bytes(form)) for form in names), default=0), blocks)


def _blocks(forms: Iterable[str], size: int, code: _Code) -> _Blocks:
    shortest = min(len(in_bytes(form)) for form in forms)
    # A form of so many bytes holds a whole block of those that are read, which begins within its first ones.
    step = (shortest + 1) // size - 1
    found: dict[int, tuple[str, ...]] = {}
    for form in forms:
        data = in_bytes(form)
        for block in {int.from_bytes(data[at : at + size], sys.byteorder) for at in range(step * size)}:
            found[block] = (*found.get(block, ()), form)
    return _Blocks(size, code, step, frozenset(found), found)
