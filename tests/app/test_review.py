"""The review of a session: parts of its changes are taken back, and nothing that others wrote is lost."""

import asyncio
import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.app.reviewing import ID, Worked, worked
from tests.workspace.checkpoints.folders import Edit, change, edits, state
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.checkpoints.reviewing import FileChoice, HunkChoice
from treadle.app.history.offline import closed_session
from treadle.app.history.restoring_turns import go_back
from treadle.app.reports.session_review import (
    ReviewComment,
    comments_message,
    mark_reviewed,
    open_review,
    review_marks,
    review_steps,
)
from treadle.app.slash.committing import plan_commit
from treadle.engine.core.past_history import take_whole
from treadle.protocol.checkpoints import Restore
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import Event, Source
from treadle.workspace.checkpoints.merging import line_edits, merge_lines, split_lines
from treadle.workspace.checkpoints.revising import revise_lines

USER = Source(kind="test")
TEN = "".join(f"line {number}\n" for number in range(1, 11))


def two_changes(work: Path) -> None:
    (work / "a.txt").write_text(TEN.replace("line 2\n", "second\n").replace("line 9\n", "ninth\nand more\n"))


async def test_a_file_whose_name_is_shown_in_another_way_is_the_sessions_own_in_a_plan_to_commit() -> None:
    async with worked() as session:
        subprocess.run(["git", "init", "-q", str(session.work)], check=True)
        await session.step(lambda: (session.work / "blank ").write_text("own\n"))
        review = session.review()
        plan = await asyncio.to_thread(plan_commit, str(session.work), review.files)
        review.close()
        assert [(one.path, one.own) for one in plan.files] == [("blank\\x20", True)]


async def test_one_change_goes_and_the_other_stays_and_both_come_back() -> None:
    async with worked() as session:
        file = session.work / "a.txt"
        file.write_text(TEN)
        await session.step(lambda: two_changes(session.work))
        review = session.review()
        (shown,) = review.files
        first, second = review.hunks(shown)
        assert (shown.path, shown.kind, shown.own, first.old, first.new) == (
            "a.txt",
            "changed",
            True,
            ("line 2",),
            ("second",),
        )
        assert (second.above, second.below) == (("line 6", "line 7", "line 8"), ("line 10",))
        went = await session.reject(review, FileChoice("a.txt", (HunkChoice(0),)))
        assert (went.result.written, went.result.checkpoint) == ((str(file),), 2), "`/undo` goes on from the last one"
        assert file.read_text() == TEN.replace("line 9\n", "ninth\nand more\n")
        await go_back(ID, went.undo)
        assert file.read_text() == TEN.replace("line 2\n", "second\n").replace("line 9\n", "ninth\nand more\n")


async def test_each_change_names_the_definition_that_it_is_in() -> None:
    async with worked() as session:
        file = session.work / "a.py"
        file.write_text(
            "import os\n\n\nclass A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n"
        )
        later = (
            "import os\nimport re\n\n\nclass A:\n    def one(self):\n        return 11\n\n"
            "    def two(self):\n        return 2\n\n\ndef three():\n    return 3\n"
        )
        await session.step(lambda: file.write_text(later))
        review = session.review()
        (shown,) = review.files
        assert [(one.new_first, one.within) for one in review.hunks(shown)] == [
            (2, ""),
            (7, "def one"),
            (11, "def two"),
        ]
        gone = later.replace("    def one(self):\n        return 11\n\n", "")
        await session.step(lambda: file.write_text(gone))
        review = session.review(old=2)
        (last,) = review.hunks(review.files[0])
        assert last.within == "class A", "lines that go are in what stands above them"


async def test_what_the_user_wrote_since_stays_beside_it_or_is_a_conflict() -> None:
    async with worked() as session:
        file = session.work / "a.txt"
        file.write_text(TEN)
        await session.step(lambda: two_changes(session.work))
        review = session.review()
        file.write_text(file.read_text().replace("line 5\n", "mine\n"))
        assert (await session.reject(review, FileChoice("a.txt", (HunkChoice(1),)))).result.conflicts == ()
        assert file.read_text() == TEN.replace("line 2\n", "second\n").replace("line 5\n", "mine\n")
        file.write_text(file.read_text().replace("second\n", "second, and mine\n"))
        before = file.read_bytes()
        went = await session.reject(review, FileChoice("a.txt", (HunkChoice(0),)))
        assert [one.path for one in went.result.conflicts] == [str(file)]
        assert file.read_bytes() == before


