"""Many texts looked for at once, in one pass: by blocks of four bytes of which each occurrence holds one whole."""

import sys
from collections.abc import Iterator, Mapping

from msgspec import Struct

_SIZE = 4


class Forms(Struct, frozen=True):
    """Texts with their names; `least` is how long the shortest is, in bytes.

    `blocks` are those with which a form may begin, with these forms, wherever it stands in bytes that are read `step`
    blocks apart.
    """

    names: Mapping[str, str]
    least: int
    step: int
    blocks: Mapping[int, tuple[str, ...]]

    def candidates(self, data: bytes) -> Iterator[str]:
        """Give the forms that may stand in some bytes: all that do, and hardly another."""
        read = memoryview(data)[: len(data) // _SIZE * _SIZE].cast("I")
        given = {form for block in self.blocks.keys() & read[:: self.step] for form in self.blocks[block]}
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
    least = min((len(in_bytes(form)) for form in names), default=0)
    # A form of so many bytes holds a whole block of those that are read, which begins within its first ones.
    step = max((least + 1) // _SIZE - 1, 1)
    found: dict[int, tuple[str, ...]] = {}
    for form in names:
        data = in_bytes(form)
        for block in {int.from_bytes(data[at : at + _SIZE], sys.byteorder) for at in range(step * _SIZE)}:
            found[block] = (*found.get(block, ()), form)
    return Forms(names, least, step, found)
