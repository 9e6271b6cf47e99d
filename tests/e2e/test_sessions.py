"""Sessions as a person meets them: named after what was asked, listed with how they stand, easy to go on with."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.e2e.running import model, running
from tests.person import CTRL_D, ENTER, ESCAPE
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, Pace, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

HELLO = Script(turns=(Turn(items=(SayText(text="Hello to you."),)),))
SLOW = Script(turns=(Turn(items=(SayText(text="word " * 200),), pace=Pace(chunk=5, delay=0.05)),))
ASKS = Script(turns=(Turn(items=(MakeCall(name="execute_command", arguments={"command": "git push"}),)),))


async def listed(program: Program, folder: Path) -> list[dict[str, Any]]:
    ended = await program.run("sessions", "--json", cwd=folder)
    assert ended.code == Exit.DONE, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


async def test_a_terminal_that_is_opened_and_closed_leaves_no_session(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server:
        await program.run("-p", "The first task.", *model(server), cwd=tmp_path)
        async with on_terminal(program, *model(server)) as terminal:
            await terminal.until_shown("? for keys")
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
            assert "--resume" not in terminal.shown
        assert [one["title"] for one in await listed(program, tmp_path)] == ["The first task."]
        continued = await program.run("-p", "", "--continue", *model(server), cwd=tmp_path)
    assert "This session has nothing left to do" in continued.err


async def test_a_session_of_the_terminal_is_named_after_its_first_prompt_and_its_end_says_how_to_go_on(
    tmp_path: Path,
) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server, on_terminal(program, *model(server)) as terminal:
        await terminal.until_shown("? for keys")
        terminal.type(f"say hello, please{ENTER}")
        await terminal.until_shown("Hello to you.", "■ Done")
        (working,) = await listed(program, tmp_path)
        terminal.type(CTRL_D)
        assert await terminal.ended() == Exit.DONE
        await terminal.until_shown(f"Go on with: treadle --resume {working['id']}")
    (session,) = await listed(program, tmp_path)
    assert (session["title"], session["state"], session["ended"]) == ("say hello, please", "done", None)


async def test_a_task_of_a_script_on_a_terminal_shows_its_answer_once_and_how_to_go_on(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server, on_terminal(program, "-p", "Say hello.", *model(server)) as terminal:
        assert await terminal.ended() == Exit.DONE
        await terminal.until_shown("Go on with: treadle --resume 20")
        assert terminal.shown.count("Hello to you.") == 1


async def test_what_goes_on_elsewhere_is_listed_as_it_stands(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    flags = ("--directory", str(tmp_path))
    async with ScriptedServer(SLOW) as server, running(program, "-p", "Slowly.", *model(server), *flags) as slow:
        await slow.until("text_delta")
        (session,) = await listed(program, tmp_path)
        assert (session["state"], session["ended"]) == ("working", None)
        slow.process.kill()
        await slow.process.wait()
        (session,) = await listed(program, tmp_path)
        assert (session["state"], session["ended"]) == ("stopped", "unfinished")
    async with ScriptedServer(ASKS) as server, on_terminal(program, *model(server), "deploy it") as terminal:
        await terminal.until_shown("git push")
        while (await listed(program, tmp_path))[0]["state"] != "waiting":
            await asyncio.sleep(0.1)
    sessions = await listed(program, tmp_path)
    assert [(one["title"], one["state"]) for one in sessions] == [("deploy it", "stopped"), ("Slowly.", "stopped")]
    human = await program.run("sessions", "--all")
    assert "stopped: unfinished" in human.out
    assert f"deploy it\n  {tmp_path}\n" in human.out


async def test_a_session_is_chosen_from_a_list_and_then_another_one_in_its_place(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server:
        for task in ("Fix the cart total.", "Test the discount."):
            await program.run("-p", task, *model(server), cwd=tmp_path)
        (second, first) = await listed(program, tmp_path)
        async with on_terminal(program, "--resume", *model(server)) as terminal:
            await terminal.until_shown("Resume ›", "❯ now  Test the discount. ", "1 step", "  now  Fix the cart total.")
            terminal.type("cart")
            await terminal.until_shown("Resume › cart", "❯ now  Fix the cart total.")
            terminal.type(ENTER)
            await terminal.until_shown("› Fix the cart total.", "Hello to you.", "? for keys")
            assert "Resume ›" not in terminal.shown
            terminal.type("/resume")
            await terminal.until_shown("❯ /resume")
            terminal.type(ENTER)
            await terminal.until_shown("Resume ›", "❯ now  Test the discount.", "1/1")
            terminal.type(ENTER)
            await terminal.until_shown(f"Go on with: treadle --resume {first['id']}", "› Test the discount.")
            await terminal.until_shown("? for keys")
            async with on_terminal(program, "--resume", *model(server)) as other:
                await other.until_shown("❯ now  Test the discount.   open")
                other.type(ENTER)
                await other.until_shown("Attached as terminal 2", "› Test the discount.", "? for keys")
                other.type(CTRL_D)
                assert await other.ended() == Exit.DONE
            terminal.type(CTRL_D)
            assert await terminal.ended() == Exit.DONE
            await terminal.until_shown(f"Go on with: treadle --resume {second['id']}")
            assert terminal.shown.count("Go on with") == 2


async def test_a_session_is_not_chosen_from_a_list_where_there_is_no_terminal(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    for words in (("--resume",), ("--resume", "-p", "go on"), ("-p", "go on", "--resume")):
        ended = await program.run(*words, cwd=tmp_path)
        assert (ended.code, ended.out) == (Exit.USAGE, ""), ended
        assert "--resume needs the id of a session here." in ended.err


async def test_no_session_to_choose_is_said_and_esc_quits(tmp_path: Path) -> None:
    async with on_terminal(Program(tmp_path / "home"), "--resume") as terminal:
        await terminal.until_shown("Resume ›", "No other session in this folder yet.")
        terminal.type(ENTER)
        terminal.type(ESCAPE)
        assert await terminal.ended() == Exit.DONE


async def test_a_task_that_steers_the_terminal_is_listed_and_shown_without_doing_so(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    async with ScriptedServer(HELLO) as server:
        await program.run("-p", "Say \x1b]0;owned\x07 hello", *model(server), cwd=tmp_path)
    for argv in (("sessions",), ("show", "2")):
        said = await program.run(*argv, cwd=tmp_path)
        assert ("\x1b" in said.out, "Say \\x1b]0;owned\\x07 hello" in said.out) == (False, True)


async def test_the_demo_goes_on_after_a_no_and_a_further_prompt_and_ends_with_what_to_do_next(tmp_path: Path) -> None:
    async with on_terminal(Program(tmp_path / "home"), "demo") as terminal:
        await terminal.until_shown("python3 -m unittest", "esc no")
        terminal.type(ESCAPE)
        await terminal.until_shown("plays a script of one task", "■ Done")
        terminal.type(f"and now what?{ENTER}")
        await terminal.until(lambda shown: shown.count("plays a script of one task") == 2, "the answer again")
        await terminal.until(lambda shown: shown.count("■ Done") == 2, "the end of the turn")
        assert "bad_request" not in terminal.shown
        terminal.type(CTRL_D)
        assert await terminal.ended() == Exit.DONE
        await terminal.until_shown("What next:", "treadle login anthropic", 'treadle "make the tests pass"')


async def test_the_demo_without_a_terminal_fixes_the_project_and_says_what_to_do_next(tmp_path: Path) -> None:
    ended = await Program(tmp_path / "home").run("demo", "--keep", str(tmp_path / "kept"))
    assert (ended.code, ended.err) == (Exit.DONE, "")
    assert "result.get(booking.category, Decimal(0))" in (tmp_path / "kept" / "ledger.py").read_text()
    assert ended.out.count("Both tests pass.") == 1
    assert "What next:\n  treadle login anthropic" in ended.out


async def test_a_session_that_goes_on_with_another_model_is_listed_with_it_and_its_cost_names_both(
    tmp_path: Path,
) -> None:
    program = Program(tmp_path / "home")
    said = Script(turns=tuple(Turn(items=(SayText(text="Done."),)) for _ in range(2)))
    async with ScriptedServer(said) as server:
        flags = ("--base-url", server.base_url, "-C", str(tmp_path))
        for model_name, more in (("one", ()), ("two", ("--continue",))):
            await program.run("-p", "Go.", "--model", f"anthropic-compatible/{model_name}", *flags, *more)
        (row,) = await listed(program, tmp_path)
        cost = await program.run("-p", "/cost", "--continue", *flags)
    assert row["model"] == "anthropic-compatible/two"
    assert "2 steps, anthropic-compatible/one and anthropic-compatible/two." in cost.out
