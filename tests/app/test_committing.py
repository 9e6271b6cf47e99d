"""A commit beside the person's own work: what hooks change, what git has begun, and what it lets nobody do."""

import os
import subprocess
from pathlib import Path

import pytest

from treadle.app.slash.committing import commit_files, plan_commit
from treadle.app.slash.shown_commands import GitRun
from treadle.protocol.errors import ConfigError

FIXES = """#!/bin/sh
for one in "folder ä/new.txt" "folder ä/old.txt" log.txt; do echo fixed >> "$one"; git add "$one"; done
git rm -q --cached -f --ignore-unmatch "folder ä/secret.txt"
"""


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "treadle"))
    (tmp_path / ".gitconfig").write_text(
        "[user]\n\tname = Ann\n\temail = ann@example.com\n[init]\n\tdefaultBranch = main\n"
    )


def git(folder: Path, *arguments: str, fails: bool = False) -> str:
    done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=not fails)
    return done.stdout


def repository(folder: Path, form: str = "sha1") -> Path:
    """A repository with a folder in it that a session works in; gives that folder."""
    work = folder / "repo" / "folder ä"
    work.mkdir(parents=True)
    git(work.parent, "init", "-q", f"--object-format={form}")
    for name in ("old.txt", "theirs.txt"):
        (work / name).write_text("a\n")
    git(work, "add", ".")
    git(work, "commit", "-q", "-m", "Begin")
    return work


def commit(work: Path, *names: str, amends: str = "") -> GitRun:
    shown = {one.path: one.digest for one in plan_commit(str(work), ()).files}
    return commit_files(str(work), {name: shown[name] for name in names}, "Change", amends=amends)


def hook(work: Path, text: str, name: str = "pre-commit") -> None:
    file = work.parent / ".git" / "hooks" / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


@pytest.mark.parametrize("first", [False, True], ids=["a later commit", "the first commit"])
@pytest.mark.parametrize("form", ["sha1", "sha256"])
@pytest.mark.parametrize("staged", [False, True], ids=["", "staged before"])
def test_what_a_hook_changes_is_in_the_commit_and_is_not_staged_to_be_taken_back(
    tmp_path: Path, form: str, *, staged: bool, first: bool
) -> None:
    work = repository(tmp_path, form)
    if first:
        git(work, "update-ref", "-d", "HEAD")
        git(work, "rm", "-q", "-r", "--cached", ".")
    (work / "theirs.txt").write_text("staged\n")
    git(work, "add", "theirs.txt")
    (work / "theirs.txt").write_text("later\n")
    for name in ("new.txt", "old.txt", "secret.txt", "ready ö.txt"):
        (work / name).write_text("b\n")
        if staged:
            git(work, "add", name)
    hook(work, FIXES)
    assert commit(work, "new.txt", "old.txt", "secret.txt", "ready ö.txt").status == 0
    assert [git(work, "show", f"HEAD:./{name}") for name in ("new.txt", "old.txt")] == ["b\nfixed\n"] * 2
    assert git(work, "diff", "--cached", "--name-only").splitlines() == ['"folder \\303\\244/theirs.txt"']
    assert git(work, "show", ":./theirs.txt") == "staged\n", "what others staged stays so"
    assert git(work, "-c", "core.quotePath=false", "status", "--short", ".").splitlines() == [
        "AM theirs.txt" if first else "MM theirs.txt",
        "?? secret.txt",
    ]


def test_what_a_hook_changes_of_an_amended_commit_is_not_staged_to_be_taken_back_either(tmp_path: Path) -> None:
    work = repository(tmp_path)
    hook(work, FIXES)
    (work / "new.txt").write_text("b\n")
    last = git(work, "rev-parse", "HEAD").strip()
    assert commit(work, amends=last).status == 0
    assert git(work, "status", "--short") == ""
    assert git(work, "show", "HEAD:./new.txt") == "b\nfixed\n"


def test_what_a_hook_stages_for_the_next_commit_stays_staged(tmp_path: Path) -> None:
    work = repository(tmp_path)
    hook(work, "#!/bin/sh\necho next > next.txt; git add next.txt\n", "post-commit")
    (work / "new.txt").write_text("b\n")
    assert commit(work, "new.txt").status == 0
    assert git(work, "status", "--short", "..") == "A  ../next.txt\n"


def test_an_index_that_stays_behind_is_said(tmp_path: Path) -> None:
    work = repository(tmp_path)
    hook(work, FIXES)
    hook(work, "#!/bin/sh\ntouch .git/index.lock\n", "post-commit")
    (work / "new.txt").write_text("b\n")
    made = commit(work, "new.txt")
    assert made.status == 0
    assert "What hooks changed is in the commit, and is staged as it was before.\n" in made.output
    assert "index.lock" in made.output


