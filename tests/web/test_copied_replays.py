"""A replay from a step on the page: in a copy of the folder, beside what was recorded, taken, and that undone."""

import re
from pathlib import Path

import pytest

from tests.e2e.faults.driving import make, run
from tests.web.in_process import idle, page_here
from treadle.app.subagents.writer_copies import found_copies
from treadle.providers.scripted.script import Expectation, SayText, ScriptItem, Texts, Turn

MOVED = "From here on the workspace is"


def turn(before: int, *items: ScriptItem, moved: bool = False) -> Turn:
    """A reply after so many, in what is recorded or in the copy."""
    said = Texts(contains=(MOVED,)) if moved else Texts(not_contains=(MOVED,))
    return Turn(when=Expectation(assistant_messages=before, conversation=said), items=items)


TURNS = (
    turn(0, make("write_to_file", path="a.txt", content="two\n")),
    turn(1, make("write_to_file", path="b.txt", content="b\n"), run("test -f c.txt")),
    turn(2, SayText(text="Done.")),
    turn(1, make("read_file", path="a.txt"), moved=True),
    turn(
        2,
        make("write_to_file", path="a.txt", content="other\n"),
        make("write_to_file", path="c.txt", content="c\n"),
        run("test -f c.txt"),
        run("true"),
        moved=True,
    ),
    turn(3, SayText(text="Done otherwise."), moved=True),
)


async def test_a_replay_works_in_a_copy_beside_what_was_recorded_and_is_taken_and_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TURNS, mode="edits") as here:
        visit = here.visit()
        recorded = await here.start(visit, "Write.")
        await idle(recorded)
        path = f"/s/{recorded.session.id}/replay"
        form = await visit.get(f"{path}?step=2")
        assert re.findall(r'<option value="(\d)"( selected)?', form) == [("3", ""), ("2", " selected"), ("1", "")]
        began = await visit.done(path, step="2", model="", most="")
        new = began["path"].split("/")[2]
        replay = here.book.opened[new]
        await idle(replay)
        assert {one.name: one.read_text() for one in here.folder.glob("*.txt")} == {"a.txt": "two\n", "b.txt": "b\n"}
        copy = replay.session.workspace
        assert {one.name: one.read_text() for one in copy.glob("*.txt")} == {"a.txt": "other\n", "c.txt": "c\n"}
        shown = await visit.get(f"{began['path']}/rows")
        assert "From step 2" in shown
        assert 'data-title="From step 2: Write."' in await visit.get("/sessions/rows")
        assert re.findall(r"<dt>(Steps|Files)</dt><dd>([^<]+)<", shown) == [
            ("Steps", "2"),
            ("Files", "1"),
            ("Steps", "3"),
            ("Files", "2"),
        ]
        assert re.findall(r"<dt>Commands</dt><dd>([^<]+)<", shown) == ["1, 1 failed last", "2"]
        ends = re.findall(r"<li><code[^>]*>([^<]+)</code> <span class=\"(?:danger|added)\">([^<]+)<", shown)
        assert ends == [("test -f c.txt", "exit 1"), ("test -f c.txt", "passed")], "those of both, as they ended"
        (here.folder / "later.txt").write_text("of somebody else\n")
        assert "later.txt" not in await visit.get(f"{began['path']}/rows"), "each side has its own work alone"
        (here.folder / "later.txt").unlink()
        said = await visit.done(f"{began['path']}/../copy/take")
        assert said["said"].startswith("3 files taken."), said
        assert {one.name: one.read_text() for one in here.folder.glob("*.txt")} == {"a.txt": "other\n", "c.txt": "c\n"}
        (here.folder / "own.txt").write_text("mine\n")
        said = await visit.done(f"{began['path']}/../copy/undo")
        assert said["said"] == "2 files restored, 1 file deleted."
        assert {one.name: one.read_text() for one in here.folder.glob("*.txt")} == {
            "a.txt": "two\n",
            "b.txt": "b\n",
            "own.txt": "mine\n",
        }
        assert began["path"] in await visit.get(path), "it is listed with the session"
        assert (await visit.post(f"{began['path']}/../copy/undo"))[1]["code"] == "nothing-to-undo"
        assert (await visit.done(f"{began['path']}/../copy/take"))["said"].startswith("3 files taken.")
        assert (await visit.done(f"{began['path']}/../copy/undo"))["said"] == "2 files restored, 1 file deleted."


