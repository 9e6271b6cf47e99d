"""Treadle as an agent of the real Harbor: one task of it in an environment on bubblewrap, with a scripted model."""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.e2e.running import PATIENCE
from tests.needed import PEERS, needs
from treadle import __version__
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[2]
HARBOR = PEERS / "harbor" / "bin" / "harbor"
TASK = """\
schema_version = "1.3"
[agent]
timeout_sec = 300
[verifier]
timeout_sec = 60
"""
SOLVED = Script(
    turns=(
        Turn(items=(MakeCall(name="write_to_file", arguments={"path": "hello.txt", "content": "Hello.\n"}),)),
        Turn(items=(MakeCall(name="attempt_completion", arguments={"result": "Written."}),)),
    )
)


def prepare(place: Path) -> None:
    """Write a task of Harbor, and a program that is in the environment."""
    for name, text in {
        "task/task.toml": TASK,
        "task/instruction.md": "Write Hello. into hello.txt.\n",
        "task/environment/Dockerfile": "FROM scratch\n",
        "task/tests/test.sh": 'grep -qx Hello. hello.txt && w=1 || w=0\necho "$w" >/logs/verifier/reward.txt\n',
        "bin/treadle": f'#!/bin/sh\nexec {sys.executable} -m treadle "$@"\n',
    }.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    (place / "bin" / "treadle").chmod(0o755)


@needs("bwrap", "harbor")
async def test_harbor_runs_treadle_on_a_task_and_has_its_tokens_its_cost_and_its_log(tmp_path: Path) -> None:
    prepare(tmp_path)
    programs = ":".join({str(ROOT), sys.base_prefix, str(tmp_path / "bin")})
    async with ScriptedServer(SOLVED) as server:
        words = (
            *("run", "--path", str(tmp_path / "task"), "--jobs-dir", str(tmp_path / "jobs"), "--job-name", "job"),
            *("--agent", "treadle.harbor:TreadleAgent", "--model", "anthropic-compatible/scripted"),
            *("--ak", f"flags=--base-url {server.base_url}"),
            *("--env", "tests.hosts.harbor_bubblewrap:BubblewrapEnvironment"),
            *("--ek", f"programs={programs}", "--ek", f"path={tmp_path / 'bin'}"),
        )
        variables = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "HOME": str(tmp_path)}
        process = await asyncio.create_subprocess_exec(
            HARBOR, *words, env=variables, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        async with asyncio.timeout(2 * PATIENCE):
            said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    (result,) = (tmp_path / "jobs" / "job").glob("*/result.json")
    found = json.loads(result.read_text())
    assert found["exception_info"] is None, found["exception_info"]
    assert found["verifier_result"]["rewards"] == {"reward": 1.0}
    told = found["agent_result"]
    assert (told["cost_usd"], told["metadata"]["stop"], told["metadata"]["steps"]) == (0.0, "end_turn", 2)
    assert told["n_input_tokens"] > 0
    assert (found["agent_info"]["name"], found["agent_info"]["version"]) == ("treadle", __version__)
    log = (result.parent / "agent" / "session.json").read_text()
    assert told["metadata"]["session_id"] in log.partition("\n")[0]
