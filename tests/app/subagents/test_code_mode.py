"""Programs of the model: their calls are judged one by one, and only what they print comes back."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.app.subagents.families import ME, Family, call, events_of, family
from treadle.app.models.model_notes import PROGRAM_REF
from treadle.app.reports.usage_report import UsageKey, usage_report
from treadle.app.session.children import child_book, code_mode
from treadle.app.session.children.program_model import ProgramModel
from treadle.present.child_words import child_line
from treadle.protocol.children import ChildEnded, ChildOutcome
from treadle.protocol.errors import SessionError
from treadle.protocol.events import Compacted, Interrupt, Prompt, SessionStarted
from treadle.protocol.messages import Message, Role, Text, ToolResult, ToolUse
from treadle.protocol.models import ModelRequest, StreamCallStart, StreamText
from treadle.protocol.notifications import ChildChanged, TurnEnded
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.tools import Outcome
from treadle.providers.scripted.script import SayText, Turn
from treadle.tools import declarations


def runs(code: str) -> tuple[Turn, ...]:
    return (Turn(items=(call("run_code", code=code),)), Turn(items=(SayText(text="Done."),)))


def ended_line(own: Family) -> str:
    """How a surface says that the program ended."""
    (line,) = [child_line(one) for one in own.heard if isinstance(one, ChildChanged) and one.outcome is not None]
    return line


async def test_only_what_a_program_prints_comes_back(folder: Path) -> None:
    code = (
        'texts = await asyncio.gather(*[read_file(path="a.py") for _ in range(3)])\n'
        "print(len(texts), sum('return 1' in one for one in texts))"
    )
    async with family(folder, *runs(code), code_mode=True) as own:
        outcome = await own.turn()
    assert own.result.outcome is Outcome.OK
    assert own.text == "3 3"
    (ended,) = events_of(ChildEnded)
    assert (ended.outcome, ended.steps, ended.cost, ended.usage.context_tokens) == (ChildOutcome.DONE, 2, 0.0, 0)
    assert outcome.steps == 2


async def test_off_by_default_and_then_refused_with_the_reason(folder: Path) -> None:
    async with family(folder, *runs("print(1)")) as own:
        await own.turn()
        assert "run_code" not in own.live.tools
    assert own.result.outcome is Outcome.INVALID
    assert "code mode is off here" in own.text


async def test_a_program_reaches_the_folder_through_tools_alone(folder: Path) -> None:
    code = f"""
import os, socket
for path in ({str(folder)!r}, {str(Path.home())!r}, "/etc/passwd"):
    print(os.path.exists(path))
for make in (socket.socket, lambda: open("/usr/x", "w"), lambda: open("/x", "w")):
    try:
        make()
    except OSError as error:
        print(type(error).__name__)
open("/tmp/own", "w").write("x")
print(os.listdir("/tmp"), sorted(os.environ))
"""
    async with family(folder, *runs(code), code_mode=True) as own:
        await own.turn()
    first, rest = own.text.split("[", 1)
    assert first.split() == ["False"] * 3 + ["PermissionError", "OSError", "OSError"]
    assert rest.startswith("'own']")
    assert "TREADLE_HOME" not in rest


async def test_what_it_writes_is_judged_call_by_call_and_is_the_sessions_change(folder: Path) -> None:
    code = """
print(await write_to_file(path="b.py", content="B = 1\\n"))
print(await write_to_file("b.py", "B = 2\\n"))
"""
    async with family(folder, *runs(code), code_mode=True) as own:
        await own.turn(option=OptionKind.ALLOW_ONCE)
    assert [one.agent for one in own.asked] == ["code mode"] * 2
    assert (folder / "b.py").read_text() == "B = 2\n"
    (change,) = own.result.changes
    assert (change.path, change.before) == (str(folder / "b.py"), "")
    (ended,) = events_of(ChildEnded)
    assert ended.changes == own.result.changes


async def test_the_number_of_files_is_said_where_no_command_may_have_changed_more(folder: Path) -> None:
    code = "await write_to_file('n1', '1')\n"
    async with family(folder, *runs(code), code_mode=True, mode=Mode.FULL) as own:
        await own.turn()
    assert ended_line(own).endswith(", 1 file changed")
    code = "await write_to_file('n2', '1')\nawait execute_command('echo 1 > a.txt; echo 1 > z.txt')\n"
    async with family(folder, *runs(code), code_mode=True, mode=Mode.FULL) as own:
        outcome = await own.turn()
    assert "changed" not in ended_line(own)
    assert len(outcome.changes) == 3
    assert sorted((one.exact, len(one.changes)) for one in events_of(ChildEnded)) == [(False, 1), (True, 1)]


async def test_a_call_that_is_denied_raises_in_the_program_which_may_go_on(folder: Path) -> None:
    code = """
