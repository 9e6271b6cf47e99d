"""/add-dir: a copy of the session goes on with other folders, and nothing is restored across that."""

from pathlib import Path

import pytest

from tests.person import ENTER
from tests.tui.session import Pause, prompt, says, session, text
from tests.tui.terminal import terminal
from treadle.app.checkpoints.checkpoint_files import FileCheckpoints
from treadle.app.session.files.roots import past_roots
from treadle.protocol.checkpoints import CheckpointTaken, Moment
from treadle.protocol.errors import SessionError
from treadle.protocol.events import ENGINE, Event, SessionStarted
from treadle.store.sqlite import Store

READY = "? for keys"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOME", str(tmp_path / "user"))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a session, with another one beside it; its store is the program's own."""
    folder = tmp_path / "ws"
    folder.mkdir()
    (tmp_path / "other").mkdir()
    monkeypatch.setenv("TREADLE_HOME", str(folder))
    return folder


def started(folder: Path, session_id: str) -> SessionStarted:
    (first,) = Store(folder / "sessions.db").read(session_id, before=2)
    assert isinstance(first.data, SessionStarted)
    return first.data


async def test_the_copy_has_the_folder_the_conversation_and_a_word_for_the_model(here: Path) -> None:
    opened: list[str] = []
    async with session(here, says(text("Fine."))) as rig, terminal(rig.live, switch=opened.append) as (term, ended):
        await term.until(READY)
        term.type(f"hello{ENTER}")
        await term.until("Fine.", "■ Done")
        term.type(f"/add-dir ../other{ENTER}")
        await term.when(ended.done, "the end")
        assert "continues with" in term.shown
    (copy,) = opened
    other = str(here.parent / "other")
    assert started(here, copy).roots == (other,)
    assert started(here, rig.live.id).roots == ()
    events = list(Store(here / "sessions.db").read(copy))
    assert past_roots(here, events, None).folders == (other,)
    assert "Besides the one that it starts in" in str(events[-1].data)
    assert "Fine." in str(events)


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("", "This session has no further folder."),
        ("off 1", "There is no further folder 1."),
        ("../nowhere", "It does not exist."),
        ("/", "It is too wide"),
    ],
)
async def test_what_is_not_added_is_said_and_the_session_stays(here: Path, argument: str, said: str) -> None:
    opened: list[str] = []
    async with session(here) as rig, terminal(rig.live, switch=opened.append) as (term, _):
        await term.until(READY)
        term.type(f"/add-dir {argument}{ENTER}")
        await term.until(said)
    assert opened == []


async def test_no_folder_is_added_while_the_model_works(here: Path) -> None:
    async with session(here, says(text("Slow."), Pause(1e9))) as rig, terminal(rig.live) as (term, _):
        await term.until(READY)
        await rig.live.post(prompt("go"), rig.live.source)
        await term.until("Slow.")
        term.type(f"/add-dir ../other{ENTER}")
        await term.until("The model is working. Interrupt it first")


async def test_files_are_not_restored_from_a_checkpoint_of_other_folders(here: Path) -> None:
    async with session(here) as rig:
        store, row = Store(here / "sessions.db"), Store(here / "sessions.db").find(rig.live.id)
        one = FileCheckpoints(store, row.id, here.parent / "kept", [str(here)], ignored=False)
        taken = CheckpointTaken(n=1, step=1, moment=Moment.BEFORE, trees=one.look(), files=0)
        await store.append(row.id, [Event(seq=row.events + 1, at=1, source=ENGINE, data=taken)], durable=True)
        one.close()
        both = FileCheckpoints(
            store, row.id, here.parent / "kept", [str(here), str(here.parent / "other")], ignored=False
        )
        with pytest.raises(SessionError, match="cannot be restored") as refused:
            await both.restore(1)
        assert refused.value.why == "The session had other folders then."
        both.close()
