"""Whoever was asked in between: review, list, the end of a turn and a way back agree with who wrote which bytes."""

import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.app.owning import own_work_scene
from tests.app.rehearsal import call, rehearse
from tests.app.reviewing import ID, Worked, worked
from tests.normal_user import normal_user
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.own_files import OwnFiles
from treadle.app.checkpoints.points import Points
from treadle.app.config.places import outputs
from treadle.app.history.offline import closed_session
from treadle.app.history.restoring_turns import go_back
from treadle.engine.ports import KnownChanges
from treadle.engine.runtime.step_checkpoints import Checkpointer
from treadle.protocol.checkpoints import Moment, OwnTotal, Restore
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import FileChange
from treadle.workspace.commands.background_jobs import Job, ran_since
from treadle.workspace.files.owners import Owner, owner_of

SAMPLE, ALL = 4, 600
GONE = Owner(2**22 - 1, 1)
ME = owner_of(os.getpid())


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.soak if seed >= SAMPLE else ()) for seed in range(ALL)]
)
async def test_own_work_is_own_work(seed: int) -> None:
    async with own_work_scene(seed) as scene:
        await scene.work(turns=5)


def note_job(folder: Path, *, guard: Owner = ME, owner: Owner = ME, ended_at: int = 0) -> None:
    job = Job(
        number=1,
        command="serve",
        started_at=1,
        guard=guard,
        owner=owner,
        output="",
        ended="Exit status 0." if ended_at else "",
        ended_at=ended_at,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "job-1.json").write_bytes(msgspec.json.encode(job))


@pytest.mark.parametrize(
    ("job", "ran"),
    [
        ({}, True),
        ({"ended_at": 1_000}, True),
        ({"ended_at": 999}, False),
        ({"guard": GONE}, True),
        ({"guard": GONE, "owner": GONE}, True),
    ],
)
def test_a_command_in_the_background_ran_as_long_as_nobody_knows_that_it_had_ended(
    job: dict[str, object], ran: bool, tmp_path: Path
) -> None:
    assert not ran_since(tmp_path / "nothing", 1_000)
    note_job(tmp_path, **job)  # type: ignore[arg-type]
    assert ran_since(tmp_path, 1_000) is ran


def test_a_command_that_was_killed_with_its_session_has_ended_once_that_is_seen(tmp_path: Path) -> None:
    note_job(tmp_path, guard=GONE, owner=GONE)
    assert ran_since(tmp_path, 1_000)
    assert not ran_since(tmp_path, 2**62)


async def test_what_changed_while_a_command_ran_in_the_background_stays_where_all_is_taken_back_and_is_named() -> None:
    async with worked() as session:
        (session.work / "base.txt").write_text("base\n")
        await session.step(lambda: (session.work / "own.txt").write_text("own\n"))
        note_job(outputs() / ID)
        (session.work / "served.txt").write_text("by it or by the user\n")
        await take(session, Moment.BEFORE)
        assert [one.data.moment for one in Points(session.store, ID).checkpoints] == [
            Moment.BEFORE,
            Moment.AFTER,
            Moment.FOUND,
            Moment.BEFORE,
        ]
        with_both = session.review()
        assert {one.path: one.own for one in with_both.files} == {"own.txt": True, "served.txt": True}
        with_both.close()
        back = await go_back(ID, Restore(checkpoint=1))
        assert [Path(one.path).name for one in back.result.conflicts] == ["served.txt"]
        assert sorted(file.name for file in session.work.iterdir()) == ["base.txt", "served.txt"]


@pytest.mark.parametrize("place", ["work", "~"])
async def test_a_file_whose_name_is_shown_in_another_way_is_one_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / place
    folder.mkdir()
    Path(os.fsdecode(os.fsencode(folder) + b"/half\xff.txt")).write_text("a\n")
    names = ["blank ", "back\\x41.txt", "half\\xff.txt", "~/in", "plain.txt", "é.txt"]
    (folder / "~").mkdir()
    calls = [call("read_file", path="half\\xff.txt")]
    calls += [call("write_to_file", path=f"./{name}", content="x\n") for name in names]
    done = await rehearse(folder, calls, mode=Mode.FULL)
    assert sorted(Path(one.path).name for one in done.changes) == sorted(Path(name).name for name in names)
    assert {(one.added, one.removed) for one in done.changes if "half" in one.path} == {(1, 1)}


async def test_checkpoints_of_other_folders_are_no_part_of_what_is_counted() -> None:
    async with worked() as session:
        kept = opened_checkpoints(session.store, session.row)
        one = kept.take_now(1, ())
        both = replace(one, trees=(*one.trees, "")), replace(one, n=2, moment=Moment.AFTER)
        own = OwnFiles(kept.roots, both)
        assert (own.n, own.total) == (2, OwnTotal())
        kept.close()


@normal_user
async def test_a_file_that_no_checkpoint_covers_stays_reported_where_its_folder_is_closed() -> None:
    async with worked() as session:
        (session.work / ".gitignore").write_text("ignored/\n")
        folder = session.work / "ignored"
        folder.mkdir()
        (folder / "a.txt").write_text("one\n")
        kept = opened_checkpoints(session.store, session.row)
        one = kept.take_now(1, ())
        reported = FileChange(path=str(folder / "a.txt"), before="", after="1", added=1, removed=0)
        known = KnownChanges(n=1, session=(reported,), turn=(reported,), first_step=0)
        named = []
        for mode in (0o755, 0o000):
            folder.chmod(mode)
            named.append(OwnFiles(kept.roots, [one]).with_own_work(replace(one, n=2, moment=Moment.AFTER), known).own)
        folder.chmod(0o755)
        kept.close()
        assert named == [(), ()], "nothing else is said of it"


async def take(session: Worked, moment: Moment) -> None:
    kept = opened_checkpoints(session.store, session.row)
    async with closed_session(session.store, ID, kept) as closed:
        await Checkpointer(kept, closed).take(9, moment)
    kept.close()


async def test_a_checkpoint_counts_what_is_left_and_after_a_way_back_nothing() -> None:
    async with worked() as session:
        (session.work / "a.txt").write_text("one\n")
        await take(session, Moment.BEFORE)
        (session.work / "a.txt").write_text("two\nthree\n")
        await take(session, Moment.AFTER)
        (session.work / "others.txt").write_text("by the user\n")
        await go_back(ID, Restore(checkpoint=1))
        totals = [one.data.total for one in Points(session.store, ID).checkpoints]
        assert totals == [
            OwnTotal(),
            OwnTotal(files=1, added=2, removed=1),
            OwnTotal(files=1, added=2, removed=1),
            OwnTotal(),
        ]
        assert (session.work / "others.txt").exists()
