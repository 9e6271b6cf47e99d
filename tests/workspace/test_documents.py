"""Documents as text."""

import importlib
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.needed import require

from treadle.protocol.errors import ToolError
from treadle.workspace.files.documents import ENDINGS, document_text, is_document
from treadle.workspace.files.extract import READERS
from treadle.workspace.installed import install_command


def _package(name: str) -> Any:
    require(name)
    return importlib.import_module(name)


def pdf_of(text: str) -> bytes:
    """Write the smallest PDF with one line of text."""
    content = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
            b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        ),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
    ]
    raw = b"%PDF-1.4\n"
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(raw))
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(raw)
    return raw + b"xref\n0 5\n0000000000 65535 f \n" + table + end


async def test_a_pdf_is_read_by_pages() -> None:
    _package("pypdf")
    assert await document_text(pdf_of("Hello there"), "a.pdf") == "# Page 1\nHello there\n"


async def test_a_word_document_is_read_with_its_tables_in_place() -> None:
    document = _package("docx").Document()
    document.add_paragraph("Before")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "left", "right"
    document.add_paragraph("After")
    file = io.BytesIO()
    document.save(file)
    assert await document_text(file.getvalue(), "a.docx") == "Before\nleft | right\nAfter\n"


async def test_a_workbook_is_read_by_sheets() -> None:
    workbook = _package("openpyxl").Workbook()
    workbook.active.title = "Prices"
    workbook.active.append(["apple", 1.5, None])
    file = io.BytesIO()
    workbook.save(file)
    assert await document_text(file.getvalue(), "a.xlsx") == "# Sheet Prices\napple\t1.5\n"


async def test_what_is_empty_in_a_workbook_takes_no_room() -> None:
    workbook = _package("openpyxl").Workbook()
    workbook.active["A1"], workbook.active["B5000"] = "first", "last"
    file = io.BytesIO()
    workbook.save(file)
    assert await document_text(file.getvalue(), "a.xlsx") == "# Sheet Sheet\nfirst\n(4998 empty rows)\n\tlast\n"


async def test_pages_without_text_and_passwords_are_told() -> None:
    writer = _package("pypdf").PdfWriter()
    writer.add_blank_page(10, 10)
    plain, locked = io.BytesIO(), io.BytesIO()
    writer.write(plain)
    assert "no text on this page; it may be a picture" in await document_text(plain.getvalue(), "a.pdf")
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(locked)
    with pytest.raises(ToolError, match="protected by a password"):
        await document_text(locked.getvalue(), "a.pdf")


async def test_a_picture_in_a_notebook_is_told() -> None:
    outputs = '[{"output_type": "display_data", "data": {"image/png": "iVBOR"}}]'
    raw = f'{{"cells": [{{"cell_type": "code", "source": "plot()", "outputs": {outputs}}}]}}'.encode()
    assert await document_text(raw, "a.ipynb") == "# Cell 1 (code)\nplot()\n# Output\n(a picture, image/png)\n"


async def test_a_damaged_document_is_said_to_be_one() -> None:
    with pytest.raises(ToolError, match=r"a.ipynb could not be turned into text: Expecting property name"):
        await document_text(b"{", "a.ipynb")


async def test_without_the_package_the_extra_to_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_packages = tmp_path / "python"
    without_packages.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    without_packages.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(without_packages))
    with pytest.raises(ToolError, match=re.escape(install_command("docs"))):
        await document_text(b"%PDF", "a.pdf")


def test_documents_are_known_by_their_ending() -> None:
    assert [is_document(name) for name in ("a.PDF", "b.docx", "c.xlsx", "d.ipynb", "e.txt")] == [True] * 4 + [False]


def test_every_ending_has_a_reader() -> None:
    assert set(ENDINGS) == set(READERS)
