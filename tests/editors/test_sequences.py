"""The sessions and the diff editor of the extension with the real agent, in what a person may do in a row."""

import asyncio
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, model
from tests.editors.scripted_tasks import EditsAsked
from tests.editors.test_extension import EXTENSION
from tests.needed import needs, typescript_node
from tests.ready import treadle
from treadle.providers.scripted.scripted_server import ScriptedServer

pytestmark = needs("typescript")

LINES = 40


async def _do(tmp_path: Path, seeds: list[int]) -> list[dict[str, object]]:
    folder = tmp_path / "ws"
    folder.mkdir()
    async with ScriptedServer(EditsAsked()) as server:
        started = [*treadle(), "acp", *model(server)]
        at = started.index("acp")
        given = {"command": started[:at], "arguments": started[at + 1 :], "folder": str(folder), "lines": LINES}
        process = await asyncio.create_subprocess_exec(
            *(typescript_node(), "--no-warnings", "test/sequences.ts"),
            cwd=EXTENSION,
            env=Program(tmp_path / "home", {"TREADLE_GIVEN": json.dumps({**given, "seeds": seeds})}).environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        out, _ = await process.communicate()
    done = [json.loads(line) for line in out.decode().splitlines() if line.startswith("{")]
    assert process.returncode == 0, f"after {len(done)} sequences: {out.decode()[-20_000:]}"
    return done


@pytest.mark.timeout(PATIENCE * 8)
async def test_no_edit_is_lost_and_none_is_made_twice(tmp_path: Path) -> None:
    done = await _do(tmp_path, [3])
    assert [one["seed"] for one in done] == [3]


@pytest.mark.soak
@pytest.mark.timeout(PATIENCE * 200)
async def test_no_edit_is_lost_in_many_sequences(tmp_path: Path) -> None:
    first, count = int(os.environ.get("TREADLE_FIRST_SEED", "1")), int(os.environ.get("TREADLE_SEQUENCES", "200"))
    done = await _do(tmp_path, list(range(first, first + count)))
    assert len(done) == count
