"""Follow an edit while a model writes it: what it changes so far, in time linear in the text."""

from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from treadle.editing.apply import Application, apply_edit
from treadle.editing.edit_results import EditError, EditFormat, EditResult, LineRange, Section, Tier
from treadle.editing.markers import MarkerParser
from treadle.editing.patches import chunk_section, is_chunk_edge


class BlockState(StrEnum):
    """How far a block has come."""

    SEARCHING = "searching"
    WRITING = "writing"
    APPLIED = "applied"
    REFUSED = "refused"


class BlockPreview(Struct, frozen=True):
    """One block of a growing edit, counted from 1.

    `lines` is its place in the text as the blocks before it left it, known while the block grows when
    its search text fits exactly. `arrived` holds the replacement lines that came with the last chunk only.
    """

    number: int
    state: BlockState
    lines: LineRange | None = None
    tier: Tier | None = None
    arrived: tuple[str, ...] = ()
    error: EditError | None = None


class EditStream:
    """Takes the text of an edit in chunks of any size and previews it on `pre`.

    After the first refused block the rest is only counted: the edit as a whole will be refused.
    """

    def __init__(self, form: EditFormat, pre: str, *, file_name: str | None = None) -> None:
        self._form = form
        self._pre = pre
        self._file_name = file_name
        self._application = Application(pre)
        self._parser = MarkerParser()
        self._chunk: list[str] = []
        self._parts: list[str] = []
        self._tail: list[str] = []
        self._blocks: list[BlockPreview] = []
        self._changed: set[int] = set()
        self._arrived: dict[int, list[str]] = {}
        self._failed: EditError | None = None
        self._take: Callable[[str], None] = (
            self._take_marked if form is EditFormat.SEARCH_REPLACE else self._take_patched
        )

    @property
    def blocks(self) -> tuple[BlockPreview, ...]:
        """Every block seen so far as it stands now, without the lines that arrived."""
        return tuple(self._blocks)

    def feed(self, chunk: str) -> tuple[BlockPreview, ...]:
        """The blocks that this chunk started or changed."""
        self._parts.append(chunk)
        self._changed, self._arrived = set(), {}
        *whole, rest = chunk.split("\n")
        for piece in whole:
            self._tail.append(piece)
            self._take("".join(self._tail).removesuffix("\r"))
            self._tail = []
        self._tail.append(rest)
        return tuple(
            replace(self._blocks[number - 1], arrived=tuple(self._arrived.get(number, ())))
            for number in sorted(self._changed)
        )

    def text(self) -> str:
        """The text with every whole block applied so far."""
        return self._application.text()

    def finish(self) -> EditResult | EditError:
        """The same as `apply_edit` on the whole text."""
        text = "".join(self._parts)
        if self._form is EditFormat.SEARCH_REPLACE and self._failed is None and self._blocks:
            return self._finish_marked(text)
        return apply_edit(self._form, self._pre, text, file_name=self._file_name)

    def _finish_marked(self, text: str) -> EditResult | EditError:
        """The blocks are applied already, but for a last one that no newline ends."""
        if not text.endswith("\n"):
            self._take("".join(self._tail))
            self._tail = []
        last = self._parser.close(ended=text.endswith("\n"))
        if isinstance(last, Section):
            self._apply(last)
        if self._failed is not None or isinstance(last, EditError):
            return apply_edit(self._form, self._pre, text, file_name=self._file_name)
        return self._application.result()

    def _take_marked(self, line: str) -> None:
        if self._failed is not None:
            return
        before = self._parser.open
        outcome = self._parser.push(line)
        block = self._parser.open
        if isinstance(outcome, EditError):
            self._refuse(outcome)
        elif outcome is not None:
            self._apply(outcome)
        elif block is not None and before is None:
            self._open()
        elif block is not None and block.separators:
            if len(block.body) - 1 == block.separators[0]:
                place = self._application.find_exact(tuple(block.body[:-1]))
                self._update(replace(self._blocks[-1], state=BlockState.WRITING, lines=place))
            else:
                self._arrive(line)

    def _take_patched(self, line: str) -> None:
        if self._form in (EditFormat.WHOLE, EditFormat.OLD_NEW):
            return
        if is_chunk_edge(line) and any(not each.startswith("@@") for each in self._chunk):
            self._end_chunk()
        if line.startswith("@@"):
            if not self._chunk:
                self._open()
            self._chunk.append(line)
        elif self._chunk:
            self._chunk.append(line)
            if line.startswith("+"):
                self._arrive(line[1:])

    def _end_chunk(self) -> None:
        section = chunk_section(self._chunk)
        self._chunk = []
        if section is not None and self._failed is None:
            self._apply(section)

    def _open(self) -> None:
        self._blocks.append(BlockPreview(len(self._blocks) + 1, BlockState.SEARCHING))
        self._changed.add(len(self._blocks))

    def _arrive(self, line: str) -> None:
        self._arrived.setdefault(len(self._blocks), []).append(line)
        self._update(replace(self._blocks[-1], state=BlockState.WRITING))

    def _apply(self, section: Section) -> None:
        error = self._application.add(section)
        if error is not None:
            self._refuse(error)
            return
        done = self._application.last()
        self._update(replace(self._blocks[-1], state=BlockState.APPLIED, lines=done.lines, tier=done.tier))

    def _refuse(self, error: EditError) -> None:
        self._failed = error
        if not self._blocks:
            self._open()
        self._update(replace(self._blocks[-1], state=BlockState.REFUSED, error=error))

    def _update(self, block: BlockPreview) -> None:
        self._blocks[-1] = block
        self._changed.add(block.number)
