r"""The edit engine: pure text to text.

>>> apply_edit(EditFormat.OLD_NEW, "a = 1\n", [Edit("a = 1", "a = 2")])
EditResult(text='a = 2\n', blocks=(AppliedBlock(tier=<Tier.EXACT: 'exact'>, ...),), changes=(...))

`apply_edit` is all or nothing: an `EditResult`, or an `EditError` that a model can act upon. `parse_patch`
and `parse_unified` give the operations of patches over several files; `apply_sections` applies theirs.
`EditStream` previews an edit while it is written.
"""

from treadle.editing.apply import apply_edit, apply_sections
from treadle.editing.edit_results import (
    AddFile,
    AppliedBlock,
    Change,
    DeleteFile,
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
from treadle.editing.edit_stream import BlockPreview, BlockState, EditStream
from treadle.editing.markers import parse_blocks
from treadle.editing.patches import parse_operations, parse_patch, parse_unified
from treadle.editing.refusal_words import explain_refusal
from treadle.editing.shown_edits import display_diff, final_text
from treadle.editing.whole import apply_whole, is_only_blocks, is_only_patch, is_text_around_blocks, unfenced

__all__ = [
    "AddFile",
    "AppliedBlock",
    "BlockPreview",
    "BlockState",
    "Change",
    "DeleteFile",
    "Edit",
    "EditBlock",
    "EditError",
    "EditFormat",
    "EditResult",
    "EditStream",
    "ErrorCode",
    "FileOperation",
    "LineRange",
    "Section",
    "Tier",
    "UpdateFile",
    "apply_edit",
    "apply_sections",
    "apply_whole",
    "display_diff",
    "explain_refusal",
    "final_text",
    "is_only_blocks",
    "is_only_patch",
    "is_text_around_blocks",
    "parse_blocks",
    "parse_operations",
    "parse_patch",
    "parse_unified",
    "unfenced",
]
