"""What is asked before a session, and its lists, as plain lines for a screen reader: no control sequence anywhere."""

import asyncio
import json
import re
import socket
from pathlib import Path

from tests.app.local_servers import http_server
from tests.cli.test_login import SECRET
from tests.cli.test_login import provider as groq
from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import Terminal, on_terminal
from tests.e2e.running import log_of, model
from tests.e2e.test_screen_reader import DONE, QUIET, READY, plain, reads, writes
from tests.person import CTRL_C, CTRL_D
from treadle.app.errors.exits import Exit
from treadle.protocol.events import Answer, SetModel
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

NOWHERE = "http://127.0.0.1:1"
HELLO = Turn(items=(SayText(text="Hello to you."),))


def numbered(terminal: Terminal, label: str) -> str:
    """The number that a row was read out with last."""
    return str(re.findall(rf"(\d+)\. {re.escape(label)}", terminal.written.decode())[-1])


async def answers(terminal: Terminal, line: str) -> None:
    """Answer what was just read out, after the pause that it wants."""
    await asyncio.sleep(QUIET)
    terminal.type(f"{line}\n")


async def reads_again(terminal: Terminal, text: str, times: int) -> None:
    await terminal.until(lambda _: terminal.written.count(text.encode()) == times, f"{text}, {times} times")


def _beginner(folder: Path, provider: str) -> Program:
    """A program without a model, whose providers are nowhere but one."""
    home = folder / "home"
    home.mkdir()
    (folder / "project").mkdir()
    places = {"ollama": NOWHERE, "lmstudio": NOWHERE, '"llama.cpp"': NOWHERE, "vllm": NOWHERE, "groq": provider}
    texts = [f'[providers.{name}]\nbase_url = "{url}/v1"\n' for name, url in places.items()]
    (home / "config.toml").write_text("screen_reader = true\n" + "".join(texts))
    return Program(home)


async def test_a_key_is_added_in_plain_lines_and_never_shown(tmp_path: Path) -> None:
    async with http_server(groq) as url:
        program = _beginner(tmp_path, url)
        async with on_terminal(program, "--directory", str(tmp_path / "project")) as terminal:
            terminal.type("1\n")
            await reads(terminal, "No model is configured yet.", "1. Add an API key", "2. Try the demo", "quit.")
            await answers(terminal, "also 1")
            await reads(terminal, "This is no number of the list.")
            terminal.type("1\n")
            await reads(terminal, "Whose API key?", "Letters search.")
            await answers(terminal, "groq")
            await reads_again(terminal, "Whose API key?", 2)
            await answers(terminal, numbered(terminal, "Groq"))
            await reads(terminal, "API key of Groq.", "https://console.groq.com/keys", "Enter alone: back.")
            terminal.type("sk-wrong-161803398\n")
            await reads(terminal, "Trying the key with Groq", "Groq refused the key. It is not stored.")
            await answers(terminal, numbered(terminal, "Groq"))
            await reads_again(terminal, "API key of Groq.", 2)
            terminal.type(f"{SECRET}\n")
            await reads(terminal, "Your key for Groq is stored in", "Which model of Groq?", "the first.")
            await answers(terminal, "2")
            await reads(terminal, "Model groq/", READY)
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
            assert terminal.restored()
            written = plain(terminal)
    assert SECRET not in written
    assert "sk-wrong" not in written
    assert json.loads((program.home / "auth.json").read_text())["keys"] == {"groq": SECRET}


async def test_ctrl_c_skips_the_trial_of_a_key_and_quits_a_list(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        program = _beginner(tmp_path, f"http://127.0.0.1:{silent.getsockname()[1]}")
        async with on_terminal(program, "--directory", str(tmp_path / "project")) as terminal:
            await reads(terminal, "1. Add an API key")
            await answers(terminal, "1")
            await reads(terminal, "Whose API key?")
            await answers(terminal, "groq")
            await reads_again(terminal, "Whose API key?", 2)
            await answers(terminal, numbered(terminal, "Groq"))
            await reads(terminal, "API key of Groq.")
            terminal.type(f"{SECRET}\n")
            await reads(terminal, "Ctrl-C skips it.")
            terminal.type(CTRL_C)
            await reads(terminal, "(untried)", "Which model of Groq?")
            terminal.type(CTRL_C)
            assert await terminal.ended() == Exit.INTERRUPTED
            assert terminal.restored()
            assert SECRET not in plain(terminal)


async def test_trust_is_asked_a_model_is_chosen_and_a_yes_has_a_comment(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Speak in rhymes.")
    async with ScriptedServer(Script(turns=(writes(1), DONE))) as server:
        program = Program(tmp_path / "home", {"TREADLE_SCREEN_READER": "1"})
        async with on_terminal(program, *model(server), "--directory", str(project)) as terminal:
            terminal.type("2\n")
            await reads(terminal, f"Do you trust this folder? {project}", "2. Yes, trust it", "Enter alone: not now.")
            terminal.type("2\n")
            await reads(terminal, "This came before the list was read")
            await answers(terminal, "1\n2\n2")
            await reads_again(terminal, "This came before the list was read", 2)
            await answers(terminal, "details")
            await reads_again(terminal, "Do you trust this folder?", 2)
            await answers(terminal, "2")
            await reads(terminal, f"\nTrusted: {project}", READY)
            terminal.type("/model\n")
            await reads(terminal, "Which model?", "After the number you can add off, low")
            await answers(terminal, "")
            await asyncio.sleep(0.2)
            terminal.type("write it\n")
            await reads(terminal, "Question. Create made-1.txt?", "such as 1+, adds a comment.")
            await answers(terminal, "1+")
            await reads(terminal, "Type what to tell Treadle with your answer.")
            await answers(terminal, "and keep it short")
            await reads(terminal, "End: Done")
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
            plain(terminal)
    (answer,) = [event.data for event in log_of(tmp_path / "home") if isinstance(event.data, Answer)]
    assert (answer.question_id != "", answer.text) == (True, "and keep it short")
    assert not [event for event in log_of(tmp_path / "home") if isinstance(event.data, SetModel)]
    assert "Speak in rhymes." in json.dumps(server.requests[-1].body)


async def test_a_session_is_chosen_by_its_number_and_then_another_one_in_its_place(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    async with ScriptedServer(Script(turns=(HELLO,))) as server:
        for task in ("Fix the cart total.", "Test the discount."):
            await program.run("-p", task, *model(server), cwd=tmp_path)
        flags = ("--screen-reader", "--resume", *model(server))
        async with on_terminal(program, *flags, "--directory", str(elsewhere)) as terminal:
            await reads(terminal, "No other session in this folder yet.", "all: the sessions of all folders.")
            await answers(terminal, "all")
            await reads(
                terminal, "Which session?", "1. Test the discount. - now, 1 step", "2. Fix the cart total. - now"
            )
            await answers(terminal, "2")
            await reads(terminal, "You: Fix the cart total.", "Hello to you.", READY)
            terminal.type("/resume discount\n")
            await reads_again(terminal, "Which session?", 2)
            await answers(terminal, "1")
            await reads(terminal, "Go on with: treadle --resume", "You: Test the discount.")
            await reads_again(terminal, READY, 2)
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
            assert terminal.restored()
            plain(terminal)
