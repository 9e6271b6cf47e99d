"""What one task without a person writes where, and how to go on with it."""

import io
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from treadle.app.compose import Opening, open_session
from treadle.app.config.places import database
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.errors.exits import Exit
from treadle.app.reports.known_sessions import SessionState, listed_sessions
from treadle.app.session.own_commands.slash_commands import find_slash
from treadle.engine.core.past_history import last_state, take_whole
from treadle.headless.headless_main import OutputFormat, run_headless
from treadle.headless.narrator import narrate
from treadle.headless.progress import summary_lines
from treadle.headless.slash_run import for_command, run_slash_command
from treadle.present.figures import unlisted_words
from treadle.protocol.checkpoints import MOST_NAMED
from treadle.protocol.errors import StoreError
from treadle.protocol.events import ENGINE, Delivery, Event, Prompt, ReplyFinished
from treadle.protocol.messages import Text
from treadle.protocol.notifications import QuestionAsked, TurnOutcome, TurnStop
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import FileChange
from treadle.providers.scripted.script import (
    Expectation,
    MakeCall,
    Refuse,
    SayText,
    SayThinking,
    Script,
    Texts,
    Turn,
)
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import Store
from treadle.store.summaries import keep_summaries

ANSWER = "The answer is **42**."
LOOK = MakeCall(name="list_files", arguments={"path": "."})


class Stream(io.StringIO):
    """A stream that is a terminal or not; one that is `gone` fails as a closed one does, after its first line."""

    def __init__(self, *, is_terminal: bool = False, gone: OSError | None = None) -> None:
        super().__init__()
        self._is_terminal = is_terminal
        self._gone = gone

    def isatty(self) -> bool:
        return self._is_terminal

    def write(self, text: str, /) -> int:
        if self._gone is not None and self.getvalue():
            raise self._gone
        return super().write(text)


@dataclass
class Place:
    """A folder and a home, and what was written."""

    folder: Path
    max_steps: int | None = None
    session: str = ""

    async def run(
        self,
        *turns: Turn,
        out: Stream | None = None,
        err: Stream | None = None,
        output: OutputFormat = OutputFormat.TEXT,
        task: str = "What is it?",
        resume: str = "",
    ) -> tuple[int, str, str]:
        """Work a task off; gives the exit code and what came to both streams."""
        out, err = out or Stream(), err or Stream()
        async with ScriptedServer(Script(turns=turns)) as server:
            known = ModelSettings(context_window=200_000, input_price=1.0, output_price=1.0)
            model = "anthropic-compatible/scripted"
            settings = Settings(
                model=model, base_url=server.base_url, models={model: known}, mode=Mode.EDITS, max_steps=self.max_steps
            )
            opening = Opening(workspace=self.folder, settings=settings, user_present=False, resume=resume)
            live = await open_session(opening)
            self.session = live.id
            content = (Text(text=task),) if task else ()
            code = await run_headless(live, content, output, out=out, err=err)
        return code, out.getvalue(), err.getvalue()

    @property
    def resume_line(self) -> str:
        return f"Go on with: treadle --resume {self.session}\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "folder").mkdir()
    return Place(tmp_path / "folder")


def says(*items: SayText | MakeCall | SayThinking) -> Turn:
    return Turn(items=items)


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("completes", [True, False])
async def test_the_answer_goes_to_standard_output_only(place: Place, is_terminal: bool, completes: bool) -> None:
    done = MakeCall(name="attempt_completion", arguments={"result": ANSWER})
    last = says(done) if completes else says(SayText(text=ANSWER))
    code, out, err = await place.run(
        says(SayText(text="Let me look."), LOOK),
        last,
        out=Stream(is_terminal=is_terminal),
        err=Stream(is_terminal=is_terminal),
    )
    assert (code, out) == (Exit.DONE, f"{ANSWER}\n")
    assert "Let me look." in err
    assert ANSWER not in err


async def test_a_text_beside_the_completion_is_progress(place: Place) -> None:
    done = MakeCall(name="attempt_completion", arguments={"result": ANSWER})
    _, out, err = await place.run(says(SayText(text="I am done now."), done))
    assert (out, "I am done now.\n" in err) == (f"{ANSWER}\n", True)