try:
    await write_to_file("x", "1")
except ToolError as error:
    print("denied:", error)
print(await read_file("a.py") != "")
"""
    async with family(folder, *runs(code), code_mode=True, mode=Mode.PLAN, present=False) as own:
        await own.turn()
    assert own.result.outcome is Outcome.OK
    assert own.text.startswith("denied: ")
    assert own.text.endswith("True")
    assert not (folder / "x").exists()


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ('print("so far")\nawait read_file("missing.py")', "await read_file"),
        ("print('so far')\n1 / 0", "ZeroDivisionError: division by zero"),
        ("print('so far')\nawait asyncio.Event().wait()", "waits for something that never comes"),
        ("print('so far')\nraise SystemExit(3)", "It ended itself: exit(3)"),
        ("import os\nprint('so far')\nos._exit(4)", "(status 4)"),
        ("print('so far')\nawait attempt_completion(result='x')", "NameError: name 'attempt_completion'"),
        ("print('so far')\nawait tool('use_subagents')", "A program has no tool 'use_subagents'"),
    ],
)
async def test_a_program_that_fails_says_so_with_its_own_lines_alone(folder: Path, code: str, says: str) -> None:
    async with family(folder, *runs(code), code_mode=True) as own:
        await own.turn()
    assert own.result.outcome is Outcome.FAILED
    assert own.text.startswith("so far\n\nThe program failed:\n")
    assert says in own.text
    assert "program_runner" not in own.text
    (ended,) = events_of(ChildEnded)
    assert ended.outcome is ChildOutcome.FAILED
    assert ended.why in own.text


@pytest.mark.parametrize(
    ("code", "says"),
    [
        (
            "t = asyncio.create_task(write_to_file(path='x', content='1'))",
            "coroutine 'write_to_file' was never awaited",
        ),
        ("read_file('a.py')", "<program>:1: RuntimeWarning: coroutine 'read_file' was never awaited"),
        (
            "asyncio.create_task(read_file('missing.py'))\nfor _ in range(3): await asyncio.sleep(0.01)",
            "Task exception was never retrieved\nToolError: ",
        ),
    ],
)
async def test_a_call_that_nothing_waits_for_is_told_without_lines_of_ours(folder: Path, code: str, says: str) -> None:
    async with family(folder, *runs(code), code_mode=True) as own:
        await own.turn()
    assert says in own.text
    assert "program_runner" not in own.text


async def test_a_failed_command_without_output_is_summed_up_by_its_status(folder: Path) -> None:
    code = "await execute_command(command='false')"
    async with family(folder, *runs(code), code_mode=True, mode=Mode.FULL) as own:
        await own.turn()
    (ended,) = events_of(ChildEnded)
    assert ended.why == "ToolError: Exit status 1."
    assert own.text.startswith("The program failed:\nTraceback")
    assert "ToolError: Exit status 1.\n(no output)" in own.text


async def test_a_program_that_calls_without_end_is_stopped_by_its_limit_and_keeps_what_it_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code_mode, "CODE_MODE", replace(code_mode.CODE_MODE, max_steps=3))
    monkeypatch.setattr(child_book, "CODE_MODE", replace(code_mode.CODE_MODE, max_steps=3))
    code = 'while True:\n    await read_file("a.py")\n    print("once")'
    async with family(folder, *runs(code), code_mode=True, present=False) as own:
        await own.turn()
    assert own.result.outcome is Outcome.FAILED
    assert own.text.startswith("once\nonce\n")
    assert "limit of steps" in own.text
    assert '": stopped: it reached its limit of steps, 3 steps' in ended_line(own)


def conversation(path: str, text: str, *, failed: bool = False) -> tuple[Message, ...]:
    """One call of `read_file`, and what came of it."""
    use = ToolUse(id="c", name="read_file", arguments={"path": path})
    result = ToolResult(call_id="c", name="read_file", content=(Text(text=text),), is_error=failed)
    return (Message(role=Role.ASSISTANT, content=(use,)), Message(role=Role.USER, content=(result,)))


async def said_by(model: ProgramModel, messages: Sequence[Message]) -> str:
    """What a program says that has not run yet, or not any more, and is given this conversation."""
    request = ModelRequest(
        id="1", model="program", system="", messages=tuple(messages), tools=(declarations.READ_FILE,)
    )
    first, *_ = [one async for one in model.stream(request)]
    await model.close()
    assert isinstance(first, StreamText | StreamCallStart)
    return first.text if isinstance(first, StreamText) else first.name


async def test_a_program_that_runs_again_comes_to_the_same_place_by_the_results_that_are_there() -> None:
    model = ProgramModel("import random\nprint(await read_file('a.py'), {*'abcdef'}, random.random(), id(1) > 0)")
    assert await said_by(model, ()) == "read_file"
    once, again = [await said_by(model, conversation("a.py", "text")) for _ in range(2)]
    assert once == again
    assert once.startswith("text {")
    assert (await said_by(model, conversation("a.py", "gone", failed=True))).endswith("ToolError: gone")


async def test_another_way_on_the_second_run_is_told_and_ends_the_program() -> None:
    model = ProgramModel("import os\nawait read_file(os.urandom(8).hex())\nprint('never')")
    assert await said_by(model, ()) == "read_file"
    text = await said_by(model, conversation("other", "x"))
    assert text.startswith("The program failed:\nIt was started again after an interruption")


async def test_an_argument_that_a_tool_does_not_have_makes_no_other_call(folder: Path) -> None:
    code = "print(await execute_command(command='true', requires_approval=False))\nprint('after')"
    async with family(folder, *runs(code), code_mode=True, mode=Mode.FULL) as own:
        await own.turn()
    assert own.text == "Exit status 0.\n(no output)\nafter"


async def test_an_interrupt_ends_the_program_with_all_that_it_started(folder: Path) -> None:
    code = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(1)"
    async with family(folder, *runs(code), code_mode=True) as own, own.live.follow() as feed:
        await own.live.post(Prompt(id="go", content=(Text(text="Go."),)), ME)
        async for one in feed:
            if isinstance(one, ChildChanged) and one.outcome is None:
                await own.live.post(Interrupt(), ME)
            if isinstance(one, TurnEnded):
                break
    assert [one.outcome for one in events_of(ChildEnded)] == [ChildOutcome.INTERRUPTED]


async def test_what_a_program_reads_is_bounded_by_no_window(folder: Path) -> None:
    for number in range(30):
        (folder / f"f{number}.txt").write_text("".join(f"line {line} of {number}\n" for line in range(2_500)))
    code = """
sizes = [len(await read_file(f"f{number}.txt")) for number in range(30)]
again = await read_file("f0.txt")
print(sum(sizes) > 1_000_000, len(again) == sizes[0])
"""
    async with family(folder, *runs(code), code_mode=True) as own:
        await own.turn()
    assert own.text == "True True"
    assert events_of(Compacted) == []


async def test_the_session_of_a_program_is_no_session_of_a_model(folder: Path) -> None:
    async with family(folder, *runs('print(await read_file("a.py"))'), code_mode=True) as own:
        await own.turn()
    (child,) = [one for one in events_of(SessionStarted) if one.child_of]
    with pytest.raises(SessionError, match="of a program of code mode"):
        async with family(folder, resume=child.session_id):
            pass
    rows = {row.name: row for row in usage_report(UsageKey.MODEL, None, folder).rows}
    assert (rows[PROGRAM_REF].requests, rows[PROGRAM_REF].uncounted, rows[PROGRAM_REF].calls) == (0, 0, 1)
