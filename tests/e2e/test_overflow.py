"""A conversation that does not fit ends in words to act on, and goes on with another model."""

from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.person import ENTER
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import Expectation, MakeCall, Refuse, Script, Turn
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