async def test_a_text_that_was_shown_before_the_step_limit_is_not_shown_again_on_the_same_screen(place: Place) -> None:
    place.max_steps = 1
    out_stream, err_stream = Stream(is_terminal=True), Stream(is_terminal=True)
    code, out, err = await place.run(says(SayText(text="Let me look."), LOOK), out=out_stream, err=err_stream)
    assert (code, out, err.count("Let me look.")) == (Exit.STEPS, "", 1)
    code, out, err = await place.run(says(SayText(text="Let me look."), LOOK))
    assert (code, out) == (Exit.STEPS, "Let me look.\n"), "a script still gets it"


@pytest.mark.parametrize("is_terminal", [True, False])
async def test_how_to_go_on_is_said_after_a_good_end_on_a_terminal_only(place: Place, is_terminal: bool) -> None:
    _, _, err = await place.run(says(SayText(text=ANSWER)), err=Stream(is_terminal=is_terminal))
    assert err.count(place.resume_line) == is_terminal


async def test_how_to_go_on_is_said_once_after_an_error_and_before_its_four_lines(place: Place) -> None:
    code, _, err = await place.run(Turn(items=(Refuse(status=400, message="no such thing"),)))
    assert (code, err.count(place.resume_line)) == (Exit.FAILED, 1)
    assert err.index(place.resume_line) < err.index("treadle: The call of")


@pytest.mark.parametrize("output", [OutputFormat.JSON, OutputFormat.STREAM_JSON])
async def test_json_output_names_the_session_in_its_records_alone(place: Place, output: OutputFormat) -> None:
    place.max_steps = 1
    code, out, err = await place.run(says(LOOK), output=output, err=Stream(is_terminal=True))
    last = json.loads(out.splitlines()[-1])
    assert (code, last["session_id"], last["stop"]) == (Exit.STEPS, place.session, "max_turn_requests")
    assert "--resume" not in err


@pytest.mark.parametrize("number", [5, 32])
async def test_a_stream_that_is_gone_ends_the_task_and_keeps_the_session(place: Place, number: int) -> None:
    gone = OSError(number, "gone")
    with pytest.raises(OSError, match="gone"):
        await place.run(says(LOOK), says(SayText(text=ANSWER)), err=Stream(gone=gone))
    code, out, err = await place.run(says(LOOK), says(SayText(text=ANSWER)), resume=place.session, task="")
    assert (code, out) == (Exit.DONE, f"{ANSWER}\n"), err


async def test_a_resumed_session_with_nothing_to_do_says_so_and_how_to_go_on(place: Place) -> None:
    await place.run(says(SayText(text=ANSWER)))
    code, out, err = await place.run(task="", resume=place.session)
    assert (code, out) == (Exit.DONE, "")
    assert err.endswith(f"This session has nothing left to do. Give it a task with -p.\n{place.resume_line}")


async def test_a_resumed_session_with_nothing_to_do_says_so_in_a_record(place: Place) -> None:
    await place.run(says(SayText(text=ANSWER)))
    code, out, _ = await place.run(task="", resume=place.session, output=OutputFormat.JSON)
    record = json.loads(out)
    assert (code, record["session_id"], record["stop"]) == (Exit.DONE, place.session, "end_turn")
    assert (record["steps"], record["text"]) == (0, "")


@pytest.mark.parametrize(
    ("last", "code"),
    [(says(LOOK), Exit.STEPS), (Turn(items=(Refuse(status=400),)), Exit.FAILED)],
    ids=["limit", "error"],
)
async def test_a_session_that_was_stopped_continues_without_a_task(place: Place, last: Turn, code: Exit) -> None:
    place.max_steps = 2
    assert (await place.run(says(LOOK), last))[0] == code
    when = Expectation(last_user=Texts(contains=("Continue with the task.",)))
    goes_on = Turn(when=when, items=(SayText(text=ANSWER),))
    continued, out, err = await place.run(goes_on, task="", resume=place.session)
    assert (continued, out) == (Exit.DONE, f"{ANSWER}\n"), err


