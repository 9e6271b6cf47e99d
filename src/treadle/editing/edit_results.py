"""What goes into the edit engine and what comes out of it: blocks, results and typed refusals."""

from enum import StrEnum

from msgspec import Struct


class EditFormat(StrEnum):
    """How a model writes an edit."""

    SEARCH_REPLACE = "search_replace"
    OLD_NEW = "old_new"
    APPLY_PATCH = "apply_patch"
    UNIFIED = "unified"
    WHOLE = "whole"


class Tier(StrEnum):
    """How far the model's text was from the file's, from strict to lax."""

    EXACT = "exact"
    TRAILING = "trailing"
    INDENTATION = "indentation"
    BLANK_LINES = "blank_lines"
    TYPOGRAPHY = "typography"
    INLINE = "inline"
    LINE_NUMBERS = "line_numbers"
    FENCE = "fence"
    ENTITIES = "entities"
    ESCAPES = "escapes"
    ELISION = "elision"
    SIMILAR = "similar"
    WHOLE = "whole"


class ErrorCode(StrEnum):
    """Why an edit was refused."""

    NO_MARKER = "no_marker"
    MALFORMED = "malformed"
    TRUNCATED = "truncated"
    EMPTY_SEARCH = "empty_search"
    NOT_FOUND = "not_found"
    AMBIGUOUS = "ambiguous"
    OVERLAPPING = "overlapping"
    ALREADY_APPLIED = "already_applied"
    NO_CHANGE = "no_change"
    ELISION = "elision"
    CHANGED_SINCE = "changed_since"
    INDENTATION = "indentation"
    ESCAPED = "escaped"
    WRONG_FILE = "wrong_file"


class LineRange(Struct, frozen=True):
    """Lines `start` to `end`, counted from 1, both included; empty when `end < start`."""

    start: int
    end: int


class Edit(Struct, frozen=True):
    """One exact-string edit: `old` must occur once in the file, or with `replace_all` at least once."""

    old: str
    new: str
    replace_all: bool = False


class EditBlock(Struct, frozen=True):
    """One block of an edit as lines without line ends.

    `hint` is the line (from 1) at which the model believes `search` to start. `anchors` are lines that stand
    above it, outermost first. `at_end` says that it ends the file. `lines_only` marks the diff formats,
    where a line is never part of a longer one. `exact` is the exact string that was given instead of lines.
    `everywhere` says that every place is meant.
    """

    search: tuple[str, ...]
    replace: tuple[str, ...]
    hint: int | None = None
    anchors: tuple[str, ...] = ()
    at_end: bool = False
    lines_only: bool = False
    exact: Edit | None = None
    everywhere: bool = False

    @property
    def ends_line(self) -> bool:
        """Whether an exact string ends in a line end."""
        return self.exact is not None and self.exact.old.endswith("\n")


class Section(Struct, frozen=True):
    """One block as parsed, with every way to read it: content may look like the separator."""

    readings: tuple[EditBlock, ...]
    path: str | None = None


class AppliedBlock(Struct, frozen=True):
    """What one block did: the tier that found it, the lines it touched in the text as it was then, and the places."""

    tier: Tier
    lines: LineRange
    places: int = 1


class Change(Struct, frozen=True):
    """One changed region: `old` in the text before, `new` in the final text."""

    old: LineRange
    new: LineRange


class EditResult(Struct, frozen=True):
    """The final text, how each block was found, and what changed, in file order."""

    text: str
    blocks: tuple[AppliedBlock, ...]
    changes: tuple[Change, ...]


class EditError(Struct, frozen=True):
    """A refusal; the file stays as it is.

    `message` tells the model what to do next. `block` counts from 1, of `blocks` in all. `nearest` is the text of
    the file that helps, each line with its number; `shown` says which lines these are. `candidates` are the places
    of an ambiguous block. `others` are the refusals of further blocks of the same edit.
    """

    code: ErrorCode
    message: str
    block: int | None = None
    nearest: str | None = None
    candidates: tuple[LineRange, ...] = ()
    shown: tuple[LineRange, ...] = ()
    blocks: int = 0
    others: tuple["EditError", ...] = ()


class AddFile(Struct, frozen=True):
    """A patch creates `path` with `text`."""

    path: str
    text: str


class DeleteFile(Struct, frozen=True):
    """A patch removes `path`."""

    path: str


class UpdateFile(Struct, frozen=True):
    """A patch changes `path` and may move it; `form` is the notation in which it says how."""

    path: str
    sections: tuple[Section, ...]
    move_to: str | None = None
    form: EditFormat = EditFormat.APPLY_PATCH


FileOperation = AddFile | DeleteFile | UpdateFile
