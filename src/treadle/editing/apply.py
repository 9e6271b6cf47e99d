"""Apply a model's edit to a text: all of its blocks, or none and a refusal."""

from collections.abc import Sequence
from typing import assert_never

from msgspec.structs import replace

from treadle.editing.edit_refusals import refuse_escaped, shown_within
from treadle.editing.edit_results import (
    AppliedBlock,
    Edit,
    EditBlock,
    EditError,
    EditFormat,
    EditResult,
    ErrorCode,
    FileOperation,
    LineRange,
    Section,
    Tier,
    UpdateFile,
)
from treadle.editing.foreign import has_escapes
from treadle.editing.line_keys import is_blank
from treadle.editing.locate import find_exact
from treadle.editing.markers import read_blocks
from treadle.editing.patches import parse_patch, parse_unified
from treadle.editing.place import PlacedBlock, longest_exact, place_block
from treadle.editing.source import Hunk, WorkingText, read_source
from treadle.editing.whole import apply_whole

MOST_REFUSED = 10
"""After so many refused blocks of one edit the rest is not looked at."""

_TELLING = 5
_ESCAPED = (Tier.TYPOGRAPHY, Tier.ENTITIES, Tier.ESCAPES)


def apply_edit(
    form: EditFormat,
    pre: str,
    edit: str | Sequence[Edit],
    *,
    file_name: str | None = None,
    replace_all: bool = False,
) -> EditResult | EditError:
    """The text `pre` after `edit`, or why not; never raises for what a model may write.

    `edit` is the model's text, or the list of exact strings for `OLD_NEW`. `file_name` picks the file of a
    patch over several files; a patch of one file is taken as meant for `pre`. With `replace_all` each
    SEARCH/REPLACE block is applied in every place where its search text stands exactly.
    """
    match form:
        case EditFormat.SEARCH_REPLACE:
            sections, unread = read_blocks(_text_of(edit))
            return _apply_all(pre, _everywhere(sections) if replace_all else sections, unread)
        case EditFormat.OLD_NEW:
            if isinstance(edit, str):
                return EditError(ErrorCode.MALFORMED, "Give a list of edits, each with `old` and `new`.")
            return apply_sections(pre, [Section((_exact_block(each),)) for each in edit])
        case EditFormat.APPLY_PATCH:
            return _apply_operations(pre, parse_patch(_text_of(edit)), file_name)
        case EditFormat.UNIFIED:
            return _apply_operations(pre, parse_unified(_text_of(edit)), file_name)
        case EditFormat.WHOLE:
            return apply_whole(pre, _text_of(edit), file_name)
        case _:
            assert_never(form)


def apply_sections(pre: str, sections: Sequence[Section]) -> EditResult | EditError:
    """Apply parsed blocks in any order to `pre`: all, or none and why each block that fails does."""
    return _apply_all(pre, sections, None)


def _apply_all(pre: str, sections: Sequence[Section], unread: EditError | None) -> EditResult | EditError:
    application = Application(pre)
    failed = [error for error in map(application.add, sections) if error is not None]
    return application.result() if not failed and unread is None else application.refusal(unread)


