"""What a session goes by: the user's word on a folder, found out once, and nothing else of the folder."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.app.rehearsal import rehearse, run
from treadle.app.compose import Opening, open_session, session_workspace
from treadle.app.config.sections import Settings
from treadle.app.security.trusting import (
    SessionTrust,
    session_trust,
    shown_path,
    trust_report,
    trust_store,
    trusted_by_variable,
    whole_trust,
)
from treadle.app.session.live import LiveSession
from treadle.app.session.rules.rule_files import find_rules
from treadle.context.system import Rules
from treadle.protocol.errors import ConfigError
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import TurnEnded
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer
from treadle.store.trusted_folders import TrustState


def blocks(trust: SessionTrust) -> tuple[Rules, ...]:
    """What the rules of a folder say, as far as they apply."""
    return tuple(block for rule in find_rules(trust) if not rule.unused for block in rule.blocks)


SOURCE = Source(kind="test", id="main")
WIDE = (Mode.EDITS, Mode.AUTO, Mode.FULL)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with rules, in a home where nothing was said yet."""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TREADLE_TRUST", raising=False)
    monkeypatch.delenv("TREADLE_MODE", raising=False)
    work = tmp_path / "work"
    work.mkdir()
    (work / "AGENTS.md").write_text("RULE ONE")
    return work


def trust_now(folder: Path) -> SessionTrust:
    trust_store().grant(session_trust(folder).trust)
    return session_trust(folder)


async def say(live: LiveSession, text: str) -> None:
    """Send a prompt and wait for the end of its turn."""
    feed = live.follow()
    await live.post(Prompt(id=text, content=(Text(text=text),)), SOURCE)
    async for notification in feed:
        if isinstance(notification, TurnEnded):
            return


def test_rules_come_from_the_top_of_the_repository_down(folder: Path) -> None:
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / "CLAUDE.md").write_text("@AGENTS.md")
    (folder / "a" / "CLAUDE.md").write_text("RULE TWO")
    (inner / "AGENTS.md").write_text("RULE THREE")
    assert blocks(session_trust(inner)) == ()
    assert blocks(trust_now(inner)) == (
        Rules(origin=str(folder / "AGENTS.md"), text="RULE ONE"),
        Rules(origin=str(folder / "a" / "CLAUDE.md"), text="RULE TWO"),
        Rules(origin="AGENTS.md", text="RULE THREE"),
    )


def test_only_the_bytes_that_were_trusted_are_read(folder: Path) -> None:
    trust = trust_now(folder)
    (folder / "AGENTS.md").write_text("OTHER")
    (folder / "CLAUDE.md").write_text("NEW")
    assert blocks(trust) == ()
    assert blocks(session_trust(folder, once=True)) == (
        Rules(origin="AGENTS.md", text="OTHER"),
        Rules(origin="CLAUDE.md", text="NEW"),
    )


def test_a_yes_for_one_session_is_not_kept(folder: Path) -> None:
    assert session_trust(folder, once=True).trusted
    assert (session_trust(folder).trusted, trust_store().folders()) == (False, [])


def test_a_folder_that_cannot_be_looked_through_is_used_under_no_flag(folder: Path) -> None:
    (folder / ".treadle").mkdir()
    for number in range(2001):
        (folder / ".treadle" / str(number)).touch()
    trust = session_trust(folder, once=True)
    assert (trust.trusted, trust.asks, blocks(trust)) == (False, False, ())
    assert "has more than 2000 files" in trust.notice()


@pytest.mark.parametrize("mode", list(Mode))
def test_a_wide_mode_of_the_settings_waits_for_trust_and_one_that_is_said_does_not(folder: Path, mode: Mode) -> None:
    untrusted = session_trust(folder)
    assert untrusted.begin(mode, said=True) == (mode, untrusted)
    begun, trust = untrusted.begin(mode, said=False)
    assert (begun, trust.held_back) == ((Mode.ASK, mode) if mode in WIDE else (mode, None))
    assert (f"mode {mode} of the settings" in trust.notice()) is (mode in WIDE)
    assert trust_now(folder).begin(mode, said=False)[0] is mode
    (folder / "AGENTS.md").unlink()
    trust_store().revoke(folder)
    assert session_trust(folder).begin(mode, said=False)[0] is mode, "nothing in the folder waits for trust"