def refused(work: Path) -> ConfigError:
    """Both a look at the files and a commit of them are refused, with the same words."""
    with pytest.raises(ConfigError) as planned:
        plan_commit(str(work), ())
    with pytest.raises(ConfigError) as made:
        commit_files(str(work), {"old.txt": ""}, "Change")
    assert str(planned.value) == str(made.value)
    return planned.value


def branches(work: Path) -> None:
    """Two branches that changed the same file: `other`, and `main`, which is checked out."""
    git(work, "switch", "-q", "-c", "other")
    for text in ("other\n", "other again\n"):
        (work / "old.txt").write_text(text)
        git(work, "commit", "-q", "-a", "-m", text.strip())
    git(work, "switch", "-q", "main")
    (work / "old.txt").write_text("main\n")
    git(work, "commit", "-q", "-a", "-m", "main")


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("merge", ("merge", "other")),
        ("cherry-pick", ("cherry-pick", "other")),
        ("cherry-pick", ("cherry-pick", "other~", "other")),
        ("rebase", ("rebase", "other")),
        ("rebase", ("rebase", "--apply", "other")),
        ("revert", ("revert", "--no-edit", "HEAD~")),
    ],
)
def test_in_the_middle_of_what_git_has_begun_nothing_is_committed_and_that_is_said(
    tmp_path: Path, name: str, begins: tuple[str, ...]
) -> None:
    work = repository(tmp_path)
    branches(work)
    if name == "revert":
        (work / "old.txt").write_text("main again\n")
        git(work, "commit", "-q", "-a", "-m", "main again")
    git(work, *begins, fails=True)
    assert refused(work).what.endswith(f"old.txt has a conflict of a {name}.")
    (work / "old.txt").write_text("settled\n")
    git(work, "add", "old.txt")
    if name == "rebase":
        assert commit(work, "old.txt").status == 0, "git takes a commit here"
        return
    error = refused(work)
    assert error.what == f"A {name} is not finished here."
    assert error.fix == "Finish it in a terminal, or give it up there."
    git(work, name, "--abort")
    (work / "old.txt").write_text("mine\n")
    assert commit(work, "old.txt").status == 0


def test_a_rebase_that_waits_for_commits_gets_them(tmp_path: Path) -> None:
    work = repository(tmp_path)
    branches(work)
    editor = "sed -i s/^pick/edit/"
    subprocess.run(
        ["git", "rebase", "-q", "-i", "HEAD~"], cwd=work, check=True, env={**os.environ, "GIT_SEQUENCE_EDITOR": editor}
    )
    (work / "old.txt").write_text("mine\n")
    assert commit(work, "old.txt").status == 0


def test_a_conflict_of_nothing_that_git_goes_on_with_names_none(tmp_path: Path) -> None:
    work = repository(tmp_path)
    (work / "old.txt").write_text("put away\n")
    git(work, "stash")
    (work / "old.txt").write_text("mine\n")
    git(work, "commit", "-q", "-a", "-m", "mine")
    git(work, "stash", "pop", fails=True)
    assert refused(work).what.endswith("old.txt has a conflict.")


def test_a_folder_in_which_git_does_not_run_says_why(tmp_path: Path) -> None:
    lonely = tmp_path / "lonely"
    lonely.mkdir()
    assert refused(lonely).what == "This folder is in no repository."
    work = repository(tmp_path)
    git(work, "config", "commit.gpgSign", "true")
    git(work, "config", "user.signingKey", "A")
    error = refused(work)
    assert error.what == "git does not run here: what the repository has could make it run a program."
    assert error.why == "It has the setting commit.gpgSign, the setting user.signingKey."
    git(work, "config", "--unset", "commit.gpgSign")
    git(work, "config", "--unset", "user.signingKey")
    inner = tmp_path / "inner"
    git(tmp_path, "clone", "-q", str(work.parent), str(inner))
    git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "inner")
    assert refused(work).why.startswith("It has settings of repositories in it, such as submodules")


def test_names_are_printed_as_they_are_and_nothing_in_them_moves_what_is_read(tmp_path: Path) -> None:
    work = repository(tmp_path)
    names = ["ein café 😀.txt", "שלום.txt", "odd\u202eman.txt"]
    for name in names:
        (work / name).write_text("b\n")
    hook(work, "#!/bin/sh\nprintf '\\033[31mred\\033[0m \\342\\200\\256over\\n50%%\\r100%%\\n'\n")
    made = commit(work, *(one.path for one in plan_commit(str(work), ()).files))
    assert made.status == 0
    assert all(name in made.output for name in names[:2])
    assert "\\303" not in made.output
    assert made.output.startswith("red \\u202eover\n100%\n")
    assert "odd\\u202eman.txt" in made.output
