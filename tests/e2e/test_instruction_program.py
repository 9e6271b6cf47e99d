"""Instruction tests as their author runs them: recorded over HTTP, played without a model, stale by name."""

import json
from pathlib import Path

from tests.e2e.process import Program
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

TESTS = """
model = "anthropic-compatible/scripted"
fixture = "fixture"

[[test]]
name = "adds b"
prompt = "Add b."
expect = {called = ["write_to_file"], changed = ["b.py"], check = "grep -q 2 b.py"}
"""


async def test_a_test_is_recorded_over_http_and_played_without_a_server(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    project = tmp_path / "project"
    (project / "fixture").mkdir(parents=True)
    (project / "fixture" / "AGENTS.md").write_text("Use tabs.\n")
    (project / "t.toml").write_text(TESTS)
    write = MakeCall(name="write_to_file", arguments={"path": "b.py", "content": "b = 2\n"})
    done = MakeCall(name="attempt_completion", arguments={"result": "Added."})
    program.home.mkdir()
    async with ScriptedServer(Script(turns=(Turn(items=(write,)), Turn(items=(done,))))) as server:
        address = f'[providers.anthropic-compatible]\nbase_url = "{server.base_url}"\n'
        (program.home / "config.toml").write_text(address)
        first = await program.run("test", "t.toml", "--trust", cwd=project)
        assert (first.code, len(server.requests)) == (0, 2), first
        assert first.out.startswith("PASS adds b (2 steps, recorded for ")
    again = await program.run("test", "t.toml", "--trust", "--json", cwd=project)
    (one,) = json.loads(again.out)["tests"]
    assert (again.code, one["passed"], one["recorded"], one["failures"]) == (0, True, False, []), again
    (project / "fixture" / "AGENTS.md").write_text("Use blanks.\n")
    stale = await program.run("test", "t.toml", "--trust", cwd=project)
    assert stale.code == 1
    assert "Since it was recorded: rule file AGENTS.md changed." in stale.out
