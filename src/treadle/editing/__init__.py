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

__all__ = [
    "AddFile",
    "AppliedBlock",
    "Block",
    "Change",
    "DeleteFile",
    "Edit",
    "EditError",
    "EditFormat",
    "EditResult",
    "ErrorCode",
    "FileOperation",
    "LineRange",
    "Section",
    "Tier",
    "UpdateFile",
    "apply_edit",
    "apply_sections",
    "apply_whole",
    "parse_blocks",
    "parse_patch",
    "parse_unified",
]
