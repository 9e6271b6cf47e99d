"""The edit engine: pure text to text."""

from treadle.editing.apply import apply_edit, apply_sections, apply_whole
from treadle.editing.markers import parse_blocks
from treadle.editing.patches import parse_patch, parse_unified
from treadle.editing.results import (
    AddFile,
    AppliedBlock,
    Block,
    Change,
    DeleteFile,
    Edit,
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
from treadle.editing.show import display_diff, final_text
from treadle.editing.stream import BlockPreview, BlockState, EditStream

__all__ = [
    "AddFile",
    "AppliedBlock",
    "Block",
    "BlockPreview",
    "BlockState",
    "Change",
    "DeleteFile",
    "Edit",
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
    "final_text",
    "parse_blocks",
    "parse_patch",
    "parse_unified",
]
