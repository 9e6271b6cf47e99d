"""Subagents through the program: killed with -9 at any boundary of any of their logs, and what hosts read of them."""

import itertools
import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.protocol.children import ChildEnded, ChildStarted
from treadle.protocol.events import CallFinished, Event, Prompt
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.sqlite import SessionRow, Store

DRIVER = (sys.executable, str(Path(__file__).with_name("kill_driver.py")))
SHARDS = 40
"""Each takes every fortieth commit, so that none takes long; one of them is the sample of `make test`."""

OF_CHILD = Texts(contains=("You are a subagent",))
TASKS = [{"prompt": "Write b.", "agent": "worker"}, {"prompt": "Look at a."}]
SCRIPT = Script(
    turns=(
        Turn(
            when=Expectation(last_result=Texts(contains=("b.py",)), system=OF_CHILD),
            items=(SayText(text="b is written."),),
        ),
        Turn(
            when=Expectation(last_result=Texts(contains=("took effect",)), system=OF_CHILD),
            items=(SayText(text="b is written."),),
        ),
        Turn(
            when=Expectation(last_user=Texts(contains=("Write b.",)), system=OF_CHILD),
            items=(MakeCall(name="write_to_file", arguments={"path": "b.py", "content": "B = 2\n"}),),
        ),
        Turn(
            when=Expectation(last_result=Texts(contains=("A = 1",)), system=OF_CHILD),
            items=(SayText(text="a is 1."),),
        ),
        Turn(
            when=Expectation(last_user=Texts(contains=("Look at a.",)), system=OF_CHILD),
            items=(MakeCall(name="read_file", arguments={"paths": ["a.py"]}),),
        ),
        Turn(
            when=Expectation(assistant_messages=0),
            items=(MakeCall(name="use_subagents", arguments={"tasks": TASKS}),),
        ),
        Turn(
            when=Expectation(last_result=Texts(contains=("<subagent",))),
            items=(SayText(text="Both are done."),),
        ),
    )
)


QUIET = [{"prompt": "Look at a."}, {"prompt": "Look at c."}]
IN_BACKGROUND = Script(
    turns=(
        *(
            turn
            for name in ("a", "c")
            for turn in (
                Turn(
                    when=Expectation(last_result=Texts(contains=(f"{name.upper()} = 1",)), system=OF_CHILD),
                    items=(SayText(text=f"{name} is 1."),),
                ),
                Turn(
                    when=Expectation(last_user=Texts(contains=(f"Look at {name}.",)), system=OF_CHILD),
                    items=(MakeCall(name="read_file", arguments={"paths": [f"{name}.py"]}),),
                ),
            )
        ),
        Turn(when=Expectation(last_user=Texts(contains=("has ended",))), items=(SayText(text="Noted."),)),
        Turn(
            when=Expectation(assistant_messages=0),
            items=(MakeCall(name="use_subagents", arguments={"tasks": QUIET, "wait": False}),),
        ),
        Turn(when=Expectation(last_result=Texts(contains=("work by themselves",))), items=(SayText(text="Going on."),)),
    )
)
"""Nobody waits for them; in any order each end wakes the session."""


CODE = """
texts = await asyncio.gather(read_file("a.py"), read_file("c.py"))
print("begun")
await write_to_file("b.py", texts[0].partition("A")[0][:0] + "B = 2\\n")
print(len(texts), "read")
"""
OF_CODE = Script(
    turns=(
        Turn(
            when=Expectation(assistant_messages=0),
            items=(MakeCall(name="run_code", arguments={"code": CODE}),),
        ),
        Turn(when=Expectation(last_result=Texts(contains=("begun\n2 read",))), items=(SayText(text="Both are read."),)),
    )
)
"""A program makes the calls; it is run again from its beginning, and none of its calls that was done is."""


def logs_of(home: Path) -> dict[SessionRow, list[Event]]:
    store = Store(home / "sessions.db")
    try:
        return {row: list(store.read(row.id)) for row in store.sessions(subagents=True)}
    finally:
        store.close()


