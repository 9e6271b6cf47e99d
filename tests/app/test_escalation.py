"""A command that the sandbox stopped runs once more with the right that it lacked, if a person says so."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.needed import needs
from treadle import Treadle
from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import Settings
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import CallChanged, CallStatus, QuestionAsked, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind, Question
from treadle.protocol.tools import CallResult, Outcome, Right
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.testing import call, scripted_model

pytestmark = needs("sandbox")
ME = Source(kind="test")


@pytest.fixture
def beside() -> Iterator[Path]:
    """A folder of the user's that is neither the workspace nor hidden whole."""
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="treadle-test-") as folder:
        yield Path(folder)


WRITES = "import pathlib, sys\npathlib.Path(sys.argv[1], 'made').write_text('x')\nprint('through')\n"


async def work(
    tmp_path: Path, beside: Path, option: OptionKind, *, present: bool = True
) -> tuple[list[Question], list[CallResult]]:
    """Run a script that writes outside, in auto mode; each question gets the same answer."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "writes.py").write_text(WRITES)
    run = MakeCall(name="execute_command", arguments={"command": f"python3 writes.py {beside}"})
    done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
    turns = (Turn(items=(run,)), Turn(items=(run,)), Turn(items=(done,)))
    asked: list[Question] = []
    results: list[CallResult] = []
    async with ScriptedServer(Script(turns=turns)) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url, mode=Mode.AUTO)
        opening = Opening(workspace=tmp_path / "ws", settings=settings, user_present=present)
        async with await open_session(opening) as live:
            feed = live.follow()
            await live.post(Prompt(id="p1", content=(Text(text="Try."),)), ME)
            async for notification in feed:
                match notification:
                    case QuestionAsked(question=question):
                        asked.append(question)
                        await live.post(Answer(question_id=question.id, option=option), ME)
                    case CallChanged(status=CallStatus.FINISHED, result=CallResult() as result):
                        results.append(result)
                    case TurnEnded():
                        break
                    case _:
                        pass
    return asked, results[:2]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


def lacked(asked: list[Question]) -> list[tuple[Right, str, tuple[str, ...]]]:
    return [(one.denial.right, one.denial.target, one.options) for one in asked if one.denial is not None]


async def test_a_yes_opens_the_one_folder_for_the_one_run(tmp_path: Path, beside: Path) -> None:
    asked, results = await work(tmp_path, beside, OptionKind.ALLOW_ONCE)
    options = (OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE)
    questions = [(Right.WRITE, str(beside), options), (Right.WRITE, str(beside / "made"), options)]
    assert lacked(asked) == questions, "each run asks: nothing is remembered"
    assert [result.outcome for result in results] == [Outcome.OK, Outcome.OK]
    assert (beside / "made").read_text() == "x"


async def test_a_no_leaves_it_at_the_failure(tmp_path: Path, beside: Path) -> None:
    asked, results = await work(tmp_path, beside, OptionKind.REJECT_ONCE)
    assert len(asked) == 2
    assert [result.outcome for result in results] == [Outcome.FAILED, Outcome.FAILED]
    assert f"The sandbox does not allow changing {beside}." in str(results[0].content)
    assert list(beside.iterdir()) == []


async def test_nobody_there_means_no_question_and_no_right(tmp_path: Path, beside: Path) -> None:
    asked, results = await work(tmp_path, beside, OptionKind.ALLOW_ONCE, present=False)
    assert asked == []
    assert [result.outcome for result in results] == [Outcome.FAILED, Outcome.FAILED]
    assert list(beside.iterdir()) == []


async def test_what_a_yes_lets_a_command_make_at_the_top_of_the_workspace_stays_there(tmp_path: Path) -> None:
    workspace = tmp_path / "ws"
    workspace.mkdir()
    line = "echo x > AGENTS.md; mkdir -p .github/workflows && echo x > .github/workflows/a.yml"
    model = scripted_model(call("execute_command", command=line), call("attempt_completion", result="Done."))
    yes = OptionKind.ALLOW_ONCE
    async with Treadle(workspace, model=model, mode="auto", approve=lambda _: yes, trust=True) as treadle:
        await treadle.run("Make them.")
    assert "quarantine" not in str(model.requests[1].messages[-1])
    assert [(workspace / name).read_text() for name in ("AGENTS.md", ".github/workflows/a.yml")] == ["x\n", "x\n"]
