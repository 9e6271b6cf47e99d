"""Tests of instructions: recorded once, free from then on, and stale by name when what the model reads changes."""

import asyncio
import json
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.running import PATIENCE
from treadle.app.compose import list_sessions
from treadle.app.instruction_tests.instruction_file import CalledTool, Expected, read_instruction_tests
from treadle.app.instruction_tests.log_expectations import FinishedRun, MadeCall, failed_expectations, finished_run
from treadle.app.instruction_tests.reply_tape import (
    InstructionTape,
    InstructionTapeHead,
    PlayedModel,
    RecordingModel,
    read_instruction_tape,
    write_instruction_tape,
)
from treadle.app.instruction_tests.running_tests import (
    CheckedInstruction,
    lines_of_tested,
    run_check,
    run_instruction_tests,
)
from treadle.app.security.trusting import session_trust
from treadle.policy.secrets import known_secrets
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import ENGINE, Event, ReplyFinished
from treadle.protocol.messages import Message, Role, Text, WireData
from treadle.protocol.models import (
    ErrorKind,
    ModelError,
    ModelRequest,
    ModelSpec,
    ReplyStop,
    StreamCallArguments,
    StreamCallDone,
    StreamCallStart,
    StreamEvent,
    StreamFailure,
    StreamStop,
    StreamText,
    StreamThinking,
    StreamThinkingDone,
    StreamUsage,
)
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.tools import Outcome
from treadle.protocol.usage import Usage

READ = {"type": "call", "name": "read_file", "arguments": {"path": "src/a.py"}}
WRITE = {"type": "call", "name": "write_to_file", "arguments": {"path": "src/b.py", "content": "b = 2\n"}}
DONE = {"type": "call", "name": "attempt_completion", "arguments": {"result": "Added it."}}


@dataclass
class Place:
    """A file of tests with its fixture, and a model that plays a script."""

    root: Path

    @property
    def file(self) -> Path:
        return self.root / "t.toml"

    def says(self, *replies: Mapping[str, Any]) -> None:
        turns = [{"items": [one]} for one in replies]
        (self.root / "model.json").write_text(json.dumps({"turns": turns}))

    def write(self, *tests: str, prompt: str = "Add b.", model: str = "") -> None:
        model = model or f"scripted/{self.root}/model.json"
        body = "".join(f"[[test]]\nname = 'test {n}'\nprompt = '{prompt}'\n{one}\n" for n, one in enumerate(tests))
        self.file.write_text(f"model = '{model}'\nfixture = 'fixture'\n{body}")

    async def run(self, *, live: bool = False, only: str = "") -> list[CheckedInstruction]:
        trust = session_trust(self.root, once=True)
        return [one async for one in run_instruction_tests(self.file, trust, live=live, only=only)]

    async def changed(self) -> tuple[str, ...]:
        (one,) = await self.run()
        assert not one.passed
        return one.changed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    root = tmp_path / "project"
    (root / "fixture" / "src").mkdir(parents=True)
    (root / "fixture" / "src" / "a.py").write_text("a = 1\n")
    (root / "fixture" / "AGENTS.md").write_text("Use tabs.\n")
    made = Place(root)
    made.says(READ, WRITE, DONE)
    return made


HOLDS = """[test.expect]
called = ["read_file", {tool = "write_to_file", arguments = {path = "src/*"}, outcome = "ok"}]
never_called = ["web_*"]
changed = ["src/b.py"]
untouched = ["src/a.py", "docs/**"]
said = ["Added it."]
said_like = ["(?i)added \\\\w+"]
never_said = ["Sorry"]
steps_under = 4
cost_under = 0.5
check = "test $(cat src/b.py | wc -l) = 1"
"""


async def test_the_first_run_calls_the_model_and_later_ones_play_its_replies_for_nothing(place: Place) -> None:
    place.write(HOLDS)
    (first,) = await place.run()
    assert (first.passed, first.recorded, first.steps, first.failures) == (True, True, 3, ())
    assert [row.id for row in list_sessions(None)] == [first.session]
    (place.root / "model.json").unlink()
    again = [(await place.run())[0] for _ in range(2)]
    assert again[0] == again[1] == CheckedInstruction(name="test 0", passed=True, recorded=False, steps=3, cost=0.0)
    assert [*lines_of_tested(again[0])] == ["PASS test 0 (3 steps, replayed for nothing, recorded for $0.0000)"]
    assert [row.id for row in list_sessions(None)] == [first.session], "a replay is none of the user's sessions"
    assert not (place.root / "fixture" / "src" / "b.py").exists()
    tape = (place.root / "t.tapes" / "test-0.jsonl").read_text()
    assert "treadle-test-folder" not in tape
    assert "/tmp" not in tape.partition("\n")[2]