@pytest.mark.parametrize("said", [True, False])
def test_what_the_settings_approve_waits_for_trust_also_under_a_mode_that_is_said(folder: Path, *, said: bool) -> None:
    approve = (Risk.READ, Risk.EXECUTE, Risk.REMOTE)
    mode, trust = session_trust(folder).begin(Mode.ASK, said=said, approve=approve)
    assert (mode, trust.unapproved) == (Mode.ASK, (Risk.EXECUTE, Risk.REMOTE))
    assert "approve = execute, remote of the settings" in trust.notice()
    assert trust_now(folder).begin(Mode.ASK, said=said, approve=approve)[1].unapproved == ()
    (folder / "AGENTS.md").unlink()
    trust_store().revoke(folder)
    assert session_trust(folder).begin(Mode.ASK, said=said, approve=approve)[1].unapproved == ()


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_command_that_the_settings_approve_runs_unasked_only_with_trust(folder: Path, *, trusted: bool) -> None:
    run = MakeCall(name="execute_command", arguments={"command": "mkdir made"})
    async with ScriptedServer(Script(turns=(Turn(items=(run,)), Turn(items=(SayText(text="Done."),))))) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url, approve=(Risk.WRITE,))
        trust = trust_now(folder) if trusted else session_trust(folder)
        opening = Opening(workspace=folder, settings=settings, user_present=False, trust=trust)
        async with await open_session(opening) as live:
            await say(live, "one")
            assert any("approve = write of the settings" in notice for notice in live.notices) is not trusted
    assert (folder / "made").exists() is trusted


@pytest.mark.parametrize(("said", "expected"), [("", False), ("0", False), ("1", True)])
def test_the_variable_says_yes_or_no(monkeypatch: pytest.MonkeyPatch, said: str, *, expected: bool) -> None:
    monkeypatch.setenv("TREADLE_TRUST", said)
    assert trusted_by_variable() is expected


def test_a_variable_that_says_neither_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_TRUST", "perhaps")
    with pytest.raises(ConfigError, match="TREADLE_TRUST"):
        trusted_by_variable()


@given(st.text())
def test_a_path_is_shown_in_one_short_line_without_control_characters(path: str) -> None:
    line = shown_path(path)
    assert len(line) <= 120
    assert line.isprintable() or not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in line)
    line.encode()


async def test_what_changes_during_a_session_is_not_used_in_it_and_asks_when_it_is_resumed(folder: Path) -> None:
    turns = tuple(Turn(items=(SayText(text=f"{number}."),)) for number in range(3))
    async with ScriptedServer(Script(turns=turns)) as server:
        settings = Settings(model="anthropic-compatible/scripted", base_url=server.base_url, mode=Mode.EDITS)
        opening = Opening(workspace=folder, settings=settings, user_present=True, trust=trust_now(folder))
        async with await open_session(opening) as live:
            await say(live, "one")
            (folder / "AGENTS.md").write_text("RULE TWO")
            (folder / ".treadle").mkdir()
            (folder / ".treadle/config.toml").write_text('mode = "plan"\n')
            await say(live, "two")
            assert "Changed since the session opened, and not used in it: .treadle/config.toml, AGENTS.md" in (
                trust_report(live.trust)
            )
            assert live.status.mode is Mode.EDITS
        assert session_workspace(live.id) == folder
        again = Opening(workspace=folder, settings=settings, user_present=True, resume=live.id)
        async with await open_session(replace(again, looks=True)) as looked:
            assert (looked.status.mode, looked.trust.held_back) == (Mode.EDITS, None), "nothing runs in it"
        async with await open_session(again) as resumed:
            await say(resumed, "three")
            assert (resumed.status.mode, resumed.trust.held_back) == (Mode.ASK, Mode.EDITS)
            assert resumed.trust.trust.state is TrustState.CHANGED
            assert "mode edits of this session, which continues in mode ask. To use it" in resumed.trust.notice()
            assert "of the settings" not in resumed.trust.notice()
        sent = [json.dumps(request.body["system"]) for request in server.requests]
    assert ["RULE ONE" in system for system in sent] == [True, True, False]
    assert ["RULE TWO" in system for system in sent] == [False, False, False]
    assert sent[0] == sent[1]


