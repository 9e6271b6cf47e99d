"""Slash commands through the real program: as a task, and in the terminal."""

import asyncio
import json
import re
import signal
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import PATIENCE, log_of, model, running
from tests.e2e.test_sessions import listed
from tests.person import CTRL_C, CTRL_D, ENTER
from treadle.engine.core.texts import NOTHING_TO_LEAVE_OUT
from treadle.protocol.events import CompactNow, SetMode
from treadle.protocol.permissions import Mode
from treadle.protocol.sealed import SideAnswered
from treadle.providers.scripted.script import Expectation, MakeCall, SayText, Script, Texts, Turn, Wait
from treadle.providers.scripted.scripted_server import ScriptedServer

SAID = Turn(items=(SayText(text="Understood."),))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "a.py").write_text("ANSWER = 42\n")
    return tmp_path / "ws"


async def run(project: Path, *tasks: str, flags: tuple[str, ...] = (), turns: int = 1) -> tuple[list[Ended], int]:
    """Do one task after the other, the later ones with --continue; gives the ends, and the number of requests."""
    ended: list[Ended] = []
    async with ScriptedServer(Script(turns=(SAID,) * turns)) as server:
        for number, task in enumerate(tasks):
            more = ("--continue",) if number else ()
            given = (*model(server), "-C", str(project), *flags, *more)
            ended.append(await Program(project.parent / "home").run("-p", task, *given))
        return ended, len(server.requests)


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("task", "shown"),
    [
        ("/help", "/compact [FOCUS]"),
        ("/help mode", "/mode NAME"),
        ("/status", "mode     ask"),
        ("/cost", "Nothing was spent in this session yet."),
        ("/permissions", "mode: ask"),
        ("/approvals", "Nothing is allowed for this session"),
        ("/trust", "is trusted for this session."),
        ("/todo", "The task has no checklist yet."),
        ("/jobs", "No command runs in the background."),
        ("/config", 'mode = "ask"  (default)'),
        ("/doctor", "python"),
        ("/hooks", "There are no hooks. docs/hooks.md says how to set one."),
    ],
)
async def test_a_command_that_shows_something_is_no_task(project: Path, task: str, shown: str) -> None:
    (ended,), requests = await run(project, task, flags=("--trust",))
    assert (ended.code, requests) == (0, 0), ended.err
    assert shown in ended.out


@pytest.mark.sample(3)
@pytest.mark.parametrize("task", ["/fork x", "/rewind 2", "/undo", "/mode loud", "/effort", "/revoke", "/compact"])
async def test_a_command_that_does_nothing_says_so_and_fails(project: Path, task: str) -> None:
    (ended,), requests = await run(project, task)
    assert (ended.code, ended.out, requests) == (2, "", 0)
    assert ended.err.strip().splitlines()[-1].endswith((".", "XML."))


async def test_commands_change_the_session_that_is_continued(project: Path) -> None:
    ended, requests = await run(project, "begin", "/plan", "/status", "/act", "/effort high")
    assert [one.code for one in ended] == [0] * 5, ended[-1].err
    assert "mode     plan" in ended[2].out
    assert requests == 1
    modes = [event.data.mode for event in log_of(project.parent / "home") if isinstance(event.data, SetMode)]
    assert modes == [Mode.PLAN, Mode.ASK]


async def test_compact_frees_space_and_ends(project: Path) -> None:
    ended, _ = await run(project, "begin", "go on", "/compact keep the API names", turns=3)
    assert ended[-1].code == 0, ended[-1].err
    (asked,) = [event.data for event in log_of(project.parent / "home") if isinstance(event.data, CompactNow)]
    assert asked.focus == "keep the API names"


async def test_a_command_that_did_nothing_does_not_say_that_it_is_done(project: Path) -> None:
    ended, _ = await run(project, "begin", "/compact", turns=2, flags=("--output-format", "json"))
    record = json.loads(ended[-1].out)
    assert record["text"] == NOTHING_TO_LEAVE_OUT


async def test_a_command_is_a_record_of_json_output(project: Path) -> None:
    (ended,), _ = await run(project, "/todo", flags=("--output-format", "json"))
    record = json.loads(ended.out)
    assert (record["type"], record["name"], record["text"]) == ("command", "todo", "The task has no checklist yet.")


async def test_a_command_that_a_signal_cuts_off_is_a_record_too(project: Path) -> None:
    await run(project, "begin", "go on", turns=2)
    program, slow = Program(project.parent / "home"), Turn(items=(Wait(seconds=PATIENCE), SayText(text="Later.")))
    async with ScriptedServer(Script(turns=(slow,))) as server:
        given = (*model(server), "-C", str(project), "--continue")
        async with running(program, "-p", "/compact", *given) as session:
            while not server.requests:
                await asyncio.sleep(0.01)
            session.send(signal.SIGTERM)
            ended = await session.end()
    record = json.loads(ended.out.splitlines()[-1])
    assert (ended.code, record["exit_code"]) == (143, 143), ended.err
    assert (record["type"], record["name"]) == ("command", "compact")
    assert record["text"].startswith("A signal ended the program")