class Application:
    """Blocks applied one by one to a text; a refused block changes nothing, and the text is of no use then."""

    def __init__(self, pre: str) -> None:
        self._work = WorkingText(read_source(pre))
        self._blocks: list[AppliedBlock] = []
        self._seen: set[EditBlock] = set()
        self._added: list[list[str]] = []
        self._count = 0
        self._refused: list[EditError] = []
        self._missed: dict[str, int] = {}

    def add(self, section: Section) -> EditError | None:
        """Apply the next block. Blocks after many refused ones are only counted."""
        self._count += 1
        if len(self._refused) >= MOST_REFUSED:
            return self._refused[-1]
        block = self._chosen(section)
        placed = block if isinstance(block, EditError) else self._place(block)
        match placed:
            case EditError():
                error = replace(placed, block=self._count)
                self._refused.append(error)
                for line in section.readings[0].replace:
                    self._missed.setdefault(line.strip(), self._count)
                return error
            case PlacedBlock():
                self._added.append([line for hunk in placed.hunks for line in hunk.lines])
                self._work.splice(placed.hunks)
                self._blocks.append(AppliedBlock(placed.tier, _touched(placed.hunks), placed.places))
                return None
            case _:
                assert_never(placed)

    def _place(self, block: EditBlock) -> PlacedBlock | EditError:
        if block in self._seen:
            return EditError(
                ErrorCode.OVERLAPPING,
                "It repeats an earlier block. Leave it out, or add lines that show the other place.",
            )
        self._seen.add(block)
        placed = place_block(block, self._work)
        if isinstance(placed, EditError) and placed.code is ErrorCode.NOT_FOUND:
            return self._built_on_refused(block) or placed
        return placed

    def _built_on_refused(self, block: EditBlock) -> EditError | None:
        """Why a block is not found whose text only a refused block would have brought."""
        known = self._work.original.stripped
        for line in map(str.strip, block.search):
            number = self._missed.get(line)
            if number is not None and sum(map(str.isalnum, line)) > _TELLING and not known.places([line]):
                said = f"It depends on block {number}, which is refused. Correct that block first."
                return EditError(ErrorCode.NOT_FOUND, said)
        return None

    def result(self) -> EditResult | EditError:
        """The text as it is now; a refusal when nothing changed."""
        if self._refused:
            return self.refusal(None)
        if not self._blocks:
            return EditError(ErrorCode.NO_MARKER, "The edit has no block. Write at least one.")
        if any(block.tier in _ESCAPED for block in self._blocks):
            for number, added in enumerate(self._added, 1):
                if has_escapes(added, self._work.original):
                    return replace(refuse_escaped("an escape"), block=number, blocks=self._count)
        changes = self._work.changes()
        if not changes:
            return EditError(
                ErrorCode.NO_CHANGE,
                "The blocks of this edit undo each other, so nothing would change. Leave them out, or correct them.",
            )
        return EditResult(self._work.text(), tuple(self._blocks), changes)

    def refusal(self, unread: EditError | None) -> EditError:
        """The first refusal with all others behind it; `unread` is that of a last block which cannot be read."""
        refused = self._refused
        if unread is not None:
            self._count += 1
            refused = [*refused, replace(unread, block=self._count)]
        lines = self._work.source.lines
        first, *others = (shown_within(each, lines, len(refused)) for each in refused)
        return replace(first, blocks=self._count, others=tuple(others))

    def text(self) -> str:
        """The text with the blocks applied so far."""
        return self._work.text()

    def last(self) -> AppliedBlock:
        """What the last block did."""
        return self._blocks[-1]

    def find_exact(self, search: tuple[str, ...]) -> LineRange | None:
        """The one place where lines stand exactly; cheap enough to ask while a block grows."""
        found = find_exact(EditBlock(search, ()), self._work.views) if search else []
        return LineRange(found[0].first + 1, found[0].last + 1) if len(found) == 1 else None

    def _chosen(self, section: Section) -> EditBlock | EditError:
        if len(section.readings) == 1:
            return section.readings[0]
        chosen = longest_exact(section.readings, self._work.views)
        if chosen is not None:
            return chosen
        return EditError(
            ErrorCode.MALFORMED,
            "The block has several lines that may be its separator, and no way to read it fits the file. "
            "Use longer markers than any such line in the content, all of one length.",
        )


def _everywhere(parsed: Sequence[Section]) -> tuple[Section, ...]:
    return tuple(
        replace(section, readings=tuple(replace(block, everywhere=True) for block in section.readings))
        for section in parsed
    )


def _apply_operations(
    pre: str, parsed: tuple[FileOperation, ...] | EditError, file_name: str | None
) -> EditResult | EditError:
    if isinstance(parsed, EditError):
        return parsed
    chosen = parsed[0] if len(parsed) == 1 else next((each for each in parsed if _names(each, file_name)), None)
    if not isinstance(chosen, UpdateFile):
        return EditError(
            ErrorCode.WRONG_FILE, f"The patch does not update {file_name or 'this file'}. Name that file in it."
        )
    return apply_sections(pre, chosen.sections)


def _names(operation: FileOperation, file_name: str | None) -> bool:
    if file_name is None:
        return False
    mine, theirs = file_name.replace("\\", "/"), operation.path.replace("\\", "/")
    return mine == theirs or mine.endswith("/" + theirs) or theirs.endswith("/" + mine)


def _exact_block(edit: Edit) -> EditBlock:
    """An exact string, also as lines: a newline at the end of both, or before nothing, means whole lines."""
    old, new = (text.removeprefix("\ufeff").replace("\r\n", "\n") for text in (edit.old, edit.new))
    exact = Edit(old, new)
    if old.endswith("\n") or not old:
        old, new = old.removesuffix("\n"), new.removesuffix("\n")
    lines = tuple(old.split("\n"))
    keeps_blank = is_blank(lines[0]) or is_blank(lines[-1])
    return EditBlock(
        lines,
        tuple(new.split("\n")) if exact.new or keeps_blank else (),
        exact=exact,
        everywhere=edit.replace_all,
    )


def _touched(hunks: Sequence[Hunk]) -> LineRange:
    return LineRange(min(hunk.start for hunk in hunks) + 1, max(hunk.end for hunk in hunks))


def _text_of(edit: str | Sequence[Edit]) -> str:
    return edit if isinstance(edit, str) else ""
