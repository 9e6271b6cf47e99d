"""The command `policy`: rules shown, decisions explained, past sessions judged anew, answers made into rules."""

import asyncio
import json
import shutil
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.conftest import Command
from treadle.app.compose import Opening, open_session
from treadle.app.config.layers import load_settings
from treadle.policy.rulefile import RuleFile, load_rules
from treadle.policy.rules import Scope
from treadle.protocol.events import Answer, Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import QuestionAsked, TurnEnded
from treadle.protocol.permissions import AllowScope, OptionKind
from treadle.workspace.sandbox import probe

RULE = 'version = 1\n# mine\n[[rule]]\nid = "{id}"\nverdict = "{verdict}"\nargv = {argv}\nmatch = ["{match}"]\n'
TESTS = RULE.format(id="tests", verdict="deny", argv='["npm", "test"]', match="npm test")


@pytest.fixture
def work(tmp_path: Path, home: Path) -> Path:
    """A workspace of somebody who wants to be asked before anything runs."""
    config = home / "config.toml"
    config.write_text(f"try_first = false\n{config.read_text()}")
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def _script(file: Path, commands: list[str]) -> Path:
    turns = [
        {"items": [{"type": "call", "name": "execute_command", "arguments": {"command": line}}]} for line in commands
    ]
    file.write_bytes(msgspec.json.encode({"turns": [*turns, {"items": [{"type": "text", "text": "Done."}]}]}))
    return file


def _work_off(
    work: Path,
    commands: list[str],
    option: OptionKind = OptionKind.ALLOW_ONCE,
    scope: AllowScope = AllowScope.SESSION,
    asked: list[str] | None = None,
) -> str:
    """Run a session in which the model calls these commands and the user says the same to every question.

    What was asked is noted in `asked`.
    """

    async def run() -> str:
        script = _script(work.parent / "script.json", commands)
        settings = load_settings({"model": f"scripted/{script}"})
        live = await open_session(Opening(workspace=work, settings=settings, user_present=True))
        feed, source = live.follow(), Source(kind="library")
        async with live:
            await live.post(Prompt(id="p", content=(Text(text="go"),)), source)
            async for notification in feed:
                if isinstance(notification, QuestionAsked):
                    await live.post(Answer(question_id=notification.question.id, option=option, scope=scope), source)
                    (asked if asked is not None else []).append(notification.question.text)
                if isinstance(notification, TurnEnded):
                    break
        return live.id

    return asyncio.run(run())