async def test_a_change_is_amended_with_the_line_ends_and_the_encoding_of_the_file() -> None:
    async with worked() as session:
        latin, crlf, open_end = (session.work / name for name in ("latin.txt", "crlf.txt", "end.txt"))
        latin.write_bytes("Größe über alles, schöne Grüße an Jürgen\nzwei Öfen\n".encode("cp1252"))
        crlf.write_bytes(b"one\r\ntwo\r\nthree\r\n")
        open_end.write_bytes(b"one\ntwo")

        def work() -> None:
            latin.write_bytes("Größe über alles, schöne Grüße an Jürgen\nzwei Äpfel\n".encode("cp1252"))
            crlf.write_bytes(b"one\r\n2\r\nthree\r\n")
            open_end.write_bytes(b"one\n2")

        await session.step(work)
        review = session.review()
        assert [review.amendable(name, 0) for name in ("crlf.txt", "end.txt", "latin.txt")] == [
            "2\n",
            "2",
            "zwei Äpfel\n",
        ]
        with pytest.raises(ConfigError, match="cp1252"):
            review.take_back([FileChoice("latin.txt", (HunkChoice(0, "日本"),))])
        await session.reject(
            review,
            FileChoice("latin.txt", (HunkChoice(0, "zwei Bücher"),)),
            FileChoice("crlf.txt", (HunkChoice(0, "2a\n2b"),)),
            FileChoice("end.txt", (HunkChoice(0, "2a\n2b"),)),
        )
        assert latin.read_bytes().decode("cp1252").endswith("Jürgen\nzwei Bücher\n")
        assert crlf.read_bytes() == b"one\r\n2a\r\n2b\r\nthree\r\n"
        assert open_end.read_bytes() == b"one\n2a\n2b"


async def test_new_and_deleted_files_modes_and_links_are_taken_back_whole() -> None:
    async with worked() as session:
        work = session.work
        (work / "gone.txt").write_text("kept\n")
        (work / "run.sh").write_text("echo\n")
        (work / "run.sh").chmod(0o755)

        def edit() -> None:
            (work / "gone.txt").unlink()
            (work / "new").mkdir()
            Path(os.fsdecode(os.fsencode(work) + b"/new/\xff\n.txt")).write_text("x\n")
            (work / "run.sh").chmod(0o644)
            (work / "link").symlink_to("run.sh")
            (work / "data.bin").write_bytes(b"\0\1")

        await session.step(edit)
        review = session.review()
        assert [(one.path, one.kind, one.notes) for one in review.files] == [
            ("data.bin", "added", ("binary, nothing to 2 bytes",)),
            ("gone.txt", "deleted", ()),
            ("link", "added", ("a link",)),
            ("new/\\xff\\n.txt", "added", ()),
            ("run.sh", "changed", ("mode 755 to 644",)),
        ]
        went = await session.reject(
            review,
            FileChoice("gone.txt", (HunkChoice(0),)),
            *(FileChoice(one.path) for one in review.files if one.path != "gone.txt"),
        )
        assert (went.result.conflicts, went.result.error) == ((), "")
        assert state(work) == {b"gone.txt": ("file", b"kept\n", 0o644), b"run.sh": ("file", b"echo\n", 0o755)}


@pytest.mark.parametrize("hunks", [(), (HunkChoice(0),)])
async def test_what_others_wrote_stays_where_a_file_is_taken_back_as_a_whole(hunks: tuple[HunkChoice, ...]) -> None:
    async with worked() as session:
        work = session.work
        (work / "old.txt").write_text(TEN)

        def edit() -> None:
            (work / "old.txt").write_text(TEN.replace("line 2\n", "session\n"))
            (work / "new.txt").write_text("session\n")
            (work / "again.txt").write_text("session\n")

        await session.step(edit)
        await session.step((work / "again.txt").unlink)
        (work / "old.txt").write_text((work / "old.txt").read_text().replace("line 9\n", "mine\n"))
        (work / "new.txt").write_text("session\nmine\n")
        (work / "again.txt").write_text("mine\n")
        review = session.review()
        found = {one.path: (one.own, one.added, one.removed) for one in review.files}
        assert found == {"again.txt": (False, 0, 0), "new.txt": (True, 1, 0), "old.txt": (True, 1, 1)}
        with pytest.raises(ConfigError, match="not changed by this session"):
            review.take_back([FileChoice("again.txt", hunks)])
        with pytest.raises(ConfigError, match="others changed the same lines"):
            review.take_back([FileChoice("new.txt", hunks)])
        await session.reject(review, FileChoice("old.txt", hunks))
        assert (work / "old.txt").read_text() == TEN.replace("line 9\n", "mine\n")


