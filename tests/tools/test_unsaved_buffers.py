"""An editor's unsaved text stands in for the file on the disk: tools read it, and change it there."""

from pathlib import Path

import pytest
from tests.tools.calls import call, text

from treadle.protocol.errors import ToolError
from treadle.protocol.tools import Outcome
from treadle.workspace.files.file_access import DiskFiles
from treadle.workspace.files.judged import JudgedPath
from treadle.workspace.files.pages import Page, PageLimits, page_of
from treadle.workspace.files.text_files import TextFile, decode, sha256
from treadle.workspace.workspace import Workspace, open_workspace


class Editor(DiskFiles, frozen=True, kw_only=True):
    """Holds some files open, changed and not saved; all others are those on the disk."""

    buffers: dict[str, bytes]

    def exists(self, place: JudgedPath) -> bool:
        return place.resolved in self.buffers or super().exists(place)

    def read_bytes(self, place: JudgedPath, name: str) -> bytes:
        held = self.buffers.get(place.resolved)
        return super().read_bytes(place, name) if held is None else held

    def read_text(self, place: JudgedPath, name: str) -> TextFile:
        return decode(self.read_bytes(place, name), name)

    def read_page(self, place: JudgedPath, name: str, *, first: int, limits: PageLimits) -> Page:
        if place.resolved not in self.buffers:
            return super().read_page(place, name, first=first, limits=limits)
        held = self.read_text(place, name)
        return page_of(held.text, held.digest, encoding=held.encoding, first=first, limits=limits)

    def save(self, target: str, data: bytes, *, expected: str, name: str, mode: int | None) -> None:
        if target not in self.buffers:
            super().save(target, data, expected=expected, name=name, mode=mode)
        elif sha256(self.buffers[target]) != expected:
            raise ToolError(f"{name} was changed.")
        else:
            self.buffers[target] = data


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "a.py").write_text("def saved():\n    pass\n")
    (tmp_path / "b.py").write_text("b = 1\n")
    return tmp_path.resolve()


@pytest.fixture
def workspace(project: Path) -> Workspace:
    held = {str(project / "a.py"): b"def unsaved():\n    return 1\n"}
    return open_workspace(project, files=Editor(buffers=held))


async def test_what_is_unsaved_is_read_outlined_and_edited_in_the_editor(workspace: Workspace, project: Path) -> None:
    read = await text(workspace, "read_file", path="a.py")
    assert "def unsaved" in read
    outlined = await text(workspace, "list_code_definition_names", path="a.py")
    assert "unsaved" in outlined
    block = "------- SEARCH\n    return 1\n=======\n    return 2\n+++++++ REPLACE"
    edited = await call(workspace, "replace_in_file", path="a.py", diff=block)
    assert edited.outcome is Outcome.OK, edited
    assert isinstance(workspace.files, Editor)
    assert workspace.files.buffers[str(project / "a.py")] == b"def unsaved():\n    return 2\n"
    assert (project / "a.py").read_text() == "def saved():\n    pass\n"


async def test_all_other_files_are_those_on_the_disk(workspace: Workspace, project: Path) -> None:
    await call(workspace, "read_file", path="b.py")
    written = await call(workspace, "write_to_file", path="b.py", content="b = 2\n")
    assert written.outcome is Outcome.OK, written
    assert (project / "b.py").read_text() == "b = 2\n"
