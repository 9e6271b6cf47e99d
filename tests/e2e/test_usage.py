"""What sessions used, as the real program says it, beside what it lists of each session."""

import json
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

WORKS = Script(
    turns=(
        Turn(items=(MakeCall(name="list_files", arguments={"path": "."}),)),
        Turn(items=(MakeCall(name="read_file", arguments={"path": "missing.txt"}),)),
        Turn(items=(SayText(text="Done."),)),
    )
)


async def test_usage_is_the_sum_of_what_the_sessions_list_says_by_any_key(tmp_path: Path) -> None:
    program = Program(tmp_path / "home")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(
        '[models."anthropic-compatible/scripted"]\ninput_price = 3.0\noutput_price = 15.0\n'
    )
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        async with ScriptedServer(WORKS) as server:
            ended = await program.run("-p", "Look around.", *model(server), cwd=folder)
        assert ended.code == Exit.DONE, ended.err
    listed = [json.loads(row) for row in (await program.run("sessions", "--all", "--json")).out.splitlines()]
    totals = []
    for key in ("model", "day", "project", "tool", "mode"):
        report = json.loads((await program.run("usage", "--by", key, "--json")).out)
        totals.append(report["total"])
        assert sum(row["requests"] for row in report["rows"]) == 6
    assert all(total == totals[0] for total in totals)
    assert totals[0]["sessions"] == 2
    known = [one["cost"] for one in listed if one["cost"] is not None]
    assert abs(totals[0]["cost"] - sum(known)) < 1e-9
    assert (len(known), totals[0]["unpriced"], totals[0]["cost"] > 0) == (2, 0, True)
    tools = {row["name"]: row for row in json.loads((await program.run("usage", "--by", "tool", "--json")).out)["rows"]}
    assert (tools["list_files"]["calls"], tools["list_files"]["failed"]) == (2, 0)
    assert (tools["read_file"]["calls"], tools["read_file"]["failed"]) == (2, 2)
    assert tools["list_files"]["result_tokens"] > 0
    one = json.loads((await program.run("usage", "--json", "-C", str(folders[0]))).out)["total"]
    assert (one["requests"], one["sessions"]) == (3, 1)
    forked = await program.run("fork", listed[0]["id"])
    assert forked.code == Exit.DONE, forked.err
    again = json.loads((await program.run("usage", "--json")).out)
    assert (again["total"], again["unread"]) == ({**totals[0]}, [])
    costs = [json.loads(row)["cost"] for row in (await program.run("sessions", "--all", "--json")).out.splitlines()]
    assert (len(costs), abs(sum(costs) - totals[0]["cost"]) < 1e-9) == (3, True)
    told = await program.run("-p", "/usage project", cwd=folders[0])
    assert told.code == Exit.DONE
    assert told.out.splitlines()[0].startswith("Usage by project: ")
    assert "#" not in told.out
    wrong = await program.run("usage", "--since", "soon")
    assert (wrong.code, "is no day" in wrong.err) == (Exit.CONFIG, True)