async def test_a_markdown_command_is_a_task(project: Path) -> None:
    (project / ".treadle" / "commands").mkdir(parents=True)
    (project / ".treadle" / "commands" / "ask.md").write_text("Explain $1 with @a.py.\n")
    (untrusted,), requests = await run(project, "/ask it")
    assert (untrusted.code, requests) == (2, 0)
    assert "you do not trust this folder" in untrusted.err
    (ended,), requests = await run(project, "/ask it", flags=("--trust",))
    assert (ended.code, requests) == (0, 1), ended.err
    assert "~ Enclosed: .treadle/commands/ask.md, a.py" in ended.err


async def test_commands_in_the_terminal(project: Path) -> None:
    (project / ".treadle" / "commands").mkdir(parents=True)
    (project / ".treadle" / "commands" / "ask.md").write_text("---\ndescription: Explain it\n---\nExplain $1.\n")
    program = Program(project.parent / "home")
    async with (
        ScriptedServer(Script(turns=(SAID, SAID))) as server,
        on_terminal(program, *model(server), "--trust", "--directory", str(project)) as terminal,
    ):
        await terminal.until_shown("ask")
        terminal.type("/as")
        await terminal.until_shown("Explain it (.treadle/commands/ask.md)")
        terminal.type(f"k it{ENTER}")
        await terminal.until_shown("Enclosed: .treadle/commands/ask.md", "■ Done")
        for command, shown in (
            ("/status", "mode     ask"),
            ("/plan", "Mode is now plan"),
            ("/cost", "This session so far: "),
            ("/diff", "Git does not run here"),
            ("/undo", "There is nothing to undo"),
            ("/sttaus", "Did you mean /status?"),
        ):
            terminal.type(f"{command} {ENTER}")
            await terminal.until_shown(shown)
        terminal.type(f"/new {ENTER}")
        await terminal.until_shown("Session kept: /ask it", "last session: /ask it")
        terminal.type(f"again{ENTER}")
        await terminal.until(lambda text: "› again" in text and text.count("■ Done") == 2, "the end of the turn")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0
    assert '<command name=\\"/ask\\"' in json.dumps(server.requests[0].body)
    assert "/ask" not in json.dumps(server.requests[1].body)


def status_of(shown: str) -> str:
    """The last line that begins with the model."""
    return ([""] + [line for line in shown.splitlines() if line.startswith(" scripted · ")])[-1]


async def test_going_back_gives_the_message_back_and_says_how_long_the_conversation_is_now(project: Path) -> None:
    program, long = Program(project.parent / "home"), Turn(items=(SayText(text="And so on. " * 4_000),))
    async with (
        ScriptedServer(Script(turns=(SAID, long))) as server,
        on_terminal(program, *model(server), "--directory", str(project)) as terminal,
    ):
        await terminal.until_shown("› Describe a task")
        terminal.type(f"one{ENTER}")
        await terminal.until_shown("■ Done")
        terminal.type(f"two{ENTER}")
        await terminal.until(lambda shown: "k of 128k" in status_of(shown), "a long conversation")
        await terminal.until_shown("■ Done", "› Describe a task")
        terminal.type(f"/rewind 2{ENTER}")
        await terminal.until_shown("back at an earlier")
        await terminal.until(lambda shown: re.search(r" \d+ of 128k", status_of(shown)) is not None, "a short one")
        await terminal.until(lambda shown: "\n› two" in shown.rpartition("back at an earlier")[2], "the message")
        terminal.type(CTRL_C)
        await terminal.until_shown("› Describe a task")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0


def aside(answer: str) -> Turn:
    """The reply to a question beside the work."""
    return Turn(items=(SayText(text=answer),), when=Expectation(last_user=Texts(contains=("beside the work",))))


async def test_a_side_question_leaves_no_trace_in_the_conversation(project: Path) -> None:
    async with ScriptedServer(Script(turns=(SAID, SAID, aside("It is called cart.")))) as server:
        program, given = Program(project.parent / "home"), (*model(server), "-C", str(project))
        await program.run("-p", "remember: the module is called cart", *given)
        asked = await program.run("-p", "/btw what is the module called?", *given, "--continue")
        after = await program.run("-p", "go on", *given, "--continue")
        bodies = [json.dumps(request.body["messages"]) for request in server.requests]
        tools = [request.body.get("tools") for request in server.requests]
    assert (asked.code, asked.out, after.code) == (0, "It is called cart.\n", 0), asked.err
    assert "what is the module called?" in bodies[1]
    assert "the module is called cart" in bodies[1]
    assert "what is the module called?" not in bodies[2]
    assert "It is called cart." not in bodies[2]
    assert tools[1] == tools[0], "the provider's cache holds what comes before the question"
    (logged,) = [event.data for event in log_of(project.parent / "home") if isinstance(event.data, SideAnswered)]
    assert (logged.text, logged.usage.output_tokens > 0) == ("It is called cart.", True)


