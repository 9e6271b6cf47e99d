"""A program works with a session: tasks, approvals, tools, models, files and clock of its own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.running import PATIENCE, log_of
from treadle import Treadle
from treadle.app.config.layers import load_settings
from treadle.app.history.replaying import replay_rows, session_tape
from treadle.app.processes.attaching import attach_session
from treadle.app.session.shared.remote import RemoteSession
from treadle.library import Answer, OptionKind, Question, QuestionKind, TaskRun
from treadle.library.approving import answer_of
from treadle.library.task_result import TaskResult
from treadle.protocol.errors import ConfigError, SessionError
from treadle.protocol.events import Interrupt, Prompt, SessionStarted
from treadle.protocol.messages import Text
from treadle.protocol.models import ModelRequest, ReplyStop, StreamEvent, StreamStop, StreamText
from treadle.protocol.notifications import (
    CallChanged,
    CallStatus,
    Notification,
    QuestionAsked,
    TextDelta,
    TurnEnded,
    TurnStop,
)
from treadle.protocol.usage import Usage
from treadle.providers.scripted.provider import ScriptedProvider
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn, Wait
from treadle.testing import call, scripted_model
from treadle.workspace.files.file_access import DiskFiles

WRITE = call("write_to_file", path="a.txt", content="hello\n")
DONE = call("attempt_completion", result="Done.")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "folder"
    made.mkdir()
    return made


def writes() -> ScriptedProvider:
    """A model that writes a.txt and is done."""
    return scripted_model(["Now.", WRITE], DONE)


async def test_a_task_that_is_iterated_over_shows_what_happens_and_has_a_result(folder: Path) -> None:
    model = writes()
    async with Treadle(folder, model=model, mode="edits") as t:
        run = t.run("Write a.txt.")
        heard = [notification async for notification in run]
    assert "".join(one.text for one in heard if isinstance(one, TextDelta)).startswith("Now.")
    assert [one.call.name for one in heard if isinstance(one, CallChanged) and one.status is CallStatus.RUNNING] == [
        "write_to_file",
        "attempt_completion",
    ]
    assert isinstance(heard[-1], TurnEnded)
    result = run.result
    assert result == TaskResult(session_id=t.session_id, text="Done.", outcome=heard[-1].outcome)
    assert (result.ok, result.error, [(one.path, one.added) for one in result.changes]) == (
        True,
        "",
        [(str(folder / "a.txt"), 1)],
    )
    assert (folder / "a.txt").read_text() == "hello\n"
    assert model.violations == []


async def test_without_an_approval_function_what_would_ask_is_denied(folder: Path) -> None:
    async with Treadle(folder, model=writes()) as t:
        result = await t.run("Write a.txt.")
    assert (result.ok, result.outcome.denied, list(folder.iterdir())) == (False, 1, [])


RUN = call("execute_command", command="echo hello > a.txt")
RULE = 'version = 1\n[[rule]]\nid = "mine"\nverdict = "deny"\ntool = "write_to_file"\n'
HOOK = '[[hooks.PreToolUse]]\nmatcher = "Write|Bash"\nhooks = [{ command = "exit 2" }]\n'


@pytest.mark.parametrize(
    ("act", "said", "files", "counts"),
    [
        (WRITE, True, {}, (0, 0)),
        (WRITE, False, {}, (1, 0)),
        (WRITE, "Not that file.", {}, (1, 0)),
        (WRITE, OptionKind.REJECT_ONCE, {}, (1, 0)),
        (WRITE, None, {}, (1, 1)),
        (WRITE, True, {"config.toml": HOOK}, (1, 0)),
        (WRITE, True, {"policy.toml": RULE}, (1, 0)),
        (RUN, True, {}, (0, 0)),
        (RUN, False, {}, (1, 0)),
        (RUN, None, {}, (1, 1)),
        (RUN, True, {"config.toml": HOOK}, (1, 0)),
    ],
)
async def test_a_task_is_ok_where_no_call_of_it_got_a_no(
    folder: Path, home: Path, act: MakeCall, said: Any, files: dict[str, str], counts: tuple[int, int]
) -> None:
    for name, content in files.items():
        home.mkdir(exist_ok=True)
        (home / name).write_text(content)
    approve = None if said is None else lambda _: said
    async with Treadle(folder, model=scripted_model(act, DONE), approve=approve) as t:
        result = await t.run("Do it.")
    assert (result.outcome.refused, result.outcome.denied) == counts
    assert (result.ok, result.outcome.stop, result.error) == (counts == (0, 0), TurnStop.END_TURN, "")


@pytest.mark.parametrize(
    ("answers", "files", "counts"),
    [
        ([True, True], {}, (0, 0)),
        ([False], {}, (1, 0)),
        ([True, False], {}, (1, 0)),
        ([True], {"policy.toml": RULE}, (1, 0)),
        (None, {}, (1, 1)),
    ],
)
async def test_a_no_to_a_call_of_a_subagent_or_to_what_it_brings_is_one_to_the_task(
    folder: Path, home: Path, answers: list[bool] | None, files: dict[str, str], counts: tuple[int, int]
) -> None:
    for name, content in files.items():
        home.mkdir(exist_ok=True)
        (home / name).write_text(content)
    begins = call("use_subagents", tasks=[{"prompt": "Write it.", "agent": "worker"}])
    of_child = Texts(contains=("You are a subagent",))
    turns = (
        Turn(when=Expectation(system=of_child, assistant_messages=1), items=(SayText(text="Written."),)),
        Turn(when=Expectation(system=of_child), items=(WRITE,)),
        Turn(when=Expectation(assistant_messages=0), items=(begins,)),
        Turn(when=Expectation(assistant_messages=1), items=(DONE,)),
    )
    approve = None if answers is None else lambda _: answers.pop(0)
    async with Treadle(folder, model=ScriptedProvider(Script(turns=turns)), approve=approve) as t:
        result = await t.run("Do it.")
    assert (result.outcome.refused, result.outcome.denied) == counts
    assert (result.ok, result.outcome.stop, result.error) == (counts == (0, 0), TurnStop.END_TURN, "")


@pytest.mark.parametrize("is_async", [True, False])
@pytest.mark.parametrize("said", [True, False, "Not that file."])
async def test_an_approval_function_decides(folder: Path, said: bool | str, is_async: bool) -> None:
    asked: list[Question] = []

    def approve(question: Question) -> bool | str:
        asked.append(question)
        return said

    async def approve_later(question: Question) -> bool | str:
        await asyncio.sleep(0)
        return approve(question)

    model = writes()
    async with Treadle(folder, model=model, approve=approve_later if is_async else approve) as t:
        await t.run("Write a.txt.")
    assert [one.text for one in asked] == ["Create a.txt (+1 -0)"]
    assert (folder / "a.txt").exists() is (said is True)
    result = str(model.requests[1].messages[-1])
    assert ("Not that file." in result) is isinstance(said, str)


@pytest.mark.parametrize("raises", [OSError("no terminal"), ValueError("no")])
async def test_an_approval_function_that_fails_approves_nothing_and_its_error_comes_out(
    folder: Path, raises: Exception
) -> None:
    def approve(question: Question) -> bool:
        raise raises

    model = scripted_model(["Now.", WRITE], DONE)
    async with Treadle(folder, model=model, approve=approve) as t:
        with pytest.raises(type(raises), match=str(raises)):
            await t.run("Write a.txt.")
        assert t.status.turn_active is False
    assert list(folder.iterdir()) == []


async def test_an_option_that_is_not_offered_ends_the_task_instead_of_leaving_it_open(folder: Path) -> None:
    def approve(question: Question) -> OptionKind:
        return OptionKind.RUN_FOR_REAL

    async with Treadle(folder, model=writes(), approve=approve) as t, asyncio.timeout(PATIENCE):
        with pytest.raises(Exception, match="is not possible in AWAITING_USER_CONFIRMATION"):
            await t.run("Write a.txt.")
    assert list(folder.iterdir()) == []


def _question(kind: QuestionKind, options: tuple[str, ...] = ()) -> Question:
    return Question(id="q", kind=kind, text="?", options=options)


FORM = Question(
    id="q",
    kind=QuestionKind.ELICITATION,
    text="Sign in",
    form={"properties": {"name": {"type": "string"}, "age": {"type": "integer"}}, "required": ["name"]},
)


ONE_FIELD = Question(
    id="q", kind=QuestionKind.ELICITATION, text="Who?", form={"properties": {"name": {"type": "string"}}}
)


def _filled(**values: object) -> Answer:
    return Answer(question_id="q", option=OptionKind.ALLOW_ONCE, arguments=values)


@pytest.mark.parametrize(
    ("question", "said", "answer"),
    [
        (_question(QuestionKind.FOLLOWUP), "blue", Answer(question_id="q", option=OptionKind.ANSWER, text="blue")),
        (_question(QuestionKind.FOLLOWUP), False, Answer(question_id="q", option=OptionKind.ANSWER, text="No.")),
        (_question(QuestionKind.GUIDANCE), True, Answer(question_id="q", option=OptionKind.ANSWER, text="Go on.")),
        (_question(QuestionKind.GUIDANCE), False, Interrupt()),
        (
            _question(QuestionKind.SUMMARY, ("use it", "do without")),
            False,
            Answer(question_id="q", option=OptionKind.ANSWER, text="do without"),
        ),
        (FORM, "name=Ann age=7", _filled(name="Ann", age=7)),
        (FORM, {"name": "Ann"}, _filled(name="Ann")),
        (FORM, False, Answer(question_id="q", option=OptionKind.REJECT_ONCE)),
        (_question(QuestionKind.ELICITATION), True, _filled()),
        (ONE_FIELD, OptionKind.REJECT_ONCE, Answer(question_id="q", option=OptionKind.REJECT_ONCE)),
        (ONE_FIELD, OptionKind.ALLOW_ONCE, _filled()),
        (_question(QuestionKind.BUDGET), True, Answer(question_id="q", option=OptionKind.ALLOW_ONCE)),
        (
            _question(QuestionKind.PERMISSION),
            "yes",
            Answer(question_id="q", option=OptionKind.REJECT_ONCE, text="yes"),
        ),
        (
            _question(QuestionKind.PERMISSION),
            Answer(question_id="other", option=OptionKind.ALLOW_ONCE, arguments={"path": "b"}),
            Answer(question_id="q", option=OptionKind.ALLOW_ONCE, arguments={"path": "b"}),
        ),
    ],
)
def test_what_is_said_becomes_an_answer_that_fits_the_question(
    question: Question, said: object, answer: object
) -> None:
    assert answer_of(question, said) == answer


@pytest.mark.parametrize("said", [True, OptionKind.ALLOW_ONCE, {}, "", "age=7", {"age": 7}])
def test_a_form_that_is_not_filled_in_is_an_error(said: object) -> None:
    with pytest.raises(ValueError, match=r"Sign in Missing: name\."):
        answer_of(FORM, said)


@pytest.mark.parametrize("said", [None, 1, "", [], object()])
def test_nothing_but_a_yes_is_taken_for_one(said: object) -> None:
    question = _question(QuestionKind.PERMISSION)
    if said == "":
        assert answer_of(question, said) == Answer(question_id="q", option=OptionKind.REJECT_ONCE)
        return
    with pytest.raises(TypeError, match="approve returned"):
        answer_of(question, said)


async def test_a_function_is_a_tool_and_its_result_reaches_the_model(folder: Path) -> None:
    def price_of(article: str) -> float:
        """Look up a price."""
        return {"A1": 9.5}[article]

    model = scripted_model(call("price_of", article="A1"), call("price_of", article="B2"), DONE)
    async with Treadle(folder, model=model, tools=[price_of], approve=lambda _: True) as t:
        assert (await t.run("What is it?")).ok
    assert "9.5" in str(model.requests[1].messages[-1])
    assert "price_of failed: KeyError" in str(model.requests[2].messages[-1])


async def test_each_task_gets_the_answer_of_its_own_turn(folder: Path, home: Path) -> None:
    # Each answer is to what was asked, whatever the order.
    replies = [Turn(items=(Wait(seconds=0.01), SayText(text=f"answer {number}"))) for number in range(5)]
    async with Treadle(folder, model=scripted_model(*replies)) as t:
        results = await asyncio.gather(*(t.run(f"question {number}")._finish() for number in range(5)))
    assert [result.text for result in results] == [f"answer {number}" for number in range(5)]
    prompts = [event for event in log_of(home) if isinstance(event.data, Prompt)]
    assert [event.source.name for event in prompts] == [f"library:main {number}" for number in range(1, 6)]


async def test_a_task_that_is_awaited_twice_and_followed_is_sent_once(folder: Path, home: Path) -> None:
    async def follow(run: TaskRun) -> Notification:
        return [notification async for notification in run][-1]

    async with Treadle(folder, model=scripted_model([Wait(seconds=0.05), "one"], "two")) as t:
        run = t.run("Say something.")
        ends = tuple(await asyncio.gather(run._finish(), follow(run), run._finish()))
    assert ends == (run.result, TurnEnded(outcome=run.result.outcome), run.result)
    assert len([event for event in log_of(home) if isinstance(event.data, Prompt)]) == 1


async def test_words_steer_a_task_and_get_the_end_of_its_turn(folder: Path) -> None:
    model = scripted_model([Wait(seconds=0.2), call("list_files", path=".")], DONE)
    async with Treadle(folder, model=model) as t:
        run = t.run("Look around.")
        steering = None
        async for notification in run:
            if steering is None and isinstance(notification, CallChanged):
                steering = asyncio.ensure_future(t.steer("Be quick.")._finish())
                await asyncio.sleep(0)
        assert steering is not None
        assert await steering == run.result
    assert "Be quick." in str(model.requests[1].messages[-1])


async def test_a_task_that_is_interrupted_says_so(folder: Path) -> None:
    async with Treadle(folder, model=scripted_model([Wait(seconds=60), "late"])) as t:
        run = t.run("Wait.")
        async for notification in run:
            if type(notification).__name__ == "PromptDelivered":
                await t.interrupt()
        assert (run.result.outcome.stop, run.result.error, run.result.ok) == (
            TurnStop.CANCELLED,
            "It ended by cancelled.",
            False,
        )


@pytest.mark.parametrize("is_followed", [True, False])
async def test_a_task_whose_waiting_is_cancelled_is_stopped_and_a_queued_one_is_not_begun(
    folder: Path, is_followed: bool
) -> None:
    model = scripted_model(Turn(items=(Wait(seconds=60), SayText(text="late"))))

    def works(t: Treadle) -> bool:
        return t.status.turn_active

    async def work(t: Treadle, task: str) -> None:
        if is_followed:
            async for _ in t.run(task):
                pass
        else:
            await t.run(task)

    async with asyncio.timeout(PATIENCE), Treadle(folder, model=model) as t:
        first = asyncio.create_task(work(t, "Wait."))
        while not works(t):
            await asyncio.sleep(0.01)
        second = asyncio.create_task(work(t, "And then?"))
        while not t.status.queue:
            await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        assert (works(t), t.status.queue) == (True, ())
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        while works(t):
            await asyncio.sleep(0.01)
        assert (first.cancelled(), second.cancelled()) == (True, True)
    assert [request for request in model.requests if "And then?" in str(request)] == []


async def test_a_task_that_is_left_early_goes_on_and_its_result_can_be_awaited(folder: Path) -> None:
    async with Treadle(folder, model=scripted_model([call("list_files", path="."), Wait(seconds=0.05)], "done")) as t:
        async with t.run("Look.") as task:
            async for notification in task:
                if isinstance(notification, CallChanged):
                    break
        assert (await task).text == "done"
        assert [one async for one in task] == []  # what happened meanwhile was not kept


async def test_a_task_that_is_entered_and_cancelled_outside_of_the_loop_is_stopped(folder: Path) -> None:
    began = asyncio.Event()

    async def work(t: Treadle) -> None:
        async with t.run("Wait."):
            began.set()
            await asyncio.Event().wait()

    async with (
        asyncio.timeout(PATIENCE),
        Treadle(folder, model=scripted_model(Turn(items=(Wait(seconds=60), SayText(text="late"))))) as t,
    ):
        working = asyncio.create_task(work(t))
        await began.wait()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        while t.status.turn_active:
            await asyncio.sleep(0.01)
        assert working.cancelled()


async def until_shared(home: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while not list((home / "live").glob("*.sock")):
            await asyncio.sleep(0.02)


async def attached(folder: Path) -> RemoteSession:
    return await attach_session("", folder, load_settings({}), kind="library", name="program")


async def test_each_follower_of_an_attached_session_hears_all_and_leaving_takes_nothing_from_another(
    folder: Path, home: Path
) -> None:
    async with Treadle(folder, model=scripted_model("one", "two")) as owner:
        await until_shared(home)
        before = asyncio.all_tasks()
        session = await attached(folder)
        async with session, session.follow() as first:
            async with session.follow() as second:
                await owner.run("one")
                async for notification in second:
                    if isinstance(notification, TurnEnded):
                        break
            await owner.run("two")
            ends = 0
            async for notification in first:
                ends += isinstance(notification, TurnEnded)
                if ends == 2:
                    break
            assert second.taken() == ()
        await asyncio.sleep(0.05)  # the owner's side learns that the connection is gone
        assert {task for task in asyncio.all_tasks() - before if "serve" not in repr(task)} == set()


async def test_a_follower_of_an_attached_session_that_is_closed_comes_to_its_end(folder: Path, home: Path) -> None:
    async with AsyncExitStack() as stack:
        owner = await stack.enter_async_context(Treadle(folder, model=scripted_model("one")))
        await until_shared(home)
        session = await attached(folder)
        async with session, session.follow() as feed, asyncio.timeout(PATIENCE):
            await owner.run("one")
            await stack.aclose()
            heard = [one async for one in feed]
            assert any(isinstance(one, TurnEnded) for one in heard)
            assert session.closed
            async with session.follow() as late:
                assert [one async for one in late] == []


async def test_leaving_in_the_middle_of_a_task_leaves_it_resumable(folder: Path) -> None:
    async with Treadle(folder, model=scripted_model([Wait(seconds=60), "late"])) as t:
        run = t.run("Wait.")
        async for _ in run:
            break
    with pytest.raises(SessionError, match="closed before the task was done"):
        await run
    async with Treadle(model=scripted_model("first", "second"), resume=t.session_id) as again:
        assert again.session_id == t.session_id
        result = await again.run("And now?")
    assert result.text in ("first", "second")


async def test_a_session_that_is_left_before_its_question_is_answered_does_not_hang(folder: Path) -> None:
    async def approve(question: Question) -> bool:
        await asyncio.sleep(3600)
        return True

    async with asyncio.timeout(PATIENCE):
        async with Treadle(folder, model=writes(), approve=approve) as t:
            async for notification in t.run("Write a.txt."):
                if isinstance(notification, QuestionAsked):
                    break
    assert list(folder.iterdir()) == []


class Parrot:
    """A model of the program's own."""

    def __init__(self) -> None:
        self.closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        yield StreamText(text=f"Squawk {request.model}")
        yield StreamStop(reason=ReplyStop.END_TURN, usage=Usage())

    async def close(self) -> None:
        self.closed = True