async def test_a_task_that_the_log_cuts_off_reports_what_it_has_come_to(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, replies = Store.append, 0

    async def append(store: Store, session_id: str, events: Sequence[Event], **how: Any) -> None:
        nonlocal replies
        replies += sum(isinstance(one.data, ReplyFinished) for one in events)
        if replies == 2:
            raise StoreError("disk-full", "The disk is full.")
        await written(store, session_id, events, **how)

    monkeypatch.setattr(Store, "append", append)
    out = Stream()
    with pytest.raises(StoreError):
        await place.run(says(LOOK), says(LOOK), out=out, output=OutputFormat.JSON)
    result = json.loads(out.getvalue())
    assert (result["stop"], result["steps"], result["why"]) == ("error", 2, "The disk is full.")
    assert result["cost"] > 0


async def test_one_denied_call_is_one_call(place: Place) -> None:
    run = MakeCall(name="execute_command", arguments={"command": "git push"})
    code, _, err = await place.run(says(run), says(SayText(text=ANSWER)))
    assert (code, "# 1 call was denied because nobody was there to approve it; see --mode\n" in err) == (
        Exit.PERMISSION,
        True,
    )


async def test_the_list_says_how_each_session_stands_and_what_it_has_cost(place: Place) -> None:
    await place.run(says(SayText(text=ANSWER)), task="First\n  of all")
    place.max_steps = 1
    await place.run(says(LOOK), task="Second")
    await place.run(Turn(items=(Refuse(status=400),)), task="Third")
    for _ in range(2):  # read, and then as it was kept
        sessions = listed_sessions(place.folder)
        assert [one.title for one in sessions] == ["Third", "Second", "First of all"]
        assert [(one.state, one.ended) for one in sessions] == [
            (SessionState.STOPPED, "error"),
            (SessionState.STOPPED, "max_turn_requests"),
            (SessionState.DONE, None),
        ]
        assert [one.cost is not None and one.cost > 0 for one in sessions] == [False, True, True]


async def test_figures_that_were_not_kept_are_not_read_for_a_quick_list(place: Place) -> None:
    await place.run(says(LOOK), says(SayText(text=ANSWER)), task="First\n  of all")

    def figures(*, read: bool) -> tuple[int | None, str, bool]:
        (one,) = listed_sessions(place.folder, read=read)
        return one.steps, one.first, one.open

    store = Store(database())
    try:
        for old in ({}, {place.session: (10**6, b'{"steps": 9}')}, {place.session: (_events(store), b'{"cost": 1.0}')}):
            keep_summaries(store, old)  # none, of another state of the log, and of an older version
            assert figures(read=False) == (None, "", False)
        assert figures(read=True) == (2, "First of all", False)
        assert figures(read=False) == (2, "First of all", False)
        await store.acquire(place.session)
        assert figures(read=False) == (2, "First of all", True)
    finally:
        store.close()


def _events(store: Store) -> int:
    (row,) = store.sessions()
    return row.events


async def test_a_task_is_narrated_with_its_answer_once(place: Place) -> None:
    out = Stream()
    run = MakeCall(name="execute_command", arguments={"command": "touch made"})
    done = MakeCall(name="attempt_completion", arguments={"result": ANSWER})
    async with ScriptedServer(Script(turns=(says(run), says(done)))) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url, mode=Mode.ASK)
        opening = Opening(workspace=place.folder, settings=settings, user_present=True)
        async with await open_session(opening) as live:
            assert await narrate(live, "Make it.", out) == Exit.DONE
    assert (place.folder / "made").exists()
    assert out.getvalue().startswith("Task: Make it.\n")
    assert out.getvalue().count(ANSWER) == 1


LIST = "- [x] look\n- [ ] fix it\n- [ ] test it"


@pytest.mark.parametrize(
    ("progress", "left"), [(LIST, 2), ("- [x] look\n- [x] fix it", 0), ("- [x] look\n- [ ] fix it", 1)]
)
async def test_a_task_that_ends_with_an_open_checklist_says_so(place: Place, progress: str, left: int) -> None:
    look = MakeCall(name="list_files", arguments={"path": ".", "task_progress": progress})
    done = MakeCall(name="attempt_completion", arguments={"result": "All done."})
    turns = Turn(items=(look,)), Turn(items=(done,))
    code, out, err = await place.run(*turns)
    assert (code, out) == (Exit.DONE, "All done.\n")
    said = f"# {left} of {progress.count('[')} to-do items {'is' if left == 1 else 'are'} open, although the task ended"
    assert (said in err) == bool(left)
    _, out, _ = await place.run(*turns, output=OutputFormat.JSON)
    assert json.loads(out)["open_items"] == left


WRITE = MakeCall(name="write_to_file", arguments={"path": "a.txt", "content": "a\n"})