async def test_a_tape_is_about_any_folder(place: Place) -> None:
    copied = place.root.parent / "moved"
    look = {"type": "call", "name": "execute_command", "arguments": {"command": "echo $PWD > where"}}
    place.says(look, DONE)
    place.write("[test.expect]\nchanged = ['where']")
    assert [one.passed for one in await place.run()] == [True]
    shutil.copytree(place.root, copied)
    shutil.rmtree(place.root)
    (one,) = await Place(copied).run()
    assert (one.passed, one.recorded) == (True, False)


async def test_what_changed_since_a_tape_was_recorded_is_named_and_live_records_again(place: Place) -> None:
    place.write("mode = 'edits'")
    await place.run()
    fixture = place.root / "fixture"
    (fixture / "src" / "a.py").write_text("a = 3\n")
    (fixture / ".treadle").mkdir()
    (fixture / ".treadle" / "config.toml").write_text("[hooks]\n")
    (one,) = await place.run()
    assert one.passed, "neither the files of the project nor its settings and hooks are what the model is told"
    (fixture / "AGENTS.md").write_text("Use blanks. See @style.md\n")
    assert await place.changed() == ("rule file AGENTS.md changed",)
    (fixture / "src" / "AGENTS.md").write_text("Be strict.\n")
    skill = fixture / ".claude" / "skills" / "deploy" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: deploy\ndescription: deploys\n---\nDeploy.\n")
    assert await place.changed() == (
        "rule file AGENTS.md changed",
        "skill .claude/skills/deploy/SKILL.md is new",
        "rule file src/AGENTS.md is new",
    )
    skill.unlink()
    (fixture / "src" / "AGENTS.md").unlink()
    (fixture / "AGENTS.md").unlink()
    (fixture / "CLAUDE.md").write_text("Be short.\n")
    assert await place.changed() == ("rule file AGENTS.md is gone", "rule file CLAUDE.md is new")
    (fixture / "CLAUDE.md").rename(fixture / "AGENTS.md")
    (fixture / "AGENTS.md").write_text("Use tabs.\n")
    place.write("mode = 'ask'", prompt="Add c.")
    assert await place.changed() == ("prompt changed", "mode was edits and is ask")
    place.write("", model="scripted/other.json")
    (change,) = await place.changed()
    assert change.startswith("model was scripted/")
    assert change.endswith("/model.json and is scripted/other.json")
    place.write("", prompt="Add c.")
    (one,) = await place.run(live=True)
    assert (one.passed, one.recorded) == (True, True)
    assert [one.passed for one in await place.run()] == [True]


async def test_a_tool_that_is_declared_in_another_way_is_named(place: Place) -> None:
    place.write("")
    await place.run()
    tape = place.root / "t.tapes" / "test-0.jsonl"
    first, rest = tape.read_text().split("\n", 1)
    head = json.loads(first)
    head["depends_on"] |= {"tool read_file": "0", "tool own": "1", "system prompt, part work": "2"}
    del head["depends_on"]["tool write_to_file"]
    tape.write_text(f"{json.dumps(head)}\n{rest}")
    assert await place.changed() == (
        "system prompt, part work changed",
        "tool read_file changed",
        "tool own is gone",
        "tool write_to_file is new",
    )
    tape.write_text("{}")
    (one,) = await place.run()
    assert one.failures[0].what == f"{tape} cannot be read as a tape."


HOOK = '{"hooks": {"PreToolUse": [{"matcher": "Write", "hooks": [{"type": "command", "command": "exit 2"}]}]}}'
OWN_HOOK = "[[hooks.PreToolUse]]\nmatcher = 'Write'\nhooks = [{type = 'command', command = 'exit 2'}]\n"


@pytest.mark.parametrize(("folder", "hook"), [(".claude/settings.json", HOOK), (".treadle/config.toml", OWN_HOOK)])
async def test_a_hook_is_tested_for_nothing_while_it_changes(place: Place, folder: str, hook: str) -> None:
    place.write("hooks_from = ['claude']\n[test.expect]\ncalled = [{tool = 'write_to_file', outcome = 'ok'}]")
    assert [one.passed for one in await place.run()] == [True]
    settings = place.root / "fixture" / folder
    settings.parent.mkdir()
    settings.write_text(hook)
    (one,) = await place.run()
    assert [failure.what for failure in one.failures] == ["write_to_file with outcome ok was not called."]
    assert "write_to_file(content=b = 2, path=src/b.py): denied" in one.failures[0].why


