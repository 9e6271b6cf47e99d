"""Reading with git runs unasked, and nothing that the repository brings along runs with it."""

import subprocess
from pathlib import Path

import pytest

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

LINES = ("git status", "git diff", "git log -p")


def make(folder: Path, hook: str) -> None:
    """A repository with a changed file and a hook that acts whenever the index is written."""
    folder.mkdir(parents=True)
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(folder))
    subprocess.run((*git, "init", "-q"), check=True)
    (folder / "a.txt").write_text("one\n")
    subprocess.run((*git, "add", "a.txt"), check=True)
    subprocess.run((*git, "commit", "-q", "-m", "one"), check=True)
    script = folder / ".git" / "hooks" / "post-index-change"
    script.write_text(f"#!/bin/sh\n{hook}\n")
    script.chmod(0o755)
    (folder / "a.txt").write_text("two\n")


async def test_a_hook_of_the_repository_does_not_run_when_git_only_reads(tmp_path: Path) -> None:
    make(tmp_path / "ws", f"touch {tmp_path}/ran")
    calls = tuple(MakeCall(name="execute_command", arguments={"command": line}) for line in LINES)
    done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
    async with ScriptedServer(Script(turns=(Turn(items=calls), Turn(items=(done,))))) as server:
        flags = (*model(server), "--mode", "ask", "--trust", "-C", str(tmp_path / "ws"))
        ended = await Program(tmp_path / "home").run("-p", "Look.", *flags)
        results = str(server.requests[-1].body["messages"][-1])
    assert ended.code == 0, ended.err
    assert "modified:   a.txt" in results
    assert results.count("+two") == 1
    assert not (tmp_path / "ran").exists()
    # `status` writes the index only where a file is as young as that.
    subprocess.run(("git", "-C", str(tmp_path / "ws"), "add", "a.txt"), check=True, capture_output=True)
    assert (tmp_path / "ran").exists(), "the hook must be one that runs"


def nest(folder: Path, inner: Path, act: str) -> None:
    """A repository that another one expects, without a word in `.gitmodules`, with a filter that acts."""
    make(folder, "true")
    (folder / ".git" / "hooks" / "post-index-change").unlink()
    make(inner, "true")
    (inner / ".git" / "hooks" / "post-index-change").unlink()
    git = ("git", "-C", str(inner))
    head = subprocess.run((*git, "rev-parse", "HEAD"), check=True, capture_output=True, text=True).stdout.strip()
    entry = f"160000,{head},{inner.relative_to(folder)}"
    subprocess.run(("git", "-C", str(folder), "update-index", "--add", "--cacheinfo", entry), check=True)
    (inner / ".gitattributes").write_text("* filter=x\n")
    subprocess.run((*git, "config", "filter.x.clean", f"touch {act}; cat"), check=True)
    (inner / "a.txt").write_text("six\n")


@pytest.mark.parametrize("trust", [("--trust",), ()])
async def test_a_filter_of_a_repository_in_the_repository_does_not_run_unasked(
    tmp_path: Path, trust: tuple[str, ...]
) -> None:
    nest(tmp_path / "ws", tmp_path / "ws" / "in" / "ner", str(tmp_path / "ran"))
    calls = tuple(MakeCall(name="execute_command", arguments={"command": line}) for line in LINES)
    done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
    async with ScriptedServer(Script(turns=(Turn(items=calls), Turn(items=(done,))))) as server:
        flags = (*model(server), "--mode", "ask", *trust, "-C", str(tmp_path / "ws"))
        ended = await Program(tmp_path / "home").run("-p", "Look.", *flags)
        results = str(server.requests[-1].body["messages"][-1])
    if trust:  # its code may run, in a throw-away copy
        assert ended.code == 0, ended.err
    else:
        assert ended.code == 55, ended.err
        assert results.count("Denied [no-user]") == len(LINES)
        assert results.count("has its own settings: settings of repositories in it, such as submodules") == len(LINES)
    assert not (tmp_path / "ran").exists()
    subprocess.run(("git", "-C", str(tmp_path / "ws"), "status"), check=True, capture_output=True)
    assert (tmp_path / "ran").exists(), "the filter must be one that runs"