async def test_a_text_in_utf_16_is_counted_and_taken_back_as_a_whole() -> None:
    async with worked() as session:
        text = session.work / "wide.txt"
        text.write_bytes(TEN.encode("utf-16"))
        await session.step(lambda: text.write_bytes(TEN.replace("line 2\n", "Ċ\n\n").encode("utf-16")))
        review = session.review()
        (file,) = review.files
        assert (file.added, file.removed, file.mixed) == (2, 1, False)
        assert file.notes == (f"UTF-16 or UTF-32, {len(TEN) * 2 + 2} bytes to {text.stat().st_size} bytes",)
        assert review.hunks(file) == ()
        await session.reject(review, FileChoice("wide.txt"))
        assert text.read_bytes() == TEN.encode("utf-16")


async def test_a_file_that_others_alone_changed_and_a_folder_in_the_way_are_refused() -> None:
    async with worked() as session:
        work = session.work
        (work / "a").write_text("a\n")
        (work / "mine.txt").write_text("one\n")

        def edit() -> None:
            (work / "a").unlink()
            (work / "a").mkdir()
            (work / "a" / "b").write_text("b\n")

        await session.step(edit)
        (work / "mine.txt").write_text("two\n")
        review = session.review()
        assert {one.path: one.own for one in review.files} == {"a": True, "a/b": True, "mine.txt": False}
        with pytest.raises(ConfigError, match="not changed by this session"):
            review.take_back([FileChoice("mine.txt", (HunkChoice(0),))])
        with pytest.raises(ConfigError, match="cannot be brought back by itself"):
            review.take_back([FileChoice("a")])
        await session.reject(review, FileChoice("a"), FileChoice("a/b"))
        assert (work / "a").read_text() == "a\n"


async def test_nothing_is_taken_back_while_the_session_is_open_elsewhere_or_where_a_link_leads_out() -> None:
    async with worked() as session:
        (session.work / "d").mkdir()
        (session.work / "d" / "a.txt").write_text("one\n")
        await session.step(lambda: (session.work / "d" / "a.txt").write_text("two\n"))
        review = session.review()
        wanted = review.take_back([FileChoice("d/a.txt", (HunkChoice(0),))])
        await session.store.acquire(ID)
        with pytest.raises(SessionError):
            await go_back(ID, wanted)
        await session.store.release(ID)
        outside = session.work.parent / "outside"
        (session.work / "d").rename(outside)
        (session.work / "d").symlink_to(outside)
        result = (await go_back(ID, wanted)).result
        assert (result.written, (outside / "a.txt").read_text()) == ((), "two\n")


async def test_a_conflict_with_a_later_step_of_the_session_is_not_laid_to_others() -> None:
    async with worked() as session:
        file = session.work / "a.txt"
        file.write_text("one\n")
        await session.step(lambda: file.write_text("two\n"))
        review = session.review()
        await session.step(lambda: file.write_text("three\n"))
        went = await session.reject(review, FileChoice("a.txt", (HunkChoice(0),)))
        assert [one.why for one in went.result.conflicts] == ["The same lines were changed again later."]
        assert file.read_text() == "three\n"


async def test_a_part_is_taken_back_once_and_a_later_restore_is_whole_again() -> None:
    async with worked() as session:
        file = session.work / "a.txt"
        file.write_text(TEN)
        await session.step(lambda: two_changes(session.work))
        wanted = session.review().take_back([FileChoice("a.txt", (HunkChoice(0),))])
        assert (await go_back(ID, wanted)).result.error == ""
        assert "not known any more" in (await go_back(ID, wanted)).result.error
        await go_back(ID, Restore(checkpoint=1))
        assert file.read_text() == TEN