async def test_a_session_that_asks_for_more_than_is_on_the_tape_fails(place: Place) -> None:
    place.write("")
    await place.run()
    tape = place.root / "t.tapes" / "test-0.jsonl"
    lines = tape.read_text().splitlines()
    tape.write_text("\n".join([*lines[:-1], ""]))
    (one,) = await place.run()
    assert one.failures[0].what == "The session asked the model for more replies than the tape has."


async def test_a_model_that_fails_leaves_no_tape(place: Place) -> None:
    place.says(READ)
    place.write("")
    (one,) = await place.run()
    assert (one.passed, one.failures[0].what) == (False, "No tape was recorded.")
    assert not (place.root / "t.tapes").exists()


async def test_one_test_of_several_is_run_by_its_name(place: Place) -> None:
    place.write("", "fixture = 'src'")
    with pytest.raises(ConfigError):
        await place.run()
    assert [one.name for one in await place.run(only="test 0")] == ["test 0"]
    with pytest.raises(ConfigError):
        await place.run(only="test 7")


async def test_nothing_of_a_file_runs_in_a_folder_that_is_not_trusted(place: Place) -> None:
    place.write("[test.expect]\ncheck = 'touch ../../ran'")
    with pytest.raises(ConfigError) as refused:
        async for _ in run_instruction_tests(place.file, session_trust(place.root)):
            pass
    assert refused.value.code == "test-trust"


WIRE = WireData(api="anthropic", data={"id": ["é", 1]})
REPLY: tuple[StreamEvent, ...] = (
    StreamThinking(text="Look "),
    StreamThinking(text="first."),
    StreamThinkingDone(signature="signed", wire=WIRE),
    StreamUsage(),
    StreamText(text="I read /a/wo"),
    StreamText(text="rk/x."),
    StreamCallStart(index=0, name="read_file", wire_id="1"),
    StreamCallArguments(index=0, text='{"path":"/a/wo'),
    StreamCallArguments(index=0, text='rk/x"}'),
    StreamCallDone(index=0, wire=WIRE),
    StreamStop(reason=ReplyStop.TOOL_USE, usage=Usage(input_tokens=3)),
)
CUT: tuple[StreamEvent, ...] = (
    StreamText(text="Lo"),
    StreamFailure(error=ModelError(kind=ErrorKind.NETWORK, message="gone")),
)


class _Says:
    """A model that gives these replies."""

    def __init__(self, *replies: Sequence[StreamEvent]) -> None:
        self._replies = list(replies)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        for event in self._replies.pop(0):
            yield event

    async def close(self) -> None: ...


async def test_a_whole_reply_is_kept_piece_by_piece_joined_and_played_about_another_folder(tmp_path: Path) -> None:
    request = ModelRequest(id="1", model="a/b", system="", messages=())
    model = RecordingModel(_Says(CUT, REPLY), Path("/a/work"), known_secrets({}))
    assert [[event async for event in model.stream(request)] for _ in range(2)] == [[*CUT], [*REPLY]]
    head = InstructionTapeHead(test="t", spec=ModelSpec(provider="a", name="b"), depends_on={})
    tape = InstructionTape(head=head, replies=tuple(model.replies))
    write_instruction_tape(tmp_path / "tape", tape)
    assert read_instruction_tape(tmp_path / "tape") == tape
    played = PlayedModel(tape, Path("/other"))
    assert [event async for event in played.stream(request)] == [
        StreamThinking(text="Look first."),
        StreamThinkingDone(signature="signed", wire=WIRE),
        StreamText(text="I read /other/x."),
        StreamCallStart(index=0, name="read_file", wire_id="1"),
        StreamCallArguments(index=0, text='{"path":"/other/x"}'),
        StreamCallDone(index=0, wire=WIRE),
        REPLY[-1],
    ]
    assert [type(event) async for event in played.stream(request)] == [StreamFailure]


CALLS = (
    MadeCall(tool="read_file", arguments={"path": "src/a.py"}, outcome=Outcome.OK),
    MadeCall(tool="execute_command", arguments={"command": "git push origin"}, outcome=Outcome.DENIED),
)
RUN = FinishedRun(
    calls=CALLS,
    said="It is done.",
    changed=("src/a.py",),
    outcome=TurnOutcome(stop=TurnStop.END_TURN, steps=2, cost=0.25),
)
NO_LINE = CalledTool(tool="read_file", arguments={"line": "1"})
NO_DENIAL = CalledTool(tool="read_file", outcome=Outcome.DENIED)
PUSH = CalledTool(tool="execute_command", arguments={"command": "git push*"})


