"""What was sent to the model, block by block; making room by hand; and what stays in the conversation for good."""

import json
from pathlib import Path
from typing import Any

from tests.e2e.process import Ended, Program
from treadle.app.exits import Exit
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.server import ScriptedServer

MODEL = "anthropic-compatible/main"
PRICED = f'[models."{MODEL}"]\ncontext_window = 200000\ninput_price = 3.0\noutput_price = 15.0\n'


def call(name: str, **arguments: Any) -> MakeCall:
    return MakeCall(name=name, arguments=arguments)


def lay_out(folder: Path, settings: str = PRICED) -> tuple[Program, Path]:
    work = folder / "work"
    work.mkdir()
    (folder / "home").mkdir()
    (folder / "home" / "config.toml").write_text(settings)
    for number in range(4):
        (work / f"f{number}.txt").write_text(f"line of file {number}\n" * 400)
    return Program(folder / "home"), work


async def headless(program: Program, work: Path, server: ScriptedServer, *words: str) -> Ended:
    return await program.run("-p", *words, "--model", MODEL, "--base-url", server.base_url, cwd=work)


async def test_the_request_is_shown_block_by_block_with_its_price(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    # What a tokenizer of about four bytes a token says of such requests.
    turns = [Turn(items=(call("read_file", path=f"f{number}.txt"),)) for number in range(4)]
    script = Script(turns=(*turns, Turn(items=(call("attempt_completion", result="Done."),))))
    async with ScriptedServer(script) as server:
        ended = await headless(program, work, server, "Read them.")
        assert ended.code == Exit.DONE, ended.err
    shown = await program.run("context", "--json", cwd=work)
    report = json.loads(shown.out)
    assert report["estimated"] == sum(block["tokens"] for block in report["blocks"])
    sources = [block["source"] for block in report["blocks"]]
    assert {"f0.txt", "f3.txt", "user", "environment", "tool read_file", "system: work"} <= set(sources)
    assert (
        sources.index("tool read_file")
        < sources.index("system: work")
        < sources.index("user")
        < sources.index("f0.txt")
    )
    assert all(block["price"] is not None for block in report["blocks"])
    assert report["difference"] == report["reported"] - report["estimated"]
    assert abs(report["difference"]) <= report["reported"] * 0.05
    first = json.loads((await program.run("context", "--json", "--step", "1", cwd=work)).out)
    assert "f0.txt" not in [block["source"] for block in first["blocks"]]
    raw = json.loads((await program.run("context", "--raw", cwd=work)).out)
    assert len(raw["messages"]) == len(server.requests[-1].body["messages"])
    words = (await program.run("context", cwd=work)).out
    assert "counted by the provider" in words
    missing = await program.run("context", "--step", "99", cwd=work)
    assert missing.code != Exit.DONE
    assert "no step 99" in missing.err


async def test_a_session_without_a_step_says_so(tmp_path: Path) -> None:
    program, work = lay_out(tmp_path)
    ended = await program.run("context", cwd=work)
    assert "There is no session to continue" in ended.err
