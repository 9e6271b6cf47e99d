"""A review as a script uses it: one JSON object and an exit code, then a change that is applied and taken back."""

import asyncio
import json
import subprocess
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.running import PATIENCE, model
from tests.ready import treadle
from treadle.providers.scripted.script import Expectation, SayText, Script, Texts, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

CHANGE = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-print(1 / 0)\n+print(1)\n"
FINDING = {
    "file": "a.py",
    "line": 1,
    "severity": "error",
    "confidence": 1.0,
    "title": "It divides by zero",
    "text": "Always.",
    "change": CHANGE,
}


def says(words: str, answer: object) -> Turn:
    when = Expectation(last_user=Texts(contains=(words,)))
    return Turn(when=when, items=(SayText(text=f"```json\n{json.dumps(answer)}\n```"),))


async def test_a_review_in_a_script_gives_findings_in_json_and_applies_one(tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    folder.mkdir()
    subprocess.run(("git", "-C", str(folder), "init", "-q"), check=True)
    (folder / "a.py").write_text("print(1 / 0)\n")
    program = Program(tmp_path / "home")
    turns = (
        says("Review the enclosed diff", {"findings": [FINDING]}),
        says("Check each of the enclosed", {"verdicts": [{"number": 1, "confirmed": True}]}),
    )
    async with ScriptedServer(Script(turns=turns)) as server:
        flags = (*model(server), "--trust", "-C", str(folder))
        ended = await program.run("review", "--json", *flags)
        sent = str(server.requests[0].body["messages"])
        assert (ended.code, json.loads(ended.out)) == (1, {"findings": [FINDING], "cost": 0.0})
        assert "     1 +print(1 / 0)" in sent
        applied = await program.run("review", "--apply", "1", *flags)
        assert (applied.code, (folder / "a.py").read_text()) == (0, "print(1)\n"), applied.err
        session = applied.out.split()[-1]
        undone = await program.run("-p", "/undo", "--resume", session, *model(server), "--trust")
        assert (undone.code, (folder / "a.py").read_text()) == (0, "print(1 / 0)\n"), undone.err
        again = await program.run("review", "--json", "--session", session, *flags)
        assert (again.code, json.loads(again.out)) == (0, {"findings": [], "cost": 0.0})
        assert again.err.splitlines()[-1] == f"# $0.0000; session {session}"
        # Nobody reads along any more after the first line.
        line = ("sh", "-c", '"$@" 2>&1 | head -n 1', "sh", *treadle())
        async with asyncio.timeout(PATIENCE):
            left = await program.run("review", *flags, command=line)
    assert left.out == "Reviewing the changes that are not committed: 1 file, +1 -0.\n"