async def test_a_model_of_the_program_answers_and_stays_open(folder: Path) -> None:
    parrot = Parrot()
    async with Treadle(folder, model=parrot) as t:
        assert t.status.model == "own/model"
        result = await t.run("Say something.")
    assert (result.text, result.cost, parrot.closed) == ("Squawk model", None, False)


class Shelf:
    """Files in memory over those on the disk."""

    def __init__(self) -> None:
        self.saved: dict[str, bytes] = {}
        self._disk = DiskFiles()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def save(self, target: str, data: bytes, *, expected: str, name: str, mode: int | None) -> None:
        self.saved[target] = data


async def test_files_and_clock_of_the_program_stand_in_for_disk_and_time(folder: Path, home: Path) -> None:
    shelf: Any = Shelf()
    async with Treadle(folder, model=writes(), mode="edits", files=shelf, clock=lambda: 1_000) as t:
        await t.run("Write a.txt.")
    assert shelf.saved == {str(folder / "a.txt"): b"hello\n"}
    assert list(folder.iterdir()) == []
    log = log_of(home)
    assert {event.at for event in log} == {1_000}
    assert isinstance(log[0].data, SessionStarted)
    assert t.session_id.startswith("19700101-000001-")


async def test_a_program_joins_an_open_session_and_each_side_gets_its_own_answer(folder: Path, home: Path) -> None:
    model = scripted_model("to the owner", "to the guest", "to the owner again")
    async with Treadle(folder, model=model) as owner:
        assert (await owner.run("one")).text == "to the owner"
        async with asyncio.timeout(PATIENCE):
            while not list((home / "live").glob("*.sock")):
                await asyncio.sleep(0.02)
        async with Treadle(folder, attach=True) as guest:
            assert guest.session_id == owner.session_id
            heard = [one async for one in guest.run("two")]
            assert isinstance(heard[-1], TurnEnded)
            assert heard[-1].outcome.text == "to the guest"
        assert (await owner.run("three")).text == "to the owner again"
    prompts = [(event.source.name, event.data.content) for event in log_of(home) if isinstance(event.data, Prompt)]
    assert prompts == [
        ("library:main 1", (Text(text="one"),)),
        ("library:program 2", (Text(text="two"),)),
        ("library:main 1", (Text(text="three"),)),
    ]