async def kill_and_resume(folder: Path, when: str, number: int, script: Script = SCRIPT) -> bool:
    """Run, kill and resume; False when the run ended before it came to this commit."""
    async with ScriptedServer(script) as server:
        program, workspace = Program(folder / "home"), folder / "ws"
        workspace.mkdir(parents=True)
        program.home.mkdir()
        (program.home / "config.toml").write_text("code_mode = true\n")
        for name in ("a", "c"):
            (workspace / f"{name}.py").write_text(f"{name.upper()} = 1\n")
        flags = (*model(server), "--mode", "auto", "--directory", str(workspace))
        killed = await program.run("-p", "Do both.", *flags, command=(*DRIVER, when, str(number)))
        if killed.code == 0:
            return False
        assert killed.code == -signal.SIGKILL, killed.err
        started = any(
            type(event.data).__name__ == "Prompt" for log in logs_of(folder / "home").values() for event in log
        )
        again = ("-p", "", "--continue") if started else ("-p", "Do both.")
        ended = await program.run(*again, *flags)
    assert ended.code == 0, (when, number, ended.err)
    assert not server.violations, (when, number, server.violations)
    logs = logs_of(folder / "home")
    # One that was killed before its task was in its log has nothing to go on with; one killed at the very end is done.
    (root,) = (log for row, log in logs.items() if not row.root and "Prompt" in {type(e.data).__name__ for e in log})
    begun = [event.data.session_id for event in root if isinstance(event.data, ChildStarted)]
    over = [event.data.session_id for event in root if isinstance(event.data, ChildEnded)]
    assert sorted(begun) == sorted(over) == sorted(row.id for row in logs if row.root), (when, number)
    assert len(begun) == (1 if script is OF_CODE else 2), (when, number)
    told = str([event.data for event in root if isinstance(event.data, CallFinished | Prompt)])
    if script is SCRIPT:
        assert (workspace / "b.py").read_text() == "B = 2\n"
        assert "Both are done." in str([event.data for event in root])
        assert 0 < told.index("b is written.") < told.index("a is 1.")  # in the order of the tasks
    elif script is OF_CODE:
        assert (workspace / "b.py").read_text() == "B = 2\n"
        assert "begun\\n2 read" in told
        calls = [event.data for row, log in logs.items() for event in log if isinstance(event.data, CallFinished)]
        assert sum("A = 1" in str(one.result.content) for one in calls) == 1, (when, number)
    else:
        assert "a is 1." in told
        assert "c is 1." in told
    shutil.rmtree(folder)
    return True


@pytest.mark.parametrize(
    "first",
    [pytest.param(shard, marks=() if shard == 24 else pytest.mark.soak) for shard in range(1, SHARDS + 1)],
)
async def test_a_kill_at_any_boundary_loses_no_subagent_and_none_of_its_work(tmp_path: Path, first: int) -> None:
    for number in itertools.count(first, SHARDS):
        for when in ("before", "after"):
            if not await kill_and_resume(tmp_path / f"{when}-{number}", when, number):
                return


@pytest.mark.parametrize(
    "first",
    [pytest.param(shard, marks=() if shard == 31 else pytest.mark.soak) for shard in range(1, SHARDS + 1)],
)
async def test_a_kill_at_any_boundary_loses_no_answer_that_nobody_waits_for(tmp_path: Path, first: int) -> None:
    for number in itertools.count(first, SHARDS):
        for when in ("before", "after"):
            if not await kill_and_resume(tmp_path / f"{when}-{number}", when, number, IN_BACKGROUND):
                return


@pytest.mark.parametrize(
    "first",
    [pytest.param(shard, marks=() if shard == 21 else pytest.mark.soak) for shard in range(1, SHARDS + 1)],
)
async def test_a_kill_at_any_boundary_loses_no_result_that_a_program_had(tmp_path: Path, first: int) -> None:
    for number in itertools.count(first, SHARDS):
        for when in ("before", "after"):
            if not await kill_and_resume(tmp_path / f"{when}-{number}", when, number, OF_CODE):
                return


async def test_hosts_read_what_a_subagent_says_below_the_call_that_began_it(tmp_path: Path) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.py").write_text("A = 1\n")
    async with ScriptedServer(SCRIPT) as server:
        flags = (*model(server), "--mode", "auto", "--directory", str(tmp_path / "ws"))
        program = Program(tmp_path / "home")
        ended = await program.run("-p", "Do both.", *flags, "--output-format", "stream-json", "--verbose")
        session = json.loads(ended.out.splitlines()[0])["session_id"]
        again = await program.run("replay", session, "--tree")
    assert (again.code, again.out.count("The same: "), again.out.count(" worker: ")) == (0, 3, 1), again
    assert ended.code == 0, ended.err
    frames = [json.loads(line) for line in ended.out.splitlines()]
    calls = [
        (frame["parent_tool_use_id"], block)
        for frame in frames
        if frame["type"] == "assistant"
        for block in frame["message"]["content"]
        if block["type"] == "tool_use"
    ]
    (began,) = (block["id"] for parent, block in calls if parent is None)
    assert {block["name"] for parent, block in calls if parent == began} == {"Read", "Write"}
    assert len({block["id"] for _, block in calls}) == len(calls)
    tasks = {frame["subtype"]: frame for frame in frames if frame["type"] == "system" and "task_id" in frame}
    assert tasks["task_notification"]["status"] == "completed"
    assert tasks["task_started"]["tool_use_id"] == began
