"""The situation is told once and briefly: who is there, what the mode lets run, where git stands."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.app.rehearsal import Rehearsal, call, rehearse
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.config.sections import ModelSettings
from treadle.app.reports.policy_explain import asked_context, judge_access
from treadle.app.session.repository_state import describe_repository
from treadle.policy.modes import UNTRUSTED
from treadle.protocol.events import SetLimits
from treadle.protocol.limits import Limits
from treadle.protocol.permissions import Decision, Mode, Situation, Verdict
from treadle.protocol.tools import Access, Confinement, ReadPath, Risk, RunCommand, WritePath
from treadle.workspace.situation import repository_line, situation_lines

NOBODY = "Nobody is here: questions get no answer, and what needs approval is denied."
BYTES_PER_TOKEN = 3.6
MOST_TOKENS = 80


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return (tmp_path / "ws").resolve()


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(("git", *identity, *words), cwd=folder, check=True, capture_output=True)


def blocks(seen: Rehearsal) -> list[str]:
    """The environment blocks in the order in which they were told."""
    texts: list[str] = []
    for message in seen.requests[-1]["messages"]:
        content: Any = message["content"]
        parts = [content] if isinstance(content, str) else [str(part.get("text", "")) for part in content]
        texts += [part for part in parts if "<environment>" in part]
    return [text.split("<environment>\n")[1].split("\n</environment>")[0] for text in texts]


SAMPLES: dict[str, Access] = {
    "read": ReadPath(path="a.py"),
    "edit": WritePath(path="a.py"),
    "look": RunCommand(command="git log --oneline", cwd=""),
    "test": RunCommand(command="pytest -q", cwd=""),
    "commit": RunCommand(command="git commit -m x", cwd=""),
    "fetch": RunCommand(command="curl https://example.com/", cwd=""),
}


def _answers(folder: Path, mode: Mode, *, trusted: bool) -> dict[str, Decision]:
    context = asked_context(folder, mode, trusted=trusted)

    def placed(access: Access) -> Access:
        if isinstance(access, RunCommand):
            return replace(access, cwd=str(folder))
        return replace(access, path=str(folder / "a.py")) if isinstance(access, ReadPath | WritePath) else access

    return {name: judge_access(placed(access), context) for name, access in SAMPLES.items()}


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "untrusted"])
@pytest.mark.parametrize("mode", Mode)
def test_what_the_model_is_told_is_what_the_policy_answers(folder: Path, mode: Mode, trusted: bool) -> None:
    """The words are chosen by the mode, as the policy is loaded later: they are held to its answers here."""
    bubblewrap()
    git(folder, "init")
    situation = Situation(mode=mode, user_present=True, max_steps=None)
    said = " ".join(situation_lines(situation, first=True, trusted=trusted)).lower().removeprefix(f"mode: {mode}. ")
    found = _answers(folder, mode, trusted=trusted)
    allowed = {name for name, decision in found.items() if decision.verdict is Verdict.ALLOW}
    assert {"read", "look"} <= allowed
    if mode is Mode.FULL:
        assert ("all is allowed" in said, allowed) == (True, set(SAMPLES))
        return
    assert ("edits" in said and "allowed" in said.split("edits")[1].split(".")[0]) is ("edit" in allowed)
    assert ("nothing may be changed" in said) is (found["edit"].verdict is Verdict.DENY)
    in_copy = found["test"].verdict is Verdict.ALLOW and found["test"].confinement is Confinement.LOOK
    assert ("throw-away copy" in said) is in_copy
    assert ("edits and commands are allowed" in said) is (found["test"].confinement is Confinement.WORK and trusted)
    assert ("only" in said and "read" in said) is (found["test"].verdict is not Verdict.ALLOW)
    assert ("to git" in said) is (found["commit"].verdict is Verdict.ALLOW and mode is not Mode.PLAN)
    asked_later = bool(found["fetch"].asks_when_used)
    assert ("hosts need approval" in said or "network need approval" in said) is asked_later
    assert (UNTRUSTED in [reason.text for reason in found["test"].reasons]) is (not trusted)


LOOKS = [call("list_files", path="."), call("list_files", path="a"), call("list_files", path="b")]


async def test_the_first_block_says_that_nobody_is_there_and_what_the_mode_lets_run(folder: Path) -> None:
    first, *later = blocks(await rehearse(folder, LOOKS, mode=Mode.EDITS))
    assert first.splitlines()[:2] == [
        NOBODY,
        (
            "Mode: edits. Reading, edits and plain file commands are allowed. Others run in a throw-away copy; keeping "
            "changes and the network need approval."
        ),
    ]
    assert len(later) == 3
    assert not any("Mode:" in block or "Nobody" in block for block in later), "it is told once"


async def test_with_a_person_there_the_mode_alone_is_told(folder: Path) -> None:
    first, *_ = blocks(await rehearse(folder, LOOKS, mode=Mode.ASK, present=True))
    assert first.startswith(
        "Mode: ask. Reading is allowed. Other commands run in a throw-away copy; keeping their changes, edits and"
    )
    assert "here and can answer" not in first


async def test_a_change_of_mode_or_presence_is_told_in_the_next_block(folder: Path) -> None:
    calls = [LOOKS[0], call("write_to_file", path="a", content="x"), LOOKS[0]]
    later = {1: Mode.EDITS}
    first, second, third, fourth = blocks(await rehearse(folder, calls, mode=Mode.ASK, present=True, later=later))
    assert "Mode: ask." in first
    assert "Mode:" not in second
    assert third.startswith("The user is here and can answer.\nMode: edits. Reading, edits and plain file commands")
    assert "Mode:" not in fourth


async def test_a_limit_of_steps_is_told_at_first_and_when_it_changes(folder: Path) -> None:
    events = [SetLimits(limits=Limits(max_steps=9))]
    first, second, *_ = blocks(await rehearse(folder, LOOKS, events=events))
    assert "Steps: at most 9." in first.splitlines()
    assert "Steps" not in second


async def test_what_the_settings_approve_besides_is_told(folder: Path) -> None:
    first, *_ = blocks(await rehearse(folder, [], mode=Mode.EDITS, approve=(Risk.EXECUTE, Risk.REMOTE)))
    assert "Also allowed: execute, remote." in first.splitlines()


async def test_after_room_was_made_the_situation_is_told_again(folder: Path) -> None:
    for number in range(8):
        (folder / f"f{number}.txt").write_text(f"line {number} of many words to fill the window\n" * 120)
    looks = [call("read_file", path=f"f{number}.txt") for number in range(8)]
    window = {"anthropic-compatible/scripted": ModelSettings(context_window=12_000, max_output=1_000)}
    steps = [SetLimits(limits=Limits(max_steps=12))]  # the script goes by the messages that are left, and repeats
    seen = await rehearse(folder, looks, mode=Mode.EDITS, models=window, events=steps)
    first, *later = blocks(seen)
    assert first.startswith(NOBODY)
    assert any("left out" in str(request["messages"]) for request in seen.requests), "room was made"
    assert any(block.startswith(NOBODY) for block in later)


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("mode", Mode)
def test_the_situation_costs_less_than_eighty_tokens(mode: Mode, present: bool) -> None:
    situation = Situation(mode=mode, user_present=present, max_steps=200)
    lines = [*situation_lines(situation, first=True), repository_line("branch some-longer-name", []), "Git: "]
    assert len("\n".join(lines).encode()) / BYTES_PER_TOKEN < MOST_TOKENS


async def test_the_branch_and_the_changed_files_are_told_by_name(folder: Path) -> None:
    git(folder, "init")
    for number in range(12):
        (folder / f"f{number:02}.txt").write_text("x")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    clean, *_ = blocks(await rehearse(folder, []))
    assert "Git: branch main, no changes" in clean.splitlines()
    (folder / "f00.txt").write_text("y")
    (folder / "f01.txt").unlink()
    (folder / "new\x1b[31m.txt").write_text("y")
    some, *_ = blocks(await rehearse(folder, []))
    told = next(line for line in some.splitlines() if line.startswith("Git:"))
    assert told.startswith("Git: branch main, 3 changed files: f00.txt, f01.txt, ")
    assert "\x1b" not in told
    for number in range(12):
        (folder / f"f{number:02}.txt").write_text("z")
    many, *_ = blocks(await rehearse(folder, []))
    told = next(line for line in many.splitlines() if line.startswith("Git:"))
    assert told.startswith("Git: branch main, 13 changed files: f00.txt, ")
    assert told.endswith("f09.txt and 3 more")


def test_odd_repositories_are_told_as_they_are(folder: Path) -> None:
    assert describe_repository(str(folder)) == ""
    git(folder, "init")
    assert describe_repository(str(folder)) == "Git: branch main, no commits yet, no changes"
    (folder / "a").write_text("x")
    git(folder, "add", ".")
    git(folder, "commit", "-m", "first")
    git(folder, "checkout", "--detach")
    assert describe_repository(str(folder)) == "Git: no branch, no changes"
    git(folder, "switch", "-c", "feature/odd")
    inner = folder / "inner"
    inner.mkdir()
    (inner / "new").write_text("x")
    assert describe_repository(str(inner)).endswith("1 changed file: ./")
    (folder / ".git" / "HEAD").write_text("garbage")
    assert describe_repository(str(folder)) == ""


@pytest.fixture
def spied_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git that writes down that it ran."""
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "git").write_text(f'#!/bin/sh\ntouch {tmp_path}/git-ran\nexec /usr/bin/git "$@"\n')
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return tmp_path / "git-ran"


async def test_in_an_untrusted_folder_no_git_runs_for_the_situation(folder: Path, spied_git: Path) -> None:
    git(folder, "init")
    spied_git.unlink()
    first, *_ = blocks(await rehearse(folder, [], trusted=False))
    assert "Git:" not in first
    assert not spied_git.exists()
    await rehearse(folder, [], trusted=True)
    assert spied_git.exists(), "in a trusted one it does"


@pytest.mark.parametrize("setting", ["core.fsmonitor", "filter.x.clean", "include.path", "core.worktree"])
async def test_git_does_not_run_where_the_repository_could_make_it_run_something(
    folder: Path, setting: str, spied_git: Path
) -> None:
    git(folder, "init")
    git(folder, "config", setting, str(folder / "evil"))
    spied_git.unlink()
    first, *_ = blocks(await rehearse(folder, []))
    assert "Git:" not in first
    assert not spied_git.exists()