@pytest.mark.parametrize(("calls", "changed"), [((), False), ((LOOK,), False), ((LOOK, WRITE), True)])
async def test_a_task_that_changed_no_file_says_so_whatever_the_model_claims(
    place: Place, calls: tuple[MakeCall, ...], changed: bool
) -> None:
    turns = *(Turn(items=(call,)) for call in calls), Turn(items=(SayText(text="I fixed it, and all tests pass."),))
    code, _, err = await place.run(*turns)
    assert (code, "# no file was changed" in err, (place.folder / "a.txt").exists()) == (
        Exit.DONE,
        not changed,
        changed,
    )


async def test_a_command_is_done_where_the_turn_that_it_would_stop_ends_as_it_is_taken_up(place: Place) -> None:
    async with ScriptedServer(Script(turns=(says(LOOK), says(SayText(text=ANSWER))))) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url, max_steps=1)
        asked = await open_session(Opening(workspace=place.folder, settings=settings, user_present=True))
        async with asked.follow() as feed, asked:
            await asked.post(Prompt(id="p", content=(Text(text="Work."),)), asked.source)
            await anext(one async for one in feed if isinstance(one, QuestionAsked))
        row = find_slash("pin")
        assert row is not None
        opening = Opening(workspace=place.folder, settings=settings, user_present=False, resume=asked.id)
        live, out, err = await open_session(for_command(opening, row, "It is it.")), Stream(), Stream()
        code = await run_slash_command(live, (row, "It is it."), OutputFormat.TEXT, out=out, err=err)
    assert (code, len(live.status.pins)) == (Exit.DONE, 1), err.getvalue()


@pytest.mark.parametrize(
    ("files", "exact", "said"),
    [
        (0, False, ""),
        (3, True, ""),
        (3, False, "no checkpoint shows what else commands changed"),
        (MOST_NAMED - 1, False, "no checkpoint shows what else commands changed"),
        (MOST_NAMED, False, "a turn lists 1,000 files at most, and `treadle checkpoint list` counts all of them"),
    ],
)
def test_where_more_files_may_have_changed_than_are_listed_the_reason_is_said(
    files: int, exact: bool, said: str
) -> None:
    changes = tuple(FileChange(path=f"/w/{number}", before="", after="a") for number in range(files))
    outcome = TurnOutcome(stop=TurnStop.END_TURN, changes=changes, exact=exact)
    lines = list(summary_lines(outcome))
    assert unlisted_words(outcome) == said
    assert (f"# at least these files changed: {said}" in lines) == bool(said)


_HANGS = """
import asyncio, os, signal, sys
from treadle.headless.progress import HeadlessSignals

async def main():
    with HeadlessSignals(None) as signals:
        signals.end_is_known()
        for number in range(int(sys.argv[1])):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)

asyncio.run(main())
"""


@pytest.mark.parametrize(("signals", "code"), [(4, 0), (5, 130)])
def test_once_the_end_is_known_only_a_fifth_signal_ends_what_hangs(signals: int, code: int) -> None:
    done = subprocess.run([sys.executable, "-c", _HANGS, str(signals)], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize("waiting", [0, 1, 2])
async def test_a_task_for_a_killed_session_comes_after_what_waits_there(place: Place, waiting: int) -> None:
    await place.run(says(SayText(text="First.")))
    store = Store(database())
    state = last_state(store.read(place.session))
    logged = list[Event]()
    for number in range(waiting + 1):
        text = "The turn that was killed." if number == 0 else f"Waits {number}."
        prompt = Prompt(id=f"p{number}", content=(Text(text=text),), delivery=Delivery.QUEUE)
        state, more, _ = take_whole(state, Event(seq=state.seq + 1, at=1, source=ENGINE, data=prompt))
        logged += more
    await store.append(place.session, logged, durable=True)
    store.close()
    order = ["Waits 1.", "Waits 2."][:waiting]

    def answers(said: str) -> Turn:
        return Turn(when=Expectation(last_user=Texts(contains=(said,))), items=(SayText(text=f"To {said}"),))

    turns = [answers("The turn that was killed."), *map(answers, order), answers("The new task.")]
    code, out, err = await place.run(*(turns if waiting else turns[1:]), resume=place.session, task="The new task.")
    assert (code, out) == (Exit.DONE, "To The new task.\n"), err
    store = Store(database())
    asked = [
        event.data.message.content[0].text
        for event in store.read(place.session)
        if isinstance(event.data, ReplyFinished) and isinstance(event.data.message.content[0], Text)
    ]
    store.close()
    expected = ["To The turn that was killed.", *(f"To {one}" for one in order)] if waiting else []
    assert asked == ["First.", *expected, "To The new task."]
