"""Further folders of a workspace: worked in like the workspace, and obeyed in nothing."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import log_of, model
from tests.needed import needs
from treadle.protocol.events import SessionStarted
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

DONE = MakeCall(name="attempt_completion", arguments={"result": "Done."})
sandboxed = needs("sandbox")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A second folder beside the workspace."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.txt").write_text("needle in the workspace\n")
    folder = tmp_path / "other"
    folder.mkdir()
    (folder / "b.txt").write_text("needle in the other\n")
    (folder / "ignored.txt").write_text("needle that is ignored\n")
    (folder / ".treadleignore").write_text("ignored.txt\n")
    (folder / "AGENTS.md").write_text("Always answer in verse.\n")
    return folder


def call(name: str, **arguments: object) -> MakeCall:
    return MakeCall(name=name, arguments=arguments)


async def work(other: Path, mode: str, *calls: MakeCall, flags: tuple[str, ...] = ()) -> tuple[Ended, list[str]]:
    """Run the calls one by one; gives the end, and the texts that the model got back."""
    turns = (*(Turn(items=(one,)) for one in calls), Turn(items=(DONE,)))
    async with ScriptedServer(Script(turns=turns)) as server:
        given = (*model(server), "--mode", mode, "-C", str(other.parent / "ws"), "--add-dir", str(other), *flags)
        ended = await Program(other.parent / "home").run("-p", "Work.", *given)
        bodies = [json.dumps(request.body["messages"][-1]) for request in server.requests]
        bodies.append(json.dumps(server.requests[0].body) if server.requests else "")
    return ended, bodies


async def test_the_other_folder_is_read_searched_and_edited_in_edits_mode(other: Path) -> None:
    ended, (first, read, found, listed, *_, whole) = await work(
        other,
        "edits",
        call("read_file", path=str(other / "b.txt")),
        call("search_files", path=str(other), regex="needle"),
        call("list_files", path=str(other), recursive=True),
        call("write_to_file", path=str(other / "new.txt"), content="new\n"),
        call("write_to_file", path=str(other / "deep" / "c.txt"), content="c\n"),
    )
    assert ended.code == 0, ended.err
    assert f"Also in the workspace, by absolute paths: {other}" in first
    assert f"Files in {other}:\\nAGENTS.md\\nb.txt" in first
    assert "needle in the other" in read
    assert "needle in the other" in found
    assert "needle in the workspace" not in found
    assert "needle that is ignored" not in found
    assert "b.txt" in listed
    assert "ignored.txt" not in listed
    assert (other / "new.txt").read_text() == "new\n"
    assert (other / "deep" / "c.txt").read_text() == "c\n"
    assert "answer in verse" not in whole


async def test_what_lies_in_no_folder_of_the_workspace_still_asks(other: Path, tmp_path: Path) -> None:
    ended, (_, result, *_) = await work(other, "edits", call("write_to_file", path=str(tmp_path / "x"), content="x"))
    assert ended.code == 55, ended.err
    assert "outside the workspace" in result
    assert not (tmp_path / "x").exists()


async def test_protected_names_ask_in_the_other_folder_too(other: Path) -> None:
    ended, _ = await work(other, "edits", call("write_to_file", path=str(other / "CLAUDE.md"), content="x"))
    assert ended.code == 55, ended.err
    assert not (other / "CLAUDE.md").exists()


WRITES = """
import pathlib
for name in {names}:
    try:
        pathlib.Path(name).write_text('x')
    except OSError as error:
        print(name, error.strerror)
"""


@sandboxed
async def test_a_sandboxed_command_changes_the_other_folder_but_not_what_is_protected_there(
    other: Path, tmp_path: Path
) -> None:
    names = [f"{other}/made.txt", f"{other}/AGENTS.md", f"{other}/.envrc", f"{tmp_path}/outside.txt"]
    (tmp_path / "ws" / "writes.py").write_text(WRITES.format(names=names))
    ended, (_, result, *_) = await work(other, "auto", call("execute_command", command="python3 writes.py"))
    assert ended.code == 0, (ended.err, result)
    assert (other / "made.txt").read_text() == "x"
    assert (other / "AGENTS.md").read_text() == "Always answer in verse.\n"
    assert not (other / ".envrc").exists()
    assert not (tmp_path / "outside.txt").exists()
    left = {path.name for path in other.iterdir()}
    assert left == {"b.txt", "ignored.txt", ".treadleignore", "AGENTS.md", "made.txt"}


async def test_git_asks_in_a_folder_that_is_not_trusted_on_its_own(other: Path) -> None:
    subprocess.run(("git", "-C", str(other), "init", "-q"), check=True)
    line = f"git -C {other} status"
    ended, (_, result, *_) = await work(other, "ask", call("execute_command", command=line), flags=("--trust",))
    assert ended.code == 55, (ended.err, result)
    program = Program(other.parent / "home")
    trusted = await program.run("trust", str(other), "--yes")
    assert trusted.code == 0, trusted.err
    ended, (_, result, *_) = await work(other, "ask", call("execute_command", command=line), flags=("--trust",))
    assert ended.code == 0, (ended.err, result)
    assert "Untracked files" in result


async def test_a_session_that_goes_on_keeps_its_folders(other: Path, tmp_path: Path) -> None:
    first = await work(other, "edits", flags=("--output-format", "stream-json"))
    record = json.loads(first[0].out.splitlines()[0])
    assert (record["type"], record["roots"]) == ("session", [str(other)])
    (started,) = [event.data for event in log_of(tmp_path / "home") if isinstance(event.data, SessionStarted)]
    assert started.roots == (str(other),)
    write = call("write_to_file", path=str(other / "late.txt"), content="late\n")
    turns = (Turn(items=(one,)) for one in (DONE, write, DONE, DONE))
    async with ScriptedServer(Script(turns=tuple(turns))) as server:
        flags = ("-C", str(tmp_path / "ws"), "--continue", *model(server))
        again = await Program(tmp_path / "home").run("-p", "More.", *flags)
        refused = await Program(tmp_path / "home").run("-p", "More.", *flags, "--add-dir", str(tmp_path / "home2"))
        (tmp_path / "third").mkdir()
        late = await Program(tmp_path / "home").run("-p", "More.", *flags, "--add-dir", str(tmp_path / "third"))
        other.rename(tmp_path / "elsewhere")
        gone = await Program(tmp_path / "home").run("-p", "More.", *flags)
    assert (again.code, gone.code) == (0, 0), again.err + gone.err
    assert (tmp_path / "elsewhere" / "late.txt").read_text() == "late\n"
    assert (refused.code, late.code) == (78, 78)
    assert "add-dir-late" in late.err
    assert f"left out: {other} cannot be a folder of the workspace. It does not exist." in gone.err


@pytest.mark.parametrize("folder", ["/", "~", "~/..", "missing", "home", "home/trust"])
async def test_a_folder_that_may_not_belong_to_a_workspace_is_refused(other: Path, folder: str, tmp_path: Path) -> None:
    (tmp_path / "home" / "trust").mkdir(parents=True)
    path = folder if folder[0] in "/~" else str(tmp_path / folder)
    ended = await Program(tmp_path / "home").run("-p", "x", "-C", str(tmp_path / "ws"), "--add-dir", path)
    assert ended.code == 78
    assert "cannot be a folder of the workspace" in ended.err


async def test_a_folder_inside_another_is_told_and_not_added(other: Path) -> None:
    inner = other / "inner"
    inner.mkdir()
    ended, _ = await work(other, "edits", flags=("--add-dir", str(inner)))
    assert f"{inner} is in {other}, which already includes it." in ended.err
