"""A program that turns a document on its standard input into text.

`python -I extract.py ENDING`. It runs apart from Treadle, with limits on time and memory, as documents come from
anywhere and their parsers are large. Exit status 3: the package that reads this kind is not installed.
"""

import importlib
import io
import json
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MEMORY = 2 * 1024**3
_SECONDS = 60
_PATIENCE = 20.0
"""Seconds after which what was found so far is what is shown."""

_CHARACTERS = 4 * 1024 * 1024


def _package(name: str) -> Any:
    """Load one of the packages of the extra `docs`, which may be absent."""
    return importlib.import_module(name)


def _pdf(raw: bytes) -> Iterator[str]:
    reader = _package("pypdf").PdfReader(io.BytesIO(raw))
    if reader.is_encrypted and not reader.decrypt(""):
        raise ValueError("it is protected by a password, which only the user can know")
    for number, page in enumerate(reader.pages, 1):
        yield f"# Page {number}"
        yield page.extract_text().strip("\n") or "(no text on this page; it may be a picture)"


def _docx(raw: bytes) -> Iterator[str]:
    for block in _package("docx").Document(io.BytesIO(raw)).iter_inner_content():
        if not hasattr(block, "rows"):
            yield block.text
            continue
        for row in block.rows:
            yield " | ".join(cell.text.replace("\n", " ") for cell in row.cells)


def _xlsx(raw: bytes) -> Iterator[str]:
    workbook = _package("openpyxl").load_workbook(io.BytesIO(raw), read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        yield f"# Sheet {sheet.title}"
        empty = 0
        for row in sheet.iter_rows(values_only=True):
            cells = "\t".join("" if value is None else str(value) for value in row).rstrip("\t")
            if not cells:
                empty += 1
                continue
            if empty:
                yield f"({empty} empty rows)"
                empty = 0
            yield cells


def _ipynb(raw: bytes) -> Iterator[str]:
    for number, cell in enumerate(json.loads(raw)["cells"], 1):
        yield cell_heading(number, cell)
        yield cell_text(cell["source"])
        yield from cell_outputs(cell)


def cell_heading(number: int, cell: Mapping[str, Any]) -> str:
    """Name a cell of a notebook: by its number, its type and, where it has one, its id."""
    name = f", id {cell['id']}" if isinstance(cell.get("id"), str) else ""
    return f"# Cell {number} ({cell['cell_type']}{name})"


def cell_outputs(cell: Mapping[str, Any]) -> Iterator[str]:
    """Give the outputs of a cell of a notebook as they are shown."""
    for output in cell.get("outputs", ()):
        yield from _output(output)


def _output(output: dict[str, object]) -> Iterator[str]:
    data = output.get("data")
    text = output.get("text") or (data.get("text/plain") if isinstance(data, dict) else None)
    if output.get("output_type") == "error":
        text = f"{output.get('ename')}: {output.get('evalue')}"
    pictures = [kind for kind in data if str(kind).startswith("image/")] if isinstance(data, dict) else []
    if text or pictures:
        yield "# Output"
        yield cell_text(text) if text else f"(a picture, {pictures[0]})"


def cell_text(text: object) -> str:
    """Join what a notebook has as one text or as lines."""
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


READERS: dict[str, Callable[[bytes], Iterator[str]]] = {".pdf": _pdf, ".docx": _docx, ".xlsx": _xlsx, ".ipynb": _ipynb}


def main() -> None:
    """Print the text of the document, at most some million characters of it."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    left = _CHARACTERS
    end = time.monotonic() + _PATIENCE
    try:
        for piece in READERS[sys.argv[1]](sys.stdin.buffer.read()):
            sys.stdout.buffer.write(f"{piece[:left]}\n".encode(errors="replace"))
            left -= len(piece) + 1
            if left <= 0 or time.monotonic() > end:
                sys.stdout.buffer.write(b"(the rest of the document is left out)\n")
                break
    except ModuleNotFoundError as error:
        sys.stderr.write(str(error.name))
        sys.exit(3)


if __name__ == "__main__":
    main()
