"""The client's files: what is not saved in the editor is what tools read and change."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.acp.driving import Editor, RefusedByAgentError, diff, working
from tests.acp.test_tasks import fields, subagent_script
from tests.e2e.faults.driving import block, make, results, run, script
from treadle.providers.scripted.script import Expectation, SayText, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

FS = {"fs": {"readTextFile": True, "writeTextFile": True}}


@dataclass
class Buffers:
    """The open files of an editor; a saved one goes to the disk."""

    texts: dict[str, str] = field(default_factory=dict)
    read: list[str] = field(default_factory=list)
    written: list[str] = field(default_factory=list)
    refuse: bool = False
    between: Callable[[], None] = lambda: None

    def give(self, client: Editor) -> None:
        client.answers |= {"fs/read_text_file": self.reads, "fs/write_text_file": self.writes}

    def reads(self, params: dict[str, Any]) -> Any:
        path = params["path"]
        self.read.append(path)
        if path in self.texts:
            return {"content": self.texts[path]}
        try:
            return {"content": Path(path).read_bytes().decode().replace("\r\n", "\n")}
        except (OSError, UnicodeDecodeError) as error:
            raise RefusedByAgentError({"code": -32002, "message": str(error)}) from error

    def writes(self, params: dict[str, Any]) -> Any:
        if self.refuse:
            raise RefusedByAgentError({"code": -32603, "message": "read-only"})
        self.written.append(params["path"])
        self.texts.pop(params["path"], None)
        Path(params["path"]).write_bytes(params["content"].encode())
        return None


async def test_what_is_not_saved_is_read_and_edited(tmp_path: Path) -> None:
    steps = (
        make("read_file", path="a.txt"),
        make("replace_in_file", path="a.txt", diff=block("unsaved\n", "edited\n")),
    )
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        path = folder / "a.txt"
        path.write_text("saved\n")
        buffers = Buffers({str(path): "unsaved\nmore\n"})
        buffers.give(client)
        await client.prompt(session)
        read = [one for request in server.requests for one in [str(request.body["messages"][-1])]]
        assert path.read_text() == "edited\nmore\n"
    assert "1 | unsaved" in read[1]
    assert "Saved a.txt" in read[2]
    assert buffers.written == [str(path)]


async def test_a_file_that_is_new_is_saved_through_the_editor(tmp_path: Path) -> None:
    steps = (
        make("write_to_file", path="new.txt", content="new\n"),
        make("write_to_file", path="d/new.txt", content="x\n"),
    )
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        buffers = Buffers()
        buffers.give(client)
        await client.prompt(session)
        texts = [(folder / name).read_text() for name in ("new.txt", "d/new.txt")]
    assert texts == ["new\n", "x\n"]
    assert buffers.written == [str(folder / "new.txt")]  # who makes the folder for the other is not said


async def test_a_saved_file_keeps_its_line_ends_and_encoding(tmp_path: Path) -> None:
    steps = (
        make("replace_in_file", path="crlf.txt", diff=block("two\n", "2\n")),
        make("replace_in_file", path="latin.txt", diff=block("caf\u00e9\n", "th\u00e9\n")),
    )
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        (folder / "crlf.txt").write_bytes(b"one\r\ntwo\r\n")
        (folder / "latin.txt").write_bytes("caf\u00e9\nna\u00efve\n".encode("latin-1"))
        buffers = Buffers()
        buffers.give(client)
        await client.prompt(session)
        found = [(folder / name).read_bytes() for name in ("crlf.txt", "latin.txt")]
    assert found == [b"one\r\n2\r\n", "th\u00e9\nna\u00efve\n".encode("latin-1")]
    assert buffers.written == [str(folder / "crlf.txt")]


async def test_what_the_user_types_after_the_question_is_not_lost(tmp_path: Path) -> None:
    steps = (make("replace_in_file", path="a.txt", diff=block("one\n", "two\n")),)
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, **FS) as (client, session, folder),
    ):
        path = folder / "a.txt"
        path.write_text("one\n")
        buffers = Buffers()
        buffers.give(client)

        def typing(params: dict[str, Any]) -> Any:
            buffers.texts[str(path)] = "one\nand more\n"
            return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

        client.answers["session/request_permission"] = typing
        await client.prompt(session)
        sent = results(server)
        assert path.read_text() == "one\n"
    assert buffers.written == []
    assert buffers.texts == {str(path): "one\nand more\n"}
    assert "was changed in the editor in the meantime" in sent[0]


async def test_a_buffer_that_is_not_saved_yet_is_neither_overwritten_nor_deleted(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** Delete File: old.txt\n*** End Patch"
    steps = (make("write_to_file", path="new.txt", content="mine\n"), make("apply_patch", patch=patch))
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, **FS) as (client, session, folder),
    ):
        (folder / "old.txt").write_text("saved\n")
        buffers = Buffers({str(folder / "old.txt"): "typed\n"})
        buffers.give(client)

        def typing(params: dict[str, Any]) -> Any:
            buffers.texts[str(folder / "new.txt")] = "theirs\n"
            return {"outcome": {"outcome": "selected", "optionId": "allow_once"}}

        client.answers["session/request_permission"] = typing
        await client.prompt(session)
        assert (folder / "old.txt").read_text() == "saved\n"
        assert not (folder / "new.txt").exists()
    assert buffers.written == []


async def test_an_editor_that_refuses_to_save_is_not_passed_by(tmp_path: Path) -> None:
    steps = (make("write_to_file", path="a.txt", content="new\n"),)
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        buffers = Buffers(refuse=True)
        buffers.give(client)
        await client.prompt(session)
        sent = results(server)
        assert not (folder / "a.txt").exists()
    assert sent == ["a.txt was not saved: the editor says read-only. Tell the user."]


@pytest.mark.parametrize("known", [{"fs": {"readTextFile": True}}, {}])
async def test_an_editor_that_saves_nothing_leaves_it_to_the_disk(tmp_path: Path, known: dict[str, Any]) -> None:
    steps = (make("write_to_file", path="a.txt", content="new\n"),)
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **known) as (client, session, folder),
    ):
        Buffers().give(client)
        await client.prompt(session)
        assert (folder / "a.txt").read_text() == "new\n"
    assert "fs/write_text_file" not in [method for method, _ in client.asked]


async def test_files_outside_of_the_session_are_not_the_editors(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("outside\n")
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "link.txt").symlink_to(tmp_path / "out.txt")
    steps = (make("read_file", path="link.txt"), make("read_file", path=str(tmp_path / "out.txt")))
    async with ScriptedServer(script(*steps)) as server, working(tmp_path, server, **FS) as (client, session, _):
        buffers = Buffers()
        buffers.give(client)
        await client.prompt(session)
    assert buffers.read == []


async def test_while_a_command_runs_in_the_background_the_disk_is_read_and_typed_text_stays(tmp_path: Path) -> None:
    steps = (
        run("sleep 65", background=True),
        make("read_file", path="a.txt"),
        make("replace_in_file", path="a.txt", diff=block("saved\n", "edited\n")),
        make("replace_in_file", path="b.txt", diff=block("saved\n", "edited\n")),
    )
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "full", **FS) as (client, session, folder),
    ):
        for name in "ab":
            (folder / f"{name}.txt").write_text("saved\n")
        buffers = Buffers({str(folder / "a.txt"): "typed\n"})
        buffers.give(client)
        await client.prompt(session)
        sent = [str(request.body["messages"][-1]) for request in server.requests]
        texts = [(folder / f"{name}.txt").read_text() for name in "ab"]
    assert "1 | saved" in sent[2]
    assert "was changed in the editor in the meantime" in sent[3]
    assert texts == ["saved\n", "edited\n"]
    assert buffers.written == []


async def test_a_notebook_that_is_open_is_edited_by_cell_and_shown_as_cells(tmp_path: Path) -> None:
    cells = '[{"cell_type": "raw", "metadata": {}, "source": ["unsaved"]}]'
    text = '{"cells": CELLS, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}\n'
    steps = (
        make("read_file", path="a.ipynb"),
        make("edit_notebook", path="a.ipynb", action="replace", cell="1", content="edited"),
    )
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        path = folder / "a.ipynb"
        path.write_text(text.replace("CELLS", "[]"))
        buffers = Buffers({str(path): text.replace("CELLS", cells)})
        buffers.give(client)
        await client.prompt(session)
        assert path.read_text() == text.replace("CELLS", cells.replace("unsaved", "edited"))
    heading = "# Cell 1 (raw)\n"
    places = fields(client, "call_2_1_1", "content")[-1]
    assert places == [diff(path, f"{heading}edited\n", f"{heading}unsaved\n")]


@pytest.mark.parametrize("old", ["two\n", "TYPED\n"])
async def test_undo_takes_the_edit_back_and_leaves_what_was_typed(tmp_path: Path, old: str) -> None:
    steps = (
        make("write_to_file", path="other.txt", content="x\n"),
        make("replace_in_file", path="a.txt", diff=block(old, "EDIT\n")),
    )
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        path = folder / "a.txt"
        path.write_text("one\ntwo\nthree\nfour\n")
        buffers = Buffers({str(path): "one\ntwo\nthree\nTYPED\n"})
        buffers.give(client)
        await client.prompt(session)
        after = path.read_text()
        listed = await client.call("_treadle/checkpoints", sessionId=session)
        await client.prompt(session, "/undo")
        assert path.read_text() == "one\ntwo\nthree\nTYPED\n"
    assert after == "one\ntwo\nthree\nTYPED\n".replace(old, "EDIT\n")
    assert buffers.written == [str(folder / "other.txt"), str(path)]
    last = listed["checkpoints"][-1]
    assert (last["files"], last["added"], last["removed"]) == (1, 1, 1)


async def test_an_edit_that_an_editor_refuses_leaves_no_typed_text_to_the_session(tmp_path: Path) -> None:
    steps = (make("replace_in_file", path="a.txt", diff=block("one\n", "1\n")),)
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        path = folder / "a.txt"
        path.write_text("one\ntwo\n")
        buffers = Buffers({str(path): "one\nTYPED\n"}, refuse=True)
        buffers.give(client)
        await client.prompt(session)
        await client.prompt(session, "/undo")
        assert path.read_text() == "one\ntwo\n"
    assert buffers.texts == {str(path): "one\nTYPED\n"}


async def test_an_edit_does_not_take_back_what_a_command_wrote_below_unsaved_text(tmp_path: Path) -> None:
    edit = make("replace_in_file", path="a.txt", diff=block("two\n", "2\n"))
    steps = (run("sed -i s/one/ONE/ a.txt"), edit, edit)
    async with (
        ScriptedServer(script(*steps)) as server,
        working(tmp_path, server, "--mode", "full", **FS) as (client, session, folder),
    ):
        path = folder / "a.txt"
        path.write_text("one\ntwo\nthree\nfour\n")
        typed = "one\ntwo\nthree\nTYPED\n"
        buffers = Buffers({str(path): typed})
        buffers.give(client)

        def reads(params: dict[str, Any]) -> Any:
            if len(server.requests) > 2:  # the person puts both together in the editor, and does not save
                buffers.texts[str(path)] = typed.replace("one", "ONE")
            return buffers.reads(params)

        client.answers["fs/read_text_file"] = reads
        await client.prompt(session)
        sent = [str(request.body["messages"][-1]) for request in server.requests]
        assert path.read_text() == "ONE\n2\nthree\nTYPED\n"
    assert "changed on the disk by a command of this session" in sent[2]
    assert "Saved a.txt" in sent[3]


async def test_a_worker_has_its_copy_on_the_disk_and_its_change_waits_for_unsaved_text(tmp_path: Path) -> None:
    of_child = Texts(contains=("You are a subagent",))
    asked = Expectation(last_user=Texts(contains=("Write a.",)), system=of_child)
    worked = Expectation(last_result=Texts(contains=("b.txt",)), system=of_child)
    edits = tuple(make("replace_in_file", path=f"{name}.txt", diff=block("one\n", f"worker {name}\n")) for name in "ab")
    steps = (Turn(when=worked, items=(SayText(text="Written."),)), Turn(when=asked, items=edits))
    async with (
        ScriptedServer(subagent_script(*steps)) as server,
        working(tmp_path, server, "--mode", "edits", **FS) as (client, session, folder),
    ):
        for name in "ab":
            (folder / f"{name}.txt").write_text("one\ntwo\n")
        buffers = Buffers({str(folder / "a.txt"): "TYPED\ntwo\n"})
        buffers.give(client)
        await client.prompt(session)
        texts = [(folder / f"{name}.txt").read_text() for name in "ab"]
        sent = str(server.requests[-1].body["messages"][-1])
    assert texts == ["one\ntwo\n", "worker b\ntwo\n"]
    assert "a.txt: it has changes in the editor that are not saved" in sent
    assert {path for path in buffers.read if not path.startswith(f"{folder}/")} == set()
    assert buffers.written == []