async def test_what_others_changed_meanwhile_stays_and_what_was_taken_twice_is_undone_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TURNS, mode="edits") as here:
        visit = here.visit()
        recorded = await here.start(visit, "Write.")
        await idle(recorded)
        began = (await visit.done(f"/s/{recorded.session.id}/replay", step="2", model="", most=""))["path"]
        await idle(here.book.opened[began.split("/")[2]])
        (here.folder / "a.txt").write_text("mine\n")
        said = (await visit.done(f"{began}/../copy/take"))["said"]
        assert said.startswith("2 files taken.")
        assert "a.txt is changed in the folder, too" in said
        assert {one.name: one.read_text() for one in here.folder.glob("*.txt")} == {"a.txt": "mine\n", "c.txt": "c\n"}
        (here.folder / "c.txt").write_text("mine, too\n")
        said = (await visit.done(f"{began}/../copy/undo"))["said"]
        assert "c.txt" in said
        assert {one.name: one.read_text() for one in here.folder.glob("*.txt")} == {
            "a.txt": "mine\n",
            "b.txt": "b\n",
            "c.txt": "mine, too\n",
        }


async def test_what_others_did_since_the_step_is_not_taken_away_with_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TURNS, mode="edits") as here:
        visit = here.visit()
        for name in ("theirs.txt", "gone.txt"):
            (here.folder / name).write_text("first\nsecond\nthird\n")
        recorded = await here.start(visit, "Write.")
        await idle(recorded)
        (here.folder / "theirs.txt").write_text("first\nsecond\nthird\nand mine\n")
        (here.folder / "notes.txt").write_text("mine\n")
        (here.folder / "gone.txt").unlink()
        began = (await visit.done(f"/s/{recorded.session.id}/replay", step="2", model="", most=""))["path"]
        replay = here.book.opened[began.split("/")[2]]
        await idle(replay)
        copy = replay.session.workspace
        assert (copy / "theirs.txt").read_text() == (copy / "gone.txt").read_text() == "first\nsecond\nthird\n"
        assert not (copy / "notes.txt").exists(), "it works with the files of the step"
        sides = re.findall(r"<dt>(Steps|Files)</dt><dd>([^<]+)<", await visit.get(f"{began}/rows"))
        mine = {"theirs.txt": "first\nsecond\nthird\nand mine\n", "notes.txt": "mine\n"}
        assert (await visit.done(f"{began}/../copy/take"))["said"].startswith("3 files taken.")
        found = {one.name: one.read_text() for one in here.folder.glob("*.txt")}
        assert found == {"a.txt": "other\n", "c.txt": "c\n", **mine}
        assert (await visit.done(f"{began}/../copy/undo"))["said"] == "2 files restored, 1 file deleted."
        found = {one.name: one.read_text() for one in here.folder.glob("*.txt")}
        assert found == {"a.txt": "two\n", "b.txt": "b\n", **mine}
        assert re.findall(r"<dt>(Steps|Files)</dt><dd>([^<]+)<", await visit.get(f"{began}/rows")) == sides


async def test_a_replay_that_cannot_begin_leaves_neither_a_copy_nor_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TURNS, mode="edits") as here:
        visit = here.visit()
        recorded = await here.start(visit, "Write.")
        await idle(recorded)
        path = f"/s/{recorded.session.id}/replay"
        for wish in ({"step": "9"}, {"step": "x"}, {"step": "1", "most": "none"}, {"step": "1", "model": "nonsense"}):
            status, said = await visit.post(path, **{"model": "", "most": "", **wish})
            assert status >= 400, (wish, said)
        assert (found_copies(), len((await visit.get("/sessions/rows")).split("<tr "))) == ((), 2)
        assert (await visit.post(f"{path}/../copy/take"))[1]["code"] == "no-copy"


async def test_a_replay_that_works_or_asks_is_not_taken_and_a_step_limit_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with page_here(tmp_path, monkeypatch, TURNS, mode="ask") as here:
        visit = here.visit()
        recorded = await here.start(visit, "Write.")
        for number in (1, 2):
            question = await here.asked(recorded, about="ab"[number - 1] + ".txt")
            await visit.done(f"/s/{recorded.session.id}/answer", question_id=question.id, option="allow_once")
        await idle(recorded)
        began = (await visit.done(f"/s/{recorded.session.id}/replay", step="2", model="", most="1"))["path"]
        replay = here.book.opened[began.split("/")[2]]
        assert "step" in (await here.asked(replay)).text
        assert "Read" in await visit.get(f"{began}/rows"), "one step of the replay itself"
        assert (await visit.post(f"{began}/../copy/take"))[1]["code"] == "copy-busy"
        assert "disabled>Take this one" in await visit.get(f"{began}/rows")