async def test_a_part_is_brought_back_when_the_program_ended_in_the_middle_of_it() -> None:
    async with worked() as session:
        file = session.work / "a.txt"
        file.write_text(TEN)
        await session.step(lambda: two_changes(session.work))
        wanted = session.review().take_back([FileChoice("a.txt", (HunkChoice(1),))])
        async with closed_session(session.store, ID, opened_checkpoints(session.store, session.row)) as closed:
            event = Event(seq=closed.state.seq + 1, at=1, source=USER, data=wanted)
            await session.store.append(ID, take_whole(closed.state, event)[1], durable=True)
        async with closed_session(session.store, ID, opened_checkpoints(session.store, session.row)) as closed:
            await closed.end_turn()
        assert file.read_text() == TEN.replace("line 2\n", "second\n")


lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\r\n", b"\xff\n", b"\n"]), max_size=12)


@given(lines, lines, st.sampled_from([b"", b"end"]), st.data())
def test_what_is_inserted_since_survives_every_choice_of_changes_or_conflicts(
    before: list[bytes], after: list[bytes], end: bytes, data: st.DataObject
) -> None:
    old, new = b"".join(before) + end, b"".join(after) + end
    changes = line_edits(split_lines(old), split_lines(new))
    assert revise_lines(old, new, changes, {}) == new
    assert revise_lines(old, new, changes, dict.fromkeys(range(len(changes)))) == old
    chosen = data.draw(st.sets(st.sampled_from(range(len(changes))))) if changes else set()
    revised = revise_lines(old, new, changes, dict.fromkeys(chosen))
    place = data.draw(st.integers(0, len(after)))
    now = b"".join([*after[:place], b"the user's\n", *after[place:]]) + end
    merged = merge_lines(new, now, revised)
    if merged is not None:
        assert merged.count(b"the user's\n") == 1
        assert merged.replace(b"the user's\n", b"") == revised


@settings(max_examples=20)
@given(st.lists(edits, max_size=4), st.lists(st.lists(edits, min_size=1, max_size=4), min_size=1, max_size=3))
def test_taking_back_every_change_is_what_a_restore_does(before: list[Edit], steps: list[list[Edit]]) -> None:
    async def play() -> None:
        async with worked() as session:
            for edit in before:
                change(session.work, edit)
            await _play(session, steps)
            first = session.review(1, 1)
            review = session.review()
            for root, entry in zip(review.old, first.old, strict=True):
                assert root == entry
            choices = [
                FileChoice(one.path, tuple(HunkChoice(hunk.index) for hunk in review.hunks(one)))
                if not one.notes
                else FileChoice(one.path)
                for one in review.files
            ]
            if not choices:
                return
            result = (await session.reject(review, *choices)).result
            assert (result.conflicts, result.error) == ((), "")
            assert session.review().files == ()

    asyncio.run(play())


async def _play(session: Worked, steps: list[list[Edit]]) -> None:
    for each in steps:
        # What cannot be kept, such as a pipe, cannot be brought back either.
        kept = [edit for edit in each if edit[0] != "fifo"]
        await session.step(partial(_change_all, session.work, kept))


def _change_all(work: Path, wanted: list[Edit]) -> None:
    for edit in wanted:
        change(work, edit)


async def test_marks_are_kept_for_the_session_and_comments_are_one_message() -> None:
    async with worked() as session:
        assert open_review(session.store, session.row) is None
        (session.work / "a.txt").write_text(TEN)
        await session.step(lambda: two_changes(session.work))
        review = session.review()
        first, second = review.hunks(review.file("a.txt"))
        mark_reviewed(ID, {first.key: "accepted", second.key: "rejected"})
        mark_reviewed(ID, {second.key: ""})
        assert review_marks(ID) == {first.key: "accepted"}
        assert [(one.old, one.new, one.files, one.added, one.removed) for one in review_steps(session.store, ID)] == [
            (1, 2, 1, 3, 2)
        ]
        said = comments_message(
            review,
            [
                ReviewComment(path="a.txt", index=1, text="Why two?", side="new", first=1, last=1),
                ReviewComment(path="a.txt", index=0, text="Call it first."),
            ],
        )
        assert said == (
            "Comments on your changes (2 comments):\n\n"
            "a.txt, line 2:\n\n```diff\n-line 2\n+second\n```\n\nCall it first.\n\n"
            "a.txt, line 10:\n\n```diff\n+and more\n```\n\nWhy two?"
        )
