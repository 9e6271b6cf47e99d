"""A conversation that does not fit ends in words to act on, and goes on with another model."""

import re
from pathlib import Path
from typing import Any

from tests.e2e.process import Ended, Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.person import ENTER
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Expectation, MakeCall, Refuse, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

SMALL, LARGE = "anthropic-compatible/small", "anthropic-compatible/large"
TASK = "Look at this: " + "word " * 20_000
WINDOWS = "".join(f'[models."{one}"]\ncontext_window = 200000\n' for one in (SMALL, LARGE))
SCRIPT = Script(
    turns=(
        Turn(
            when=Expectation(model="small"),
            items=(Refuse(status=400, message="prompt is too long: 9 tokens > 5 maximum"),),
        ),
        Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Done."}),)),
    )
)


def lay_out(folder: Path) -> Program:
    (folder / "work").mkdir()
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(WINDOWS)
    return Program(folder / "home")


async def test_headless_it_says_what_fills_the_window_and_what_to_do_and_goes_on(tmp_path: Path) -> None:
    program = lay_out(tmp_path)
    async with ScriptedServer(SCRIPT) as server:
        flags = ("-C", str(tmp_path / "work"), "--base-url", server.base_url)
        stopped = await program.run("-p", TASK, "--model", SMALL, *flags)
        assert stopped.code == Exit.FAILED
        assert "too long for the model, and nothing more can be left out" in stopped.err
        assert "The largest parts of it: the text of a request (about 27," in stopped.err
        assert "--continue --model PROVIDER/NAME" in stopped.err
        assert "prompt is too long: 9 tokens > 5 maximum" in stopped.err
        assert len(server.requests) == 1
        again = await program.run("-p", "Go on.", "--continue", "--model", LARGE, *flags)
    assert (again.code, again.out.strip()) == (Exit.DONE, "Done.")
    assert TASK.strip() in str(server.requests[-1].body["messages"])


async def test_in_the_terminal_another_model_goes_on_in_the_same_session(tmp_path: Path) -> None:
    program = lay_out(tmp_path)
    async with ScriptedServer(SCRIPT) as server:
        flags = ("--model", SMALL, "--base-url", server.base_url, "--directory", str(tmp_path / "work"))
        async with on_terminal(program, *flags, "Look.") as terminal:
            await terminal.until_shown("/model PROVIDER/NAME")
            assert "nothing more can be left out" in " ".join(terminal.shown.split())
            terminal.type(f"/model {LARGE}{ENTER}")
            await terminal.until(lambda shown: LARGE in shown, "the other model")
            terminal.type(f"Go on.{ENTER}")
            await terminal.until_shown("■ Done · ")
            terminal.type(f"/quit{ENTER}")
            assert await terminal.ended() == Exit.DONE


NAMED = "This model's maximum context length is 8192 tokens. However, you requested 12200 tokens."


async def _ended_at_unknown_model(tmp_path: Path, *turns: Turn) -> tuple[Ended, list[Any]]:
    """Run a task with a model of no known window; gives how it ended, and the bounds of the replies asked for."""
    program = lay_out(tmp_path)
    (tmp_path / "home" / "config.toml").write_text('[models."openai-compatible/own"]\nmax_output = 8192\n')
    flags = ("--model", "openai-compatible/own", "-C", str(tmp_path / "work"))
    async with ScriptedServer(Script(turns=turns)) as server:
        ended = await program.run("-p", "Go.", *flags, "--base-url", f"{server.base_url}/v1")
        return ended, [one.body.get("max_tokens") for one in server.requests]


async def test_a_window_that_a_refusal_names_bounds_the_reply_and_the_request_goes_once_more(tmp_path: Path) -> None:
    turn = Turn(items=(Refuse(status=400, message=NAMED, times=1), SayText(text="Done.")))
    ended, replies = await _ended_at_unknown_model(tmp_path, turn)
    assert (ended.code, ended.out.strip()) == (Exit.DONE, "Done.")
    first, second = replies
    assert (first, second < 8_192 - 3_000) == (8_192, True), "prompt and tools have their part of the window, too"


async def test_prompt_and_tools_are_among_the_largest_parts_and_trifles_are_not(tmp_path: Path) -> None:
    ended, replies = await _ended_at_unknown_model(tmp_path, Turn(items=(Refuse(status=400, message=NAMED),)))
    assert (ended.code, len(replies)) == (Exit.FAILED, 2)
    assert "However, you requested 12200 tokens" in ended.err
    assert re.search(
        r"The largest parts of it: the tools \(about \d,\d+ tokens\), the system prompt \(about [\d,]+ tokens\)",
        ended.err,
    )
    assert "(about 1 tokens)" not in ended.err


async def test_what_is_not_sent_says_what_fills_the_window_too(tmp_path: Path) -> None:
    program = lay_out(tmp_path)
    (tmp_path / "home" / "config.toml").write_text('[models."openai-compatible/own"]\ncontext_window = 9000\n')
    async with ScriptedServer(Script(turns=())) as server:
        flags = (
            "--model",
            "openai-compatible/own",
            "--base-url",
            f"{server.base_url}/v1",
            "-C",
            str(tmp_path / "work"),
        )
        ended = await program.run("-p", TASK, *flags)
        assert server.requests == []
    assert re.search(r"parts of it: the text of a request \(about 27,\d+ tokens\), the tools \(about \d,", ended.err)
