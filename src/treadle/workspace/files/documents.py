"""Documents as text: PDF, Word, Excel, notebooks."""

import asyncio
import re
import sys
from pathlib import Path, PurePath

from treadle.protocol.errors import ToolError
from treadle.workspace.commands.installed_programs import program
from treadle.workspace.installed import install_command

_SECONDS = 60.0
_NOT_INSTALLED = 3
_EXCEPTION = re.compile(r"^[\w.]+(Error|Exception|BadZipFile)(: |$)")
_EXTRACT = Path(__file__).with_name("extract.py")

ENDINGS = (".pdf", ".docx", ".xlsx", ".ipynb")
"""What that program reads; it is not loaded here."""


def is_document(name: str) -> bool:
    """Whether a file of this name is read by `document_text`."""
    return PurePath(name).suffix.lower() in ENDINGS


def is_text_itself(name: str) -> bool:
    """Whether the file of a document is text too, such as a notebook's."""
    return PurePath(name).suffix.lower() == ".ipynb"


async def document_text(raw: bytes, name: str) -> str:
    """Take the text out of a document. Raises `ToolError` when it is damaged or the extra `docs` is not installed."""
    command = (sys.executable, "-I", str(_EXTRACT), PurePath(name).suffix.lower())
    try:
        async with program(*command) as process, asyncio.timeout(_SECONDS):
            text, complaint = await process.communicate(raw)
    except TimeoutError:
        raise ToolError(
            f"{name} could not be turned into text within {_SECONDS:.0f} s. Try a command made for its format."
        ) from None
    if process.returncode == _NOT_INSTALLED:
        raise ToolError(
            f"{name} is a document, and its reader is not installed. The user can install it with "
            f"`{install_command('docs')}`. Until then try a command made for its format."
        )
    if process.returncode:
        last = complaint.decode(errors="replace").strip().rpartition("\n")[2]
        why = _EXCEPTION.sub("", last).rstrip(".") or "it is damaged or too large"
        raise ToolError(f"{name} could not be turned into text: {why}. Try a command made for its format.")
    return text.decode(errors="replace")
