"""Every tool, driven through the headless program by a model that sees its schema: what works and what is refused."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.e2e.process import Program
from tests.e2e.running import log_of, model
from tests.e2e.tool_cases import CASES, FILES, NO_YES, PAGES, SKILL, Case, Step, lay_out
from tests.needed import needs, require
from tests.next_step import says_what_to_do
from tests.tools.web_server import serving
from treadle.app.compose import Opening, open_session, tool_specs
from treadle.app.config.sections import Settings
from treadle.app.errors.exits import Exit
from treadle.context.system import describe_tool
from treadle.parsing import validate_arguments
from treadle.protocol.events import Answer, CallProposed, Prompt, Source
from treadle.protocol.messages import Image, Text
from treadle.protocol.notifications import CallChanged, QuestionAsked, TurnEnded
from treadle.protocol.permissions import OptionKind
from treadle.protocol.tools import CallResult, Outcome, ToolSpec
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

SPECS = {spec.name: spec for spec in tool_specs()}
PROTOCOLS = ("native", "xml")
IN_BOTH = ("apply_patch", "ask_followup_question", "execute_command", "replace_in_file", "write_to_file")
FINISH = Step({"result": "Done."}, "Done.", tool="attempt_completion")
ASKS = ("ask_followup_question", "new_task", "set_timer")


def test_every_tool_has_a_case() -> None:
    assert set(CASES) == set(SPECS)
    assert [name for name, case in CASES.items() if not case.refused] == []
    # Nobody is here to answer, or to approve a rule or a new task; subagents have tests of their own.
    assert [name for name, case in CASES.items() if not (case.works or case.ends)] == [
        "new_rule",
        "set_timer",
        "use_subagents",
        "ask_followup_question",
        "new_task",
    ]


def at(site: str, value: Any) -> Any:
    """Put the address of the pages into texts."""
    return json.loads(json.dumps(value).replace("SITE", site))


def text_of(result: CallResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, Text))


@dataclass(frozen=True)
class Driven:
    """What came of the calls of one session."""

    code: int
    err: str
    results: tuple[CallResult, ...]
    requests: tuple[dict[str, Any], ...]
    site: str


async def drive(name: str, steps: tuple[Step, ...], folder: Path, *, case: Case, protocol: str) -> Driven:
    """Make these calls in one session, one a turn; each request must be one that the provider would take."""
    async with serving(PAGES) as web:
        site = web.url("").rstrip("/")
        calls = [MakeCall(name=step.tool or name, arguments=at(site, dict(step.arguments))) for step in steps]
        script = Script(turns=tuple(Turn(items=(call,)) for call in calls))
        async with ScriptedServer(script) as server:
            provider = ("--model", f"anthropic-compatible/{case.model}", "--base-url", server.base_url)
            program = Program(folder / "home")
            (folder / "home/skills/greet").mkdir(parents=True)
            (folder / "home/skills/greet/SKILL.md").write_text(SKILL)
            if name == "run_code":  # the only one that is off at first
                (folder / "home/config.toml").write_text("code_mode = true\n")
            flags = (*provider, "--tool-protocol", protocol, "--mode", case.mode, "--output-format", "stream-json")
            ended = await program.run("-p", "Go.", *flags, "-C", str(lay_out(folder / "project")))
        assert server.violations == []
    records = [msgspec.json.decode(line) for line in ended.out.splitlines()]
    finished = [record for record in records if record["type"] == "call_changed" and record["status"] == "finished"]
    results = tuple(msgspec.convert(record["result"], CallResult) for record in finished)
    return Driven(ended.code, ended.err, results, tuple(dict(request.body) for request in server.requests), site)


def check_schema(spec: ToolSpec, request: dict[str, Any], protocol: str) -> dict[str, Any]:
    """The schema of a tool as the model is given it."""
    if protocol == "xml":
        assert "tools" not in request
        assert describe_tool(spec) in str_of(request["system"])
        return spec.parameters
    (offered,) = (tool for tool in request["tools"] if tool["name"] == spec.name)
    assert offered["description"] == spec.description
    schema: dict[str, Any] = offered["input_schema"]
    return schema


def str_of(content: Any) -> str:
    return content if isinstance(content, str) else "\n".join(block.get("text", "") for block in content)


def check(step: Step, result: CallResult, driven: Driven) -> None:
    text = text_of(result)
    assert result.outcome is step.outcome, text
    assert at(driven.site, step.says) in text
    assert any(isinstance(block, Image) for block in result.content) is step.picture
    assert result.outcome is Outcome.OK or says_what_to_do(text), f"no next step in: {text}"


def texts_in(value: Any) -> Iterator[str]:
    """Every string of a JSON value."""
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from texts_in(one)
        case list():
            for one in value:
                yield from texts_in(one)
        case _:
            pass


@pytest.mark.sample(9)
@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        # What a tool says goes the same way in both protocols.
        pytest.param(name, protocol, marks=pytest.mark.soak if protocol == "xml" and name not in IN_BOTH else ())
        for name in SPECS
        for protocol in PROTOCOLS
    ],
)
async def test_a_tool_works_and_its_refusals_say_what_to_do(tmp_path: Path, name: str, protocol: str) -> None:
    if name == "browser_action":
        require("browser")
    case = CASES[name]
    steps = (*case.works, *case.refused, case.ends or FINISH)
    driven = await drive(name, steps, tmp_path, case=case, protocol=protocol)
    nobody = any(text_of(result).startswith(NO_YES) for result in driven.results)
    assert driven.code == (Exit.PERMISSION if nobody else Exit.DONE), driven.err
    assert len(driven.results) == len(steps), driven.err
    offered = name not in ASKS  # nobody is here to answer, and still a call of it has its answer
    schema = check_schema(SPECS[name], driven.requests[0], protocol) if offered else SPECS[name].parameters
    for number, (step, result) in enumerate(zip(steps, driven.results, strict=True), 1):
        check(step, result, driven)
        if not step.tool:
            assert validate_arguments(schema, at(driven.site, dict(step.arguments))) == []
        if number < len(steps):
            read = "\n".join(texts_in(driven.requests[number]["messages"][-1]))
            texts = [block.text.strip() for block in result.content if isinstance(block, Text)]
            assert [text for text in texts if text not in read] == []
    tree = {path: tmp_path / "project" / path for path in {**FILES, **case.changes}}
    now = {path: file.read_text() if file.exists() else None for path, file in tree.items()}
    assert now == {**FILES, **case.changes}


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_call_that_does_not_fit_its_schema_is_told_what_to_send(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "project").mkdir()
    turns = []
    for name, spec in SPECS.items():
        if spec.parameters["required"] and name not in ("apply_patch", "browser_action"):
            wrong = MakeCall(name=name, arguments={})
            right = MakeCall(name="write_to_file", arguments={"path": f"{name}.txt", "content": "x"})
            turns += [Turn(items=(wrong,)), Turn(items=(right,))]
    turns.append(Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),)))
    async with ScriptedServer(Script(turns=tuple(turns))) as server:
        ended = await Program(tmp_path / "home").run(
            "-p", "Go.", *model(server), "--tool-protocol", protocol, "-C", str(tmp_path / "project"), "--mode", "full"
        )
    assert (ended.code, server.violations) == (Exit.DONE, []), ended.err
    proposed = [event.data for event in log_of(tmp_path / "home") if isinstance(event.data, CallProposed)]
    problems = [one.call.problem for one in proposed if one.call.problem]
    assert len(problems) == len(turns) // 2
    assert [problem for problem in problems if not says_what_to_do(problem)] == []


async def answered(folder: Path, option: OptionKind, *calls: MakeCall) -> list[CallResult]:
    """Make calls with a person there, who gives each question this answer."""
    script = Script(turns=(*(Turn(items=(call,)) for call in calls), Turn(items=(FINISHED,))))
    async with ScriptedServer(script) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url)
        live = await open_session(Opening(workspace=folder, settings=settings, user_present=True))
        source = Source(kind="test", id="1")
        results = []
        feed = live.follow()
        async with live:
            await live.post(Prompt(id="p", content=(Text(text="Go."),)), source)
            async for notification in feed:
                match notification:
                    case QuestionAsked(question=question):
                        await live.post(Answer(question_id=question.id, option=option), source)
                    case CallChanged(result=CallResult() as result):
                        results.append(result)
                    case TurnEnded():
                        break
                    case _:
                        pass
    return results


FINISHED = MakeCall(name="attempt_completion", arguments={"result": "Done."})


@needs("browser")
async def test_a_page_of_this_machine_is_opened_by_a_persons_yes_and_not_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "ws"
    folder.mkdir()
    async with serving(PAGES) as web:
        launch = MakeCall(name="browser_action", arguments={"action": "launch", "url": web.url("/page")})
        fetch = MakeCall(name="web_fetch", arguments={"url": web.url("/page")})
        refused = await answered(folder, OptionKind.REJECT_ONCE, launch, fetch)
        assert [result.outcome for result in refused] == [Outcome.REJECTED, Outcome.REJECTED, Outcome.OK]
        assert [text for result in refused[:2] if not says_what_to_do(text := text_of(result))] == []
        assert web.requests == []
        shown, read, _ = await answered(folder, OptionKind.ALLOW_ONCE, launch, fetch)
    assert [type(block) for block in shown.content] == [Text, Image]
    assert ("Title: T" in text_of(shown), "# Head" in text_of(read)) == (True, True)
    assert "GET /page HTTP/1.1" in [line for line, _ in web.requests]