async def test_the_word_on_one_folder_says_nothing_of_another(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "AGENTS.md").write_text("OTHER")
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1")
    opening = Opening(workspace=other, settings=settings, user_present=True, trust=trust_now(folder))
    async with await open_session(opening) as live:
        assert (live.workspace, live.trust.trusted) == (other, False)


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("mode", list(Mode))
async def test_a_session_that_nobody_attends_says_what_is_denied_in_an_untrusted_repository(
    folder: Path, mode: Mode, *, present: bool
) -> None:
    (folder / "AGENTS.md").unlink()
    (folder / ".git").mkdir()
    settings = Settings(model="openai/one", base_url="http://localhost:1/v1", mode=mode)
    opening = Opening(workspace=folder, settings=settings, user_present=present, given=frozenset({"mode"}))
    notices = []
    for _ in range(2):
        async with await open_session(opening) as live:
            notices.append([one for one in live.notices if one.startswith("untrusted: ")])
        trust_store().grant(session_trust(folder).trust)
    said = not present and mode not in (Mode.PLAN, Mode.FULL)
    assert (len(notices[0]), notices[1]) == (said, [])
    assert all("commands that do more than read are denied" in one for one in notices[0])


def _acting(folder: Path, *, bare: bool = False) -> None:
    """Make a repository in which git runs something that leaves a file."""
    subprocess.run(("git", "init", "-q", str(folder)), check=True)
    subprocess.run(("git", "-C", str(folder), "config", "core.fsmonitor", "touch ran; false"), check=True)
    if bare:
        for part in (folder / ".git").iterdir():
            part.rename(folder / part.name)
        (folder / ".git").rmdir()


@pytest.mark.parametrize("bare", [True, False])
async def test_git_asks_in_a_repository_below_a_folder_that_opens_without_a_question(
    folder: Path, *, bare: bool
) -> None:
    (folder / "AGENTS.md").unlink()
    _acting(folder / "w", bare=bare)
    trust = session_trust(folder)
    assert (trust.asks, trust.lets_code_run, trust.never_asked) == (False, True, True)
    lines = ("cd w && git status", "git -C w status", "git status; ls")
    for mode in (Mode.FULL, Mode.AUTO):
        found = await rehearse(folder, [run(line) for line in lines], mode=mode, trusted=False)
        assert found.denied == 2, found.texts
        assert all("core.fsmonitor" in text or "core.bare" in text for text in found.texts[:2])
    assert not [*folder.rglob("ran")]
    listed = whole_trust(folder)
    data = "w" if bare else "w/.git"
    assert [item.path for item in listed.nested] == [f"{data}/config"]
    trust_store().grant(listed)
    assert (session_trust(folder).trusted, session_trust(folder).never_asked) == (True, False)
    found = await rehearse(folder, [run(lines[0])], mode=Mode.AUTO, trusted=False)
    assert found.denied == 0, found.texts


@pytest.mark.parametrize("place", ["w", "w/below"])
@pytest.mark.parametrize("bare", [True, False])
def test_a_repository_is_asked_about_by_its_form(folder: Path, place: str, *, bare: bool) -> None:
    _acting(folder / "w", bare=bare)
    (folder / place).mkdir(exist_ok=True)
    trust = session_trust(folder / place)
    assert (trust.asks, trust.lets_code_run, trust.never_asked) == (True, False, False)
    own = [] if place != "w" else ["config"] if bare else [".git/config"]
    assert [item.path for item in trust.items] == own
