"""What the model is told of files that others change: once, by name, and no edit goes over it."""

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest

from tests.app.mentioning import tell
from tests.app.rehearsal import call, rehearse, run
from treadle.app.session.files.changed_files import changed_files, note_named_changes
from treadle.app.session.recall import PastFiles
from treadle.protocol.events import CallFinished, Event, Noted, Prompt, Source
from treadle.protocol.messages import Enclosure, EnclosureKind
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import CallResult, FileChange, Outcome
from treadle.providers.scripted.script import SayText, Turn
from treadle.workspace.files.text_files import sha256
from treadle.workspace.workspace import Workspace, open_workspace

Look = Callable[[], Awaitable[Noted | None]]
SET = "------- SEARCH\nA = 1\n=======\nA = 2\n+++++++ REPLACE"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.py").write_text("A = 1\n")
    return (tmp_path / "ws").resolve()


def seen(folder: Path, *names: str) -> tuple[Workspace, Look]:
    workspace = open_workspace(folder)
    for name in names:
        workspace.seen.note(str(folder / name), sha256((folder / name).read_bytes()))
    return workspace, partial(changed_files, workspace)


def text_of(noted: Noted | None) -> str:
    return "" if noted is None else noted.notes[0].text


async def test_a_change_by_others_is_told_once_with_its_time(folder: Path) -> None:
    _, changed = seen(folder, "a.py")
    assert await changed() is None
    (folder / "a.py").write_text("A = 3\n")
    os.utime(folder / "a.py", (1_000_000_000, 1_000_000_000))
    told = text_of(await changed())
    assert told.startswith("<note>\nChanged by a command or by someone else since you last read or wrote them")
    assert "a.py (" in told
    assert await changed() is None


async def test_a_deleted_file_is_told_as_one(folder: Path) -> None:
    _, changed = seen(folder, "a.py")
    (folder / "a.py").unlink()
    assert text_of(await changed()) == "<note>\nDeleted by a command or by someone else: a.py\n</note>"
    assert await changed() is None


async def test_a_touched_file_and_one_that_is_written_with_the_same_bytes_are_not_told(folder: Path) -> None:
    _, changed = seen(folder, "a.py")
    os.utime(folder / "a.py", (1, 1))
    assert await changed() is None
    (folder / "a.py").write_text("A = 3\n")
    (folder / "a.py").write_text("A = 1\n")
    assert await changed() is None


async def test_many_changes_are_told_in_bounds(folder: Path) -> None:
    names = [f"{number}.txt" for number in range(500)]
    for name in names:
        (folder / name).write_text("one")
    _, changed = seen(folder, *names)
    for name in names:
        (folder / name).write_text("two")
    told = [text_of(await changed()) for _ in range(5)]
    assert told[0].count(".txt") == 50
    assert "150 more" in told[0]
    assert [text != "" for text in told] == [True, True, True, True, False], "a part of them with each step"


async def test_what_the_result_of_a_command_named_is_not_told_again_and_stays_stale(folder: Path) -> None:
    workspace, changed = seen(folder, "a.py")
    (folder / "a.py").write_text("A = 4\n")
    after = sha256(b"A = 4\n")
    change = FileChange(path=str(folder / "a.py"), before=sha256(b"A = 1\n"), after=after)
    result = CallResult(outcome=Outcome.OK, changes=(change,))
    finished = Event(seq=1, at=0, source=Source(kind="engine"), data=CallFinished(call_id="c", result=result))
    await note_named_changes(workspace.seen, [finished])
    assert await changed() is None
    assert workspace.seen.stale(str(folder / "a.py"), after)


async def test_own_edits_are_not_told_and_others_make_an_edit_stale(folder: Path) -> None:
    edited = await rehearse(
        folder,
        [call("read_file", path="a.py"), call("replace_in_file", path="a.py", diff=SET), call("list_files", path=".")],
        mode=Mode.EDITS,
    )
    assert "Changed by" not in str(edited.requests[-1]["messages"][2:])
    (folder / "a.py").write_text("A = 1\n")
    stale = await rehearse(
        folder,
        [
            call("read_file", path="a.py"),
            run("printf 'A = 1\\nB = 2\\n' > a.py"),
            call("replace_in_file", path="a.py", diff=SET),
        ],
        mode=Mode.FULL,
    )
    assert "Changed by a command or by someone else" in str(stale.requests[2])
    assert "was changed by someone else since you last read" in stale.texts[2]
    assert (folder / "a.py").read_text() == "A = 1\nB = 2\n"