async def test_a_session_can_be_replayed(folder: Path) -> None:
    async with Treadle(folder, model=writes(), mode="edits") as t:
        await t.run("Write a.txt.")
    report = Treadle.replay(t.session_id)
    assert (report.same, report.session) == (True, t.session_id)


@pytest.mark.parametrize("protocol", ["xml", "native"])
async def test_readings_come_out_the_same_and_an_older_log_without_them_is_replayed_as_it_is(
    folder: Path, protocol: str
) -> None:
    (folder / "a.txt").write_text("hello\n")
    look = call("read_file", file_path="a.txt", start_line=0)
    async with Treadle(folder, model=scripted_model(look, DONE), tool_protocol=protocol) as t:
        await t.run("Read a.txt.")
    _, rows, _ = session_tape(t.session_id)
    named = b',"readings":["line_bounds","parameter_name"]'
    assert [named in one.data for one in rows].count(True) == 1
    assert Treadle.replay(t.session_id).same
    older = [msgspec.structs.replace(one, data=one.data.replace(named, b"")) for one in rows]
    assert replay_rows(t.session_id, older).difference is None
    if protocol == "xml":  # the log has the call as it was written
        forged = [msgspec.structs.replace(one, data=one.data.replace(b"line_bounds", b"word_case")) for one in rows]
        difference = replay_rows(t.session_id, forged).difference
        assert difference is not None
        assert difference.path == "data.readings[0]"