async def test_a_side_question_and_its_answer_are_in_the_record_of_the_session_and_found(project: Path) -> None:
    async with ScriptedServer(Script(turns=(SAID, aside("It is called cart.")))) as server:
        program, given = Program(project.parent / "home"), (*model(server), "-C", str(project))
        await program.run("-p", "remember: the module is called cart", *given)
        asked = await program.run("-p", "/btw which module?", *given, "--continue")
        assert asked.code == 0, asked.err
        told = ("Asked beside the work: which module?", "It is called cart.", "The question beside the work used")
        (row,) = (await program.run("sessions", "--json", cwd=project)).out.splitlines()
        for words in (("show",), ("export", "--format", "md"), ("export", "--format", "html")):
            record = (await program.run(words[0], json.loads(row)["id"], *words[1:], cwd=project)).out
            places = [record.find(text) for text in told]
            assert -1 not in places, (words, record)
            assert places == sorted(places), record
        for text in ("called cart.", "which module"):
            found = await program.run("sessions", "--search", text, cwd=project)
            assert text in found.out, found.out


async def test_a_side_question_is_answered_while_the_session_works(project: Path) -> None:
    wait = Turn(items=(MakeCall(name="execute_command", arguments={"command": "sleep 3"}),))
    done = Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "It slept."}),))
    program = Program(project.parent / "home")
    async with (
        ScriptedServer(Script(turns=(wait, done, aside("A sleeping command.")))) as server,
        on_terminal(program, *model(server), "--mode", "full", "--directory", str(project)) as terminal,
    ):
        await terminal.until_shown("full")
        terminal.type(f"work{ENTER}")
        await terminal.until_shown("sleep 3")
        terminal.type(f"/btw what runs?{ENTER}")
        await terminal.until_shown("Asked beside the work: what runs?", "A sleeping command.")
        await terminal.until_shown("It slept.", "■ Done")
        terminal.type(f"/context {ENTER}")
        await terminal.until_shown("system prompt ", "tools ", "messages ", "free ", "estimated")
        terminal.type(CTRL_D)
        assert await terminal.ended() == 0


WRITES = MakeCall(name="write_to_file", arguments={"path": "one.txt", "content": "1\n"})
AGAIN = MakeCall(name="write_to_file", arguments={"path": "two.txt", "content": "2\n"})
DONE = MakeCall(name="attempt_completion", arguments={"result": "Done."})


async def _killed(project: Path, server: ScriptedServer) -> tuple[Program, tuple[str, ...]]:
    """A session whose program is killed while the model writes, after it has written a file."""
    program = Program(project.parent / "home")
    flags = (*model(server), "-C", str(project), "--mode", "auto", "--trust")
    async with running(program, "-p", "Write.", *flags) as first:
        await first.until("text_delta")
        first.process.kill()
        await first.process.wait()
    return program, flags


@pytest.mark.parametrize(
    ("command", "state", "file"),
    [
        ("/status", "unfinished", True),
        ("/cost", "unfinished", True),
        ("/context", "unfinished", True),
        ("/undo", "cancelled", False),
        ("/rewind 1", "cancelled", False),
        ("/export md x.md", "cancelled", True),
        ("/mode plan", "cancelled", True),
    ],
)
async def test_a_command_after_a_kill_never_has_the_model_work(
    project: Path, command: str, state: str, *, file: bool
) -> None:
    slow = Turn(items=(SayText(text="I write another one."), Wait(seconds=60)))
    async with ScriptedServer(Script(turns=(Turn(items=(WRITES,)), slow, Turn(items=(AGAIN,))))) as server:
        program, flags = await _killed(project, server)
        made = len(server.requests)
        ended = await program.run("-p", command, "--continue", *flags)
        assert (ended.code, len(server.requests)) == (0, made), ended.err
        assert ((project / "one.txt").exists(), (project / "two.txt").exists()) == (file, False)
        (session,) = await listed(program, project)
        assert session["ended"] == state
        told = "is stopped." if state == "cancelled" else 'is open: treadle -p "" --continue'
        assert f"# The turn that was going on when the session ended {told}" in ended.err
        assert "state    working" not in ended.out, "nothing goes on with it"


async def test_a_task_after_a_kill_is_read_at_the_next_step_and_what_the_run_did_is_summed_up(project: Path) -> None:
    slow = Turn(items=(SayText(text="I write another one."), Wait(seconds=2)))
    push = MakeCall(name="execute_command", arguments={"command": "git push origin main"})
    turns = (Turn(items=(WRITES,)), slow, Turn(items=(AGAIN, push)), Turn(items=(DONE,)))
    async with ScriptedServer(Script(turns=turns)) as server:
        program, flags = await _killed(project, server)
        ended = await program.run("-p", "Stop, do nothing more.", "--continue", *flags, "--output-format", "json")
        read = [json.dumps(one.body["messages"][-1]) for one in server.requests]
    assert "Stop, do nothing more." in read[3], "the request that was cut off is made again first"
    result = json.loads(ended.out)
    assert (ended.code, result["denied"]) == (55, 1), ended.err
    assert [Path(one["path"]).name for one in result["changes"]] == ["one.txt", "two.txt"]