async def test_a_file_that_the_model_knows_to_be_deleted_can_be_written_again(folder: Path) -> None:
    calls = [
        call("read_file", path="a.py"),
        run("rm a.py"),
        call("write_to_file", path="a.py", content="A = 9\n"),
    ]
    await rehearse(folder, calls, mode=Mode.FULL)
    assert (folder / "a.py").read_text() == "A = 9\n"


async def test_a_mentioned_file_is_watched_also_when_the_session_goes_on(folder: Path) -> None:
    first = await tell(folder, "see @a.py")
    (folder / "a.py").write_text("A = 7\n")
    again = await tell(folder, "go on", resume=first.session)
    assert any("Changed by a command or by someone else" in text and "a.py" in text for text in again.texts)


Between = Callable[[Path], object]


def put_back(path: Path) -> None:
    """Put an older text in the place of a file, with its older time, as `mv`, `cp -p` and tar do."""
    older = path.with_name("older")
    older.write_text("A = 0\n")
    os.utime(older, (1_000_000_000, 1_000_000_000))
    older.replace(path)


@pytest.mark.parametrize(
    ("between", "note"), [(put_back, "Changed by a command or by someone else"), (Path.unlink, "Deleted by a command")]
)
@pytest.mark.parametrize("verb", ["read", "written"])
async def test_a_file_that_is_put_back_or_deleted_before_a_session_is_resumed_is_told(
    folder: Path, between: Between, note: str, verb: str
) -> None:
    made = call("write_to_file", path="b.py", content="B = 1\n")
    first = await tell(
        folder,
        "see @a.py" if verb == "read" else "write",
        mode=Mode.EDITS,
        turns=(Turn(items=(made,)), Turn(items=(SayText(text="Fine."),))),
    )
    name = "a.py" if verb == "read" else "b.py"
    between(folder / name)
    again = await tell(folder, "go on", resume=first.session)
    assert [text for text in again.texts if note in text and name in text]


async def test_a_file_read_before_a_session_was_resumed_is_watched_in_it(folder: Path) -> None:
    workspace, changed = seen(folder)
    path = str(folder / "a.py")
    workspace.seen.recall_read(path)
    assert await changed() is None
    assert not workspace.seen.stale(path, sha256(b"A = 1\n"))
    put_back(folder / "a.py")
    assert workspace.seen.stale(path, sha256(b"A = 0\n"))
    assert "a.py (" in text_of(await changed())
    assert workspace.seen.stale(path, sha256(b"A = 0\n"))
    workspace.seen.note(path, sha256(b"A = 0\n"))
    assert not workspace.seen.stale(path, sha256(b"A = 0\n"))


async def test_what_a_session_itself_deleted_is_no_news_when_it_is_resumed(folder: Path) -> None:
    path = str(folder / "a.py")
    mentioned = Enclosure(kind=EnclosureKind.FILE, origin=path, content=())
    deleted = FileChange(path=path, before=sha256(b"A = 1\n"), after="")
    events = (
        Prompt(id="p", content=(), enclosed=(mentioned,)),
        CallFinished(call_id="c", result=CallResult(outcome=Outcome.OK, changes=(deleted,))),
    )
    files = PastFiles()
    for event in events:
        files.take(Event(seq=1, at=1, source=Source(kind="test"), data=event))
    (folder / "a.py").unlink()
    workspace, changed = seen(folder)
    files.note(workspace.seen)
    assert await changed() is None


async def test_a_part_of_a_file_makes_nothing_fresh_that_was_stale(folder: Path) -> None:
    workspace = open_workspace(folder)
    path = str(folder / "a.py")
    workspace.seen.note(path, "what it was")
    workspace.seen.watch(path, "what it is")
    assert workspace.seen.stale(path, "what it is")
    workspace.seen.watch(str(folder / "b.py"), "what it is")
    assert workspace.seen.stale(str(folder / "b.py"), "what it became")