async def test_settings_are_keywords_and_a_wrong_one_is_named(folder: Path) -> None:
    looking = MakeCall(name="list_files", arguments={"path": "."})
    async with Treadle(folder, model=scripted_model(*[looking] * 4), max_steps=2) as t:
        assert (await t.run("Look.")).outcome.stop is TurnStop.MAX_TURN_REQUESTS
    with pytest.raises(ConfigError, match="the command line"):
        await Treadle(folder, max_steps=-1).__aenter__()


@pytest.mark.parametrize(
    ("wrong", "code"),
    [({"folder": "/nowhere"}, "workspace-missing"), ({"resume": "zzz"}, "session-unknown")],
)
async def test_what_cannot_be_opened_is_an_error_with_a_code(folder: Path, wrong: dict[str, Any], code: str) -> None:
    with pytest.raises((ConfigError, SessionError)) as raised:
        await Treadle(**{"folder": folder, "model": scripted_model(), **wrong}).__aenter__()
    assert raised.value.code == code


async def test_a_session_is_not_used_before_it_is_entered_and_btw_is_refused(folder: Path) -> None:
    t = Treadle(folder, model=scripted_model())
    with pytest.raises(SessionError, match="not open"):
        await t.run("x")
    async with t:
        with pytest.raises(SessionError, match="no result yet"):
            _ = t.run("x").result
        with pytest.raises(ConfigError, match="no turn to wait for"):
            await t.run("/btw what?")


def test_what_cannot_be_a_model_or_a_tool_is_refused(folder: Path) -> None:
    model: Any = 5
    with pytest.raises(ConfigError, match="cannot answer the calls of a model"):
        Treadle(folder, model=model)
    with pytest.raises(ConfigError, match="cannot become a tool"):
        Treadle(folder, tools=[lambda: 1])