@pytest.mark.parametrize(
    ("expected", "what"),
    [
        (Expected(), ""),
        (Expected(called=("read_*", PUSH)), ""),
        (Expected(called=("web_fetch",)), "web_fetch was not called."),
        (Expected(called=(NO_LINE,)), "read_file(line=1) was not called."),
        (Expected(called=(NO_DENIAL,)), "read_file with outcome denied was not called."),
        (Expected(never_called=("web_fetch", CalledTool(tool="execute_command", arguments={"command": "rm*"}))), ""),
        (Expected(never_called=(PUSH,)), "execute_command(command=git push*) was called."),
        (Expected(changed=("src/*",), untouched=("*",)), ""),
        (Expected(changed=("*",)), "* was not changed."),
        (Expected(untouched=("**",)), "** was changed."),
        (Expected(said=("done",), said_like=(r"^It .*\.$",), never_said=("Done",)), ""),
        (Expected(said=("Done",)), "The model did not write 'Done'."),
        (Expected(said_like=("^done",)), "The model wrote nothing like '^done'."),
        (Expected(never_said=("done",)), "The model wrote 'done'."),
        (Expected(cost_under=0.26, steps_under=3), ""),
        (Expected(cost_under=0.25), "The cost is $0.2500, and must be under $0.25."),
        (Expected(steps_under=2), "The run has 2 steps, and must have under 2."),
        (Expected(outcome="max_turn_requests"), "The outcome is completed, not max_turn_requests."),
    ],
)  # fmt: skip
def test_each_thing_that_does_not_hold_is_said(expected: Expected, what: str) -> None:
    assert [one.what for one in failed_expectations(expected, RUN)] == ([what] if what else [])


def test_a_cost_that_is_not_known_is_under_nothing() -> None:
    run = FinishedRun(calls=(), said="", changed=(), outcome=TurnOutcome(stop=TurnStop.END_TURN, cost=None))
    (failed,) = failed_expectations(Expected(cost_under=9), run)
    assert failed.what == "The cost is not known, and must be under $9."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Object missing required field `test`."),
        ("test = []", "It has no [[test]]."),
        ("x = ", "Invalid value (at end of document)."),
        ("[[test]]\nname='a'\nprompt='b'\nbad=1", "Object contains unknown field `bad` - at `$.test[0]`."),
        ("[[test]]\nname='a'\nprompt='b'\nmode='fast'", "Invalid enum value 'fast' - at `$.test[0].mode`."),
        ("[[test]]\nname='a b'\nprompt='b'\n[[test]]\nname='A-B'\nprompt='b'", "Two tests have the same name."),
        ("[[test]]\nname='a'\nprompt='b'\nexpect={said_like=['(']}", "'a': '(' is not a regular expression: "),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "t.toml").write_text(text)
    with pytest.raises(ConfigError) as wrong:
        read_instruction_tests(tmp_path / "t.toml")
    assert wrong.value.why.startswith(why)


async def test_an_interrupt_ends_a_check_that_runs(tmp_path: Path) -> None:
    work = asyncio.create_task(run_check("touch begun; sleep 60", tmp_path))
    while not (tmp_path / "begun").exists():
        await asyncio.sleep(0.01)
    work.cancel()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await work


@pytest.mark.parametrize(
    ("replies", "answer", "said"),
    [
        (["done"], "done", "done"),
        (["I look.", "", "done"], "done", "I look.\ndone"),
        (["I look.", "one hal", "f"], "one half", "I look.\none half"),
        (["I look."], "done", "I look.\ndone"),
        (["I look."], "", "I look."),
    ],
    ids=["once", "after a step", "cut off", "presented by a call", "none"],
)
def test_what_the_model_wrote_is_said_once(replies: list[str], answer: str, said: str) -> None:
    events = [Event(seq=seq, at=seq, source=ENGINE, data=_reply(seq, text)) for seq, text in enumerate(replies, 1)]
    outcome = TurnOutcome(stop=TurnStop.END_TURN, text=answer)
    assert finished_run(events, outcome, (), "/w").said == said


def _reply(step: int, text: str) -> ReplyFinished:
    message = Message(role=Role.ASSISTANT, content=(Text(text=text),) if text else ())
    return ReplyFinished(step=step, attempt=1, message=message, stop=ReplyStop.END_TURN, usage=Usage())
