"""The real program among names of any bytes: it works, survives a kill, and takes the work up again."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import log_of, model
from tests.e2e.test_kill import DRIVER, result
from treadle.providers.scripted.script import Expectation, MakeCall, Script, ScriptItem, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

NAME, TWIN, FOLDER = b"caf\xe9.txt", rb"caf\xe9.txt", b"r\xe9pertoire"
DIFF = "------- SEARCH\nneedle\n=======\nthread\n+++++++ REPLACE\n"


def _turn(when: Expectation, tool: str, **arguments: object) -> Turn:
    items: tuple[ScriptItem, ...] = (MakeCall(name=tool, arguments=arguments),)
    return Turn(when=when, items=items)


SCRIPT = Script(
    turns=(
        _turn(Expectation(assistant_messages=0), "list_files", path="."),
        _turn(result(r"caf\xe9.txt", without=("needle", "Saved", "taken", "Exit")), "read_file", path=r"caf\xe9.txt"),
        _turn(result("1 | needle"), "replace_in_file", path=r"caf\xe9.txt", diff=DIFF),
        _turn(result(r"Saved caf\xe9.txt"), "execute_command", command="ls; printf 'caf\\351\\n'"),
        _turn(result("had taken effect"), "execute_command", command="ls; printf 'caf\\351\\n'"),
        _turn(result("Exit status 0"), "attempt_completion", result="Done."),
        _turn(result("Outcome unknown"), "attempt_completion", result="Done."),
    )
)


def _folder(base: Path) -> Path:
    folder = base / os.fsdecode(FOLDER)
    folder.mkdir()
    for name in (NAME, TWIN, b"a\nb", b"\xff\xfe"):
        (folder / os.fsdecode(name)).write_bytes(b"needle\n")
    return folder


@pytest.mark.parametrize("after", [9, *(pytest.param(after, marks=pytest.mark.soak) for after in (0, 12))])
async def test_a_session_among_odd_names_is_killed_and_goes_on(tmp_path: Path, after: int) -> None:
    folder, program = _folder(tmp_path), Program(tmp_path / "home")
    async with ScriptedServer(SCRIPT) as server:
        flags = (*model(server), "--mode", "full", "--directory", str(folder))
        prompt = "Rename it in caf\udce9.txt."
        if after:
            killed = await program.run("-p", prompt, *flags, command=(*DRIVER, "after", str(after)))
            assert killed.code == -signal.SIGKILL, killed.err
            told = any(type(event.data).__name__ == "Prompt" for event in log_of(tmp_path / "home"))
            flags, prompt = (*flags, "--continue"), "" if told else prompt
        ended = await program.run("-p", prompt, *flags, "--output-format", "json")
        assert ended.code == 0, ended.err
        assert not server.violations
        shown = await program.run("show", json.loads(ended.out)["session_id"])
        listed = await program.run("sessions", "--all", "--json")
    assert json.loads(ended.out)["changes"][0]["path"] == rf"{tmp_path}/r\xe9pertoire/caf\xe9.txt"
    assert {name: (folder / os.fsdecode(name)).read_bytes() for name in (NAME, TWIN)} == {
        NAME: b"thread\n",
        TWIN: b"needle\n",
    }
    assert (shown.code, listed.code) == (0, 0)
    assert r"r\xe9pertoire" in json.loads(listed.out.splitlines()[0])["workspace"]
