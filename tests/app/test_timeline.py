"""The timeline of a session: every event in its order, page by page, by topic, and all that is known of one."""

import asyncio
from functools import partial

import pytest

from tests.app.reviewing import ID, Worked, worked
from tests.golden.logs import golden_logs, read_rows
from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints
from treadle.app.history.forking import fork_at_checkpoint
from treadle.app.history.offline import closed_session
from treadle.app.history.restoring_turns import go_back
from treadle.app.reports.checkpoint_list import preview_lines, restore_preview
from treadle.app.reports.event_words import EventTopic, words_of_event
from treadle.app.reports.timeline_report import Going, event_detail, timeline_page
from treadle.cli.main import run
from treadle.engine.runtime import step_checkpoints
from treadle.protocol.checkpoints import Restore
from treadle.protocol.errors import RefusedError, SessionError
from treadle.protocol.events import SetMode, Source
from treadle.protocol.notifications import Phase
from treadle.protocol.permissions import Mode

USER = Source(kind="web", id="visitor")


async def _modes(session: Worked, count: int) -> None:
    async with closed_session(session.store, ID, opened_checkpoints(session.store, session.row)) as closed:
        for number in range(count):
            await closed.post(SetMode(mode=list(Mode)[number % 4]), USER)


async def test_pages_lead_through_all_events_forwards_and_back_and_around_one() -> None:
    async with worked() as session:
        await _modes(session, 24)
        read = partial(timeline_page, session.store, session.row, most=10)
        last = read()
        assert ([one.seq for one in last.rows], last.earlier, last.later) == (list(range(16, 26)), True, False)
        before = read(at=6)
        assert ([one.seq for one in before.rows], before.earlier, before.later) == ([1, 2, 3, 4, 5], False, True)
        after = read(at=20, going=Going.AFTER)
        assert ([one.seq for one in after.rows], after.later) == ([21, 22, 23, 24, 25], False)
        around = read(at=12, going=Going.AROUND)
        assert [one.seq for one in around.rows] == list(range(7, 17))
        assert (around.earlier, around.later, around.events) == (True, True, 25)
        assert (after.rows[0].by, after.rows[0].words.title) == ("on visitor", "Mode auto")


async def test_a_theme_shows_its_events_alone_page_by_page() -> None:
    async with worked() as session:
        await _modes(session, 5)
        await session.step(lambda: (session.work / "a.txt").write_text("one\n"))
        await _modes(session, 5)
        files = timeline_page(session.store, session.row, EventTopic.FILES)
        assert [one.words.title for one in files.rows] == [
            "Checkpoint 1 before changes",
            "Checkpoint 2 after changes",
        ]
        assert files.rows[1].words.text == "1 file +1 −0"
        models = timeline_page(session.store, session.row, EventTopic.MODELS, most=4)
        assert ([one.seq for one in models.rows], models.earlier) == ([10, 11, 12, 13], True)
        earlier = timeline_page(session.store, session.row, EventTopic.MODELS, at=10, most=4)
        assert ([one.seq for one in earlier.rows], earlier.earlier) == ([4, 5, 6, 9], True)
        later = timeline_page(session.store, session.row, EventTopic.MODELS, at=5, going=Going.AFTER, most=4)
        assert ([one.seq for one in later.rows], later.later) == ([6, 9, 10, 11], True)


async def test_all_of_one_event_is_known_and_an_unknown_one_is_refused() -> None:
    async with worked() as session:
        await _modes(session, 1)
        detail = event_detail(session.store, session.row, 2)
        assert detail.chain == session.store.chains(ID)[1].hex()
        assert '"mode": "plan"' in detail.whole
        for unknown in (0, 3, -1, 10**30):
            with pytest.raises(SessionError):
                event_detail(session.store, session.row, unknown)


async def test_the_command_says_how_far_a_restore_is_that_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for pause in ("_SILENCE", "_PAUSE"):
        monkeypatch.setattr(step_checkpoints, pause, 0.0)
    async with worked() as session:
        files = [session.work / f"{number}.txt" for number in range(200)]
        await session.step(lambda: [file.write_text("new\n") for file in files])
        assert await asyncio.to_thread(run, ("checkpoint", "restore", "1", ID, "--yes")) == 0
        assert not any(file.exists() for file in files)
    said = capsys.readouterr()
    assert said.err.startswith("Restoring files: ")
    assert "Restoring" not in said.out


async def test_a_preview_says_what_a_restore_does_and_its_wish_undoes_it() -> None:
    async with worked() as session:
        file, new = session.work / "a.txt", session.work / "new.txt"
        file.write_text("one\n")
        await session.step(lambda: (file.write_text("two\n"), new.write_text("new\n")))
        kept = opened_checkpoints(session.store, session.row)
        wanted = Restore(checkpoint=1)
        preview = restore_preview(session.store, session.row, kept, wanted, diffs=10)
        assert [(one.what, one.path) for one in preview.paths] == [("write", str(file)), ("delete", str(new))]
        assert "-two\n+one" in preview.paths[0].diff
        assert preview_lines(preview, wanted) == [
            f"write     {file}",
            f"delete    {new}",
        ]
        went = await go_back(ID, wanted)
        assert (file.read_text(), new.exists()) == ("one\n", False)
        again = await go_back(ID, went.undo)
        assert (file.read_text(), new.read_text(), again.result.error) == ("two\n", "new\n", "")
        both = await go_back(ID, Restore(checkpoint=1, conversation=True))
        assert (both.result.error, file.read_text(), both.undo.conversation) == ("", "one\n", True)
        back = await go_back(ID, both.undo)
        assert (back.result.error, file.read_text()) == ("", "two\n")
        assert not any(row.left for row in timeline_page(session.store, session.row).rows if row.seq <= both.undo.to)


async def test_a_fork_at_a_checkpoint_has_the_checkpoints_up_to_it() -> None:
    async with worked() as session:
        for number in range(3):
            await session.step(lambda number=number: (session.work / "a.txt").write_text(f"{number}\n"))  # type: ignore[misc]
        new, count = fork_at_checkpoint(session.store, session.row, 3)
        row = session.store.find(new)
        assert (count, row.workspace, new != ID) == (3, str(session.work), True)
        assert timeline_page(session.store, row).rows[0].words.title == "Session started"


async def test_what_the_open_session_refuses_is_said_and_changes_nothing() -> None:
    async with worked() as session:
        await session.step(lambda: (session.work / "a.txt").write_text("one\n"))

        async def refuse(wanted: Restore) -> None:
            raise RefusedError(type(wanted).__name__, Phase.EXECUTING_TOOL, "a turn is going on: interrupt it first")

        with pytest.raises(SessionError, match="Nothing can be restored now") as raised:
            await go_back(ID, Restore(checkpoint=1), refuse)
        assert raised.value.why == "A turn is going on: interrupt it first."
        assert (session.work / "a.txt").exists()


def test_every_event_of_every_golden_log_has_words_and_most_kinds_have_a_topic() -> None:
    events = [event for log in golden_logs() for event in read_rows(log.rows)]
    words = [(type(event.data), words_of_event(event.data)) for event in events]
    assert len({kind for kind, _ in words}) > 25
    assert [kind for kind, said in words if not said.title or len(said.text) > 250] == []
    assert {topic for _, said in words for topic in said.topics} == set(EventTopic)
