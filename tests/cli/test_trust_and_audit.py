"""The commands `trust` and `audit`, as a script uses them."""

import argparse
import asyncio
import json
from pathlib import Path

import pytest

from treadle.cli import audit_command as audit
from treadle.cli import trust_command as trust
from treadle.protocol.events import (
    ENGINE,
    Answer,
    CallFinished,
    CallJudged,
    CallProposed,
    CallStarted,
    Event,
    EventData,
)
from treadle.protocol.permissions import Decision, OptionKind, Reason, Verdict
from treadle.protocol.tools import Outcome, Preview, Risk, ToolCall, ToolEffect, ToolKind, ToolTraits, result_text
from treadle.store.sqlite import SessionRow, Store

EVENTS: tuple[EventData, ...] = (
    CallProposed(
        step=1,
        attempt=1,
        call=ToolCall(id="c1", name="execute_command", arguments={"command": "make\x1b[2J"}),
        traits=ToolTraits(kind=ToolKind.EXECUTE, effect=ToolEffect.ONCE),
    ),
    CallJudged(
        call_id="c1",
        decision=Decision(
            verdict=Verdict.REQUIRE_USER_CONFIRMATION,
            risk=Risk.EXECUTE,
            reasons=(Reason(rule="mode", text="it runs code"),),
            digest="d" * 64,
        ),
        preview=Preview(title="Run"),
    ),
    Answer(question_id="c1", option=OptionKind.ALLOW_ONCE),
    CallStarted(call_id="c1"),
    CallFinished(call_id="c1", result=result_text(Outcome.OK, "done")),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run(module: object, *words: str) -> int:
    parser = argparse.ArgumentParser()
    module.configure(parser)  # type: ignore[attr-defined]
    return int(module.execute(parser.parse_args(words)))  # type: ignore[attr-defined]


def fill(home: Path) -> None:
    async def write() -> None:
        store = Store(home / "sessions.db")
        row = SessionRow(id="s1", workspace="/w", model="m", title="t", created_at=0, updated_at=0, events=0)
        await store.create(row)
        events = [Event(seq=seq, at=seq * 1000, source=ENGINE, data=data) for seq, data in enumerate(EVENTS, start=1)]
        await store.append("s1", events, durable=True)
        store.close()

    asyncio.run(write())


def test_trust_is_listed_given_and_taken_back(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("rules")
    states = []
    for words in ((), ("--yes",), (), ("--revoke",)):
        assert run(trust, str(work), "--json", *words) == 0
        told = json.loads(capsys.readouterr().out)
        states.append(told["state"])
        assert [item["path"] for item in told["items"]] == ["AGENTS.md"]
    assert states == ["untrusted", "trusted", "trusted", "untrusted"]
    assert run(trust, str(work)) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith(f"{work}: untrusted\n  rules  ")
    assert shown.err == "Nothing was changed. --yes trusts it without asking.\n"


def test_the_rules_of_a_folder_that_allow_are_listed_with_it(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    (work / ".treadle").mkdir(parents=True)
    file = work / ".treadle" / "policy.toml"
    rule = '[[rule]]\nid = "{0}"\nverdict = "{0}"\nargv = ["npm", "{1}"]\nmatch = ["npm {1}"]\n'
    file.write_text("version = 1\n" + rule.format("allow", "test") + rule.format("deny", "publish"))
    assert run(trust, str(work)) == 0
    assert capsys.readouterr().out.splitlines()[2:] == [f"  allow  command npm test …  [{file}:2]"]
    assert run(trust, str(work), "--json") == 0
    assert json.loads(capsys.readouterr().out)["allows"] == [
        {"id": "allow", "matches": "command npm test …", "source": f"{file}:2"}
    ]
    file.write_text("broken")
    assert run(trust, str(work)) == 0
    assert "allow" not in capsys.readouterr().out


def test_trusted_folders_are_listed_with_how_they_stand(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(trust, "--list") == 0
    assert capsys.readouterr() == ("", "No folder is trusted yet.\n")
    for name in ("changed", "gone", "trusted"):
        (tmp_path / name).mkdir()
        assert run(trust, str(tmp_path / name), "--yes") == 0
    (tmp_path / "changed" / "AGENTS.md").write_text("rules")
    (tmp_path / "gone").rmdir()
    capsys.readouterr()
    assert run(trust, "--list") == 0
    listed = "".join(f"{name:<9}  {tmp_path / name}\n" for name in ("changed", "gone", "trusted"))
    assert capsys.readouterr().out == listed
    assert run(trust, "--list", "--json") == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert (told[0]["workspace"], told[0]["changed"]) == (str(tmp_path / "changed"), ["AGENTS.md"])


def test_the_audit_shows_every_step_of_a_call(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(home)
    assert run(audit, "show", "s1", "--json") == 0
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["step"] for record in told] == ["call", "decision", "answer", "start", "end"]
    assert {record["call_id"] for record in told} == {"c1"}
    assert (told[1]["verdict"], told[1]["rules"], told[1]["digest"]) == (
        "REQUIRE_USER_CONFIRMATION",
        ["mode"],
        "d" * 64,
    )
    assert (told[2]["answer"], told[4]["outcome"], len(told[4]["chain"])) == ("allow_once", "ok", 64)
    assert run(audit, "show", "s1") == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        "1970-01-01 00:00:02  engine  decision  c1  REQUIRE_USER_CONFIRMATION  mode  dddddddddddddddd  it runs code"
        in lines[1]
    )
    assert "\x1b" not in "".join(lines)


def test_a_log_that_was_changed_is_found(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.store.sessions import change

    fill(home)
    assert run(audit, "verify") == 0
    assert "  5 events  intact  " in capsys.readouterr().out
    change(home / "sessions.db", "UPDATE events SET at = 7 WHERE seq = 4")
    assert run(audit, "verify", "s1") == 1
    assert "BROKEN at event 4" in capsys.readouterr().out
    assert run(audit, "verify", "--json") == 1
    assert json.loads(capsys.readouterr().out)["broken_at"] == 4