def _rows(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_rules_are_shown_with_their_place_and_why_some_are_not_in_force(
    treadle: Command, home: Path, work: Path
) -> None:
    (home / "policy.toml").write_text(TESTS)
    (work / ".treadle").mkdir()
    (work / ".treadle" / "policy.toml").write_text(
        RULE.format(id="l", verdict="allow", argv='["make"]', match="make x")
    )
    shown = json.loads(treadle("policy", "show", "-C", str(work), "--json").out)
    assert [(rule["id"], rule["source"], rule["in_force"], rule["why"]) for rule in shown["rules"]] == [
        ("tests", f"{home}/policy.toml:3", True, ""),
        ("l", f"{work}/.treadle/policy.toml:3", False, "the folder is not trusted"),
    ]
    assert [(file["path"], file["state"], file["rules"]) for file in shown["files"]] == [
        (f"{home}/policy.toml", "in force", 1),
        (f"{work}/.treadle/policy.toml", "in force", 1),
    ]
    assert treadle("policy", "show", "-C", str(work), "--trusted").out.splitlines() == [
        f"{work}: trusted",
        "files:",
        f"  user     {home}/policy.toml  1 rule",
        f"  project  {work}/.treadle/policy.toml  1 rule",
        "rules:",
        f"  deny   tests: command npm test …  [user, {home}/policy.toml:3]  1 example holds",
        f"  allow  l: command make …  [project, {work}/.treadle/policy.toml:3]  1 example holds",
    ]


def test_a_broken_file_is_shown_and_found_by_the_doctor(treadle: Command, home: Path, work: Path) -> None:
    (home / "policy.toml").write_text(TESTS.replace('match = ["npm test"]', 'match = ["yarn"]'))
    said = treadle("policy", "show", "-C", str(work))
    why = f"{home}/policy.toml:3: the rule tests does not match its example 'yarn'"
    assert said.code == 1
    assert f"BROKEN: {why}; none of it is in force" in said.out
    doctor = treadle("doctor", "--offline", "--json")
    check = next(row for row in _rows(doctor.out) if row["name"].startswith("rules "))
    assert (check["status"], check["found"]) == ("fail", why)


def test_an_explanation_names_the_rule_its_place_and_what_would_change_the_answer(
    treadle: Command, home: Path, work: Path
) -> None:
    (home / "policy.toml").write_text(TESTS)
    notification = json.loads(
        treadle("policy", "explain", "ls && npm test", "-C", str(work), "--trusted", "--json").out
    )
    assert [(part["text"], part["verdict"]) for part in notification["parts"]] == [
        ("ls", "ALLOW"),
        ("npm test", "DENY"),
    ]
    assert notification["parts"][1]["reasons"][0] == {
        "rule": "tests",
        "text": "the rule tests says DENY",
        "source": f"{home}/policy.toml:3",
    }
    assert notification["changes"] == [
        {"what": f"without the rule tests ({home}/policy.toml:3)", "verdict": "REQUIRE_USER_CONFIRMATION"}
    ]


def test_an_explanation_offers_the_mode_the_trust_and_the_rule_that_would_allow(treadle: Command, work: Path) -> None:
    said = treadle("policy", "explain", "frobnicate x", "-C", str(work)).out
    assert "  trusting the folder" not in said
    trusted = treadle("policy", "explain", "frobnicate x", "-C", str(work), "--trusted").out
    assert "  mode full: ALLOW\n" in trusted
    assert "  a rule of your own: ALLOW\n" in trusted
    assert '    argv = ["frobnicate", "x"]\n    exact = true\n' in trusted
    path = treadle("policy", "explain", "--path", ".env", "--op", "write", "-C", str(work)).out
    assert path.startswith("REQUIRE_USER_CONFIRMATION  (risk critical")


def test_an_address_is_explained_also_as_after_text_from_outside_was_read(treadle: Command, work: Path) -> None:
    asked = ("policy", "explain", "--url", "https://docs.example.org/x", "-C", str(work), "--mode", "full", "--json")
    notification = [
        json.loads(treadle(*asked, *more).out) for more in ((), ("--tainted",), ("--method", "POST", "--tainted"))
    ]
    assert [(one["verdict"], [reason["rule"] for reason in one["parts"][0]["reasons"]]) for one in notification] == [
        ("ALLOW", ["fetch-url", "mode"]),
        ("REQUIRE_USER_CONFIRMATION", ["taint", "fetch-url"]),
        ("REQUIRE_USER_CONFIRMATION", ["taint", "fetch-url", "mode"]),
    ]
    told_change = {"what": "a new turn in which no text from outside was read", "verdict": "ALLOW"}
    assert told_change in [{"what": one["what"], "verdict": one["verdict"]} for one in notification[1]["changes"]]
    assert treadle(*asked, "ls").err.startswith("treadle: There is nothing to explain.")


def test_rows_that_cannot_be_read_are_answered_with_their_error(
    treadle: Command, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = b'{"id":7,"command":"ls"}\nno\n\n[1]\n{"id":"o","path":"a","op":"x"}\n{"id":"p","path":"a","op":"read"}\n'
    monkeypatch.setattr("sys.stdin", type("In", (), {"buffer": rows.splitlines(keepends=True)}))
    said = treadle("policy", "test", "--jsonl", "-C", str(work))
    answers = _rows(said.out)
    assert said.code == 1
    assert answers[0] == {
        "id": 7,
        "class": "read_only",
        "verdict": "ALLOW",
        "confinement": "look" if probe().backend else "open",
        "why": "ls only reads",
        "asks_when_used": [],
        "reasons": ["ls only reads", "mode ask allows it"],
        "rules": ["reader", "mode"],
    }
    assert [answer.get("error", "").partition(":")[0] for answer in answers[1:4]] == ["line 2", "line 4", "line 5"]
    assert answers[3]["id"] == "o"
    assert answers[4] == {
        "id": "p",
        "where": "inside",
        "verdict": "ALLOW",
        "why": "reads a file of the workspace",
        "resolved": f"{work}/a",
        "reasons": ["inside the workspace"],
    }


def test_past_calls_are_judged_anew_by_another_policy_or_mode(treadle: Command, work: Path, tmp_path: Path) -> None:
    session = _work_off(work, ["ls", "touch a", "touch b"])
    policy = tmp_path / "other.toml"
    policy.write_text(RULE.format(id="no-b", verdict="deny", argv='["touch", "b"]', match="touch b"))
    by_rules = _rows(treadle("policy", "recheck", session[:-2], "--policy", str(policy), "--json").out)
    assert [(row["what"], row["before"], row["after"], row["reasons"][0]["source"]) for row in by_rules[:-1]] == [
        ("touch b", "REQUIRE_USER_CONFIRMATION", "DENY", f"{policy}:3")
    ]
    assert by_rules[-1] == {"calls": 3, "changed": 1, "sessions": 1, "gone": []}
    by_mode = treadle("policy", "recheck", "--all", "--mode", "edits").out.splitlines()
    assert [line.partition("  (")[0] for line in by_mode] == [
        "REQUIRE_USER_CONFIRMATION -> ALLOW  touch a: touch changes files",
        "REQUIRE_USER_CONFIRMATION -> ALLOW  touch b: touch changes files",
        "2 of 3 calls in 1 sessions would change.",
    ]


def test_a_replay_changes_nothing_and_does_without_the_workspace(treadle: Command, work: Path, tmp_path: Path) -> None:
    _work_off(work, ["touch a"])
    shutil.rmtree(work)
    said = treadle("policy", "recheck", "--mode", "plan")
    assert said.out.endswith("1 of 1 calls in 1 sessions would change.\n")
    assert said.err == f"treadle: {work} does not exist any more; its calls were checked by their names alone\n"
    other = tmp_path / "other"
    other.mkdir()
    assert treadle("policy", "recheck", "-C", str(other)).err == ""
    assert (work.exists(), list(other.iterdir())) == (False, [])


def test_what_was_approved_becomes_narrow_rules_that_can_be_added_and_taken_back(
    treadle: Command, home: Path, work: Path
) -> None:
    _work_off(work, ["mkdir sub", "python3 -c 1", "mkdir sub", "mkdir b && rm -rf b"])
    (home / "policy.toml").write_text(TESTS)
    suggested = treadle("policy", "suggest").out
    loaded = load_rules([RuleFile(name="s", text=suggested, scope=Scope.USER)])
    assert [(rule.argv, rule.exact, rule.workspace) for rule in loaded.rules] == [(("mkdir", "sub"), True, str(work))]
    assert "# you approved this 2 times" in suggested
    (row,) = _rows(treadle("policy", "suggest", "--json").out)
    added = treadle("policy", "suggest", "--add", row["id"])
    assert added.out == f"added {row['id']} to {home}/policy.toml\n"
    text = (home / "policy.toml").read_text()
    assert text.startswith(TESTS)
    assert stat.S_IMODE((home / "policy.toml").stat().st_mode) == 0o600
    assert treadle("policy", "suggest").out == ""
    assert treadle("policy", "recheck").out.splitlines()[-1] == "2 of 4 calls in 1 sessions would change."
    assert treadle("policy", "revoke", row["id"]).out == f"removed {row['id']} from {home}/policy.toml\n"
    assert (home / "policy.toml").read_text() == TESTS
    assert treadle("policy", "revoke", row["id"]).code == 78
    assert treadle("policy", "suggest", "--add", "nothing").code == 78


def test_nothing_is_added_to_a_file_with_a_mistake(treadle: Command, home: Path, work: Path) -> None:
    _work_off(work, ["mkdir sub"])
    (home / "policy.toml").write_text("version = 2\n")
    said = treadle("policy", "suggest", "--add")
    assert (said.code, "[rules-broken]" in said.err) == (78, True)
    assert (home / "policy.toml").read_text() == "version = 2\n"


def test_what_was_refused_is_not_suggested(treadle: Command, work: Path) -> None:
    _work_off(work, ["mkdir sub"], OptionKind.REJECT_ONCE)
    assert treadle("policy", "suggest").out == ""


def test_a_rule_counts_with_the_next_call_of_a_session(home: Path, work: Path, treadle: Command) -> None:
    (home / "policy.toml").write_text(RULE.format(id="t", verdict="deny", argv='["touch", "a"]', match="touch a"))
    _work_off(work, ["touch a", "touch b"])
    assert [file.name for file in work.iterdir()] == ["b"]


def test_always_for_this_session_asks_no_second_time_and_leaves_no_rule(
    home: Path, work: Path, treadle: Command
) -> None:
    asked: list[str] = []
    _work_off(work, ["mkdir -p sub", "mkdir -p sub", "mkdir -p other"], OptionKind.ALLOW_ALWAYS, asked=asked)
    assert len(asked) == 2
    assert not (home / "policy.d").exists()


def test_always_for_every_session_becomes_a_rule_for_this_folder(
    home: Path, work: Path, tmp_path: Path, treadle: Command
) -> None:
    asked: list[str] = []
    for _ in range(2):
        _work_off(work, ["mkdir -p sub"], OptionKind.ALLOW_ALWAYS, AllowScope.USER, asked)
    assert len(asked) == 1
    file = home / "policy.d" / "approved.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (rule,) = load_rules([RuleFile(name="a", text=file.read_text(), scope=Scope.USER)]).rules
    assert (rule.argv, rule.exact, rule.workspace, rule.match) == (
        ("mkdir", "-p", "sub"),
        True,
        str(work),
        ("mkdir -p sub",),
    )
    other = tmp_path / "other"
    other.mkdir()
    _work_off(other, ["mkdir -p sub"], asked=asked)
    assert len(asked) == 2
    assert treadle("policy", "revoke", rule.id).code == 0
    _work_off(work, ["mkdir -p sub"], asked=asked)
    assert len(asked) == 3
