"""The situation is told once and briefly: who is there, what the mode lets run, where git stands."""

import dataclasses
import os
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.app.rehearsal import Rehearsal, call, rehearse
from tests.workspace.sandbox.running import bubblewrap
from treadle.app.config.sections import ModelSettings
from treadle.app.reports.policy_explain import asked_context, judge_access
from treadle.app.session.mentions.repository_state import describe_repository
from treadle.protocol.events import SetLimits
from treadle.protocol.limits import Limits
from treadle.protocol.permissions import Decision, Mode, Situation, Verdict
from treadle.protocol.tools import Access, Confinement, Risk, RunCommand, WritePath
from treadle.workspace.situation import SAMPLE_ANSWERS, SAMPLE_WORDS, SAMPLES, repository_line, situation_lines

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


CALLS: dict[str, Access] = {
    "edit": WritePath(path="a.py"),
    "look": RunCommand(command="git log --oneline", cwd=""),
    "test": RunCommand(command="pytest -q", cwd=""),
    "files": RunCommand(command="touch a.py", cwd=""),
    "commit": RunCommand(command="git commit -m x", cwd=""),
    "fetch": RunCommand(command="curl https://example.com/", cwd=""),
    "publish": RunCommand(command="git push origin main", cwd=""),
}


def _letter(decision: Decision) -> str:
    if decision.verdict is not Verdict.ALLOW:
        return "d" if decision.verdict is Verdict.DENY else "a"
    in_copy = decision.confinement is Confinement.LOOK
    if decision.asks_when_used:
        return "L" if in_copy else "l"
    return "c" if in_copy else "r"


def _answers(folder: Path, mode: Mode, *, trusted: bool, try_first: bool) -> str:
    context = dataclasses.replace(asked_context(folder, mode, trusted=trusted), try_first=try_first)

    def placed(access: Access) -> Access:
        return replace(access, cwd=str(folder)) if isinstance(access, RunCommand) else WritePath(path=f"{folder}/a.py")

    return "".join(_letter(judge_access(placed(CALLS[name]), context)) for name in SAMPLES)


@pytest.mark.parametrize(("mode", "trusted", "try_first"), SAMPLE_ANSWERS)
def test_what_the_model_is_told_is_what_the_policy_answers(
    folder: Path, mode: Mode, trusted: bool, try_first: bool
) -> None:
    """The policy is loaded after the first request: what it answers stands in a table, and is asked for here."""
    bubblewrap()
    git(folder, "init")
    found = _answers(folder, mode, trusted=trusted, try_first=try_first)
    assert found == SAMPLE_ANSWERS[mode, trusted, try_first]
    situation = Situation(mode=mode, user_present=True, max_steps=None)
    (said,) = situation_lines(situation, first=True, trusted=trusted, try_first=try_first)
    assert said.lower().endswith(SAMPLE_WORDS[found].lower())
    assert ("not trusted" in said) is (not trusted and mode is not Mode.FULL)


def test_every_answer_of_the_policy_has_words_and_they_say_what_it_means() -> None:
    assert set(SAMPLE_ANSWERS) == {(mode, *rest) for mode in Mode for rest in product((True, False), repeat=2)}
    assert set(SAMPLE_WORDS) == set(SAMPLE_ANSWERS.values())
    for answers, words in SAMPLE_WORDS.items():
        found = dict(zip(SAMPLES, answers, strict=True))
        if set(answers[:-1]) == {"r"}:
            assert words.startswith("all is allowed, but publishing")
            continue
        assert ("edits" in words and "allowed" in words.split("edits")[1].split(".")[0]) is (found["edit"] == "r")
        assert ("nothing may be changed" in words) is (found["edit"] == "d")
        assert ("throw-away copy" in words) is (found["test"] == "c")
        assert ("edits and commands are allowed" in words) is (found["test"] == "r")
        assert ("plain file commands" in words) is (found["files"] == "r" and found["test"] != "r")
        assert ("only" in words and "read" in words) is (found["test"] in "ad")
        assert ("to git" in words) is (found["commit"] == "r")
        assert ("hosts need approval" in words or "network need approval" in words) is (found["fetch"] in "lL")


async def test_where_nothing_is_tried_first_the_model_is_not_told_of_copies(folder: Path) -> None:
    first, *_ = blocks(await rehearse(folder, LOOKS, mode=Mode.ASK, present=True, try_first=False))
    assert first.startswith("Mode: ask. Commands that only read run; all else needs approval.")


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
