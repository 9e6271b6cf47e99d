"""A git command that would write a control file is found before it runs; every other one is not held up."""

import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import bubblewrap

from treadle.protocol.errors import ToolError
from treadle.protocol.protected_names import control_name, secret_name
from treadle.workspace.commands.wrapping import Wrapping
from treadle.workspace.sandbox import (
    GitReader,
    Installer,
    control_files_changed_by,
    is_known_only_as_it_runs,
    reading_git,
    tools_of,
)

SETTINGS = ("-c", "user.name=A", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give branches: `rules` changes AGENTS.md, `plain` does not, `secret` has a key; a stash of each."""
    root = tmp_path_factory.mktemp("repository")

    def git(*words: str) -> None:
        subprocess.run(("git", *SETTINGS, *words), cwd=root, check=True, capture_output=True)

    def commit(branch: str, start: str, **files: str) -> None:
        git("checkout", "-q", "-b", branch, *([start] if start else []))
        for name, text in files.items():
            path = root / {"agents": "AGENTS.md", "flow": ".github/workflows/x.yml", "key": "a.pem"}.get(name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git("add", "-A")
        git("commit", "-qm", branch)

    git("init", "-q", "-b", "unused")
    commit("main", "", agents="one", code="one")
    commit("rules", "main", agents="two", flow="on: push")
    commit("plain", "main", code="two")
    commit("secret", "main", key="key")
    git("checkout", "-q", "main")
    (root / "AGENTS.md").write_text("stashed")
    git("stash")
    (root / "code").write_text("stashed")
    git("stash")
    git("update-ref", "refs/remotes/origin/theirs", "rules")
    git("update-ref", "refs/remotes/origin/main", "rules")
    git("config", "remote.origin.url", "/nowhere")
    git("config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*")
    git("branch", "-u", "origin/main")
    git("checkout", "-q", "rules")
    git("checkout", "-q", "main")
    return root


RULES = (".github/workflows/x.yml", "AGENTS.md")
LINES = {
    "git switch rules": RULES,
    "git checkout rules": RULES,
    "git checkout -q --detach rules": RULES,
    "git checkout theirs": RULES,
    "git switch theirs": RULES,
    "git switch -c new rules": RULES,
    "git switch -qc new rules": RULES,
    "git switch --cr new rules": RULES,
    "git switch --force-create=new rules": RULES,
    "git checkout -qb new rules": RULES,
    "git checkout --orph new rules": RULES,
    "git checkout -qb new": (),
    "git checkout -": RULES,
    "git checkout - -- AGENTS.md": RULES,
    "git merge -": RULES,
    "git cherry-pick -": RULES,
    "git rebase -": RULES,
    "git checkout rules -- .": RULES,
    "git merge rules": RULES,
    "git merge -m words rules": RULES,
    "git merge -qm --continue rules": RULES,
    "git merge -s ort --message --abort rules": RULES,
    "git merge -m rules plain": (),
    "git checkout -m rules": RULES,
    "git switch --conflict diff3 rules": RULES,
    "git cherry-pick -x rules": RULES,
    "git cherry-pick -nx -X theirs rules": RULES,
    "git revert -s rules": RULES,
    "git merge": RULES,
    "git pull": RULES,
    "git rebase rules": RULES,
    "git rebase --onto rules main": RULES,
    "git rebase --onto=rules main": RULES,
    "git rebase --o rules main": RULES,
    "git rebase --o=rules main": RULES,
    "git rebase --onto main rules plain": (),
    "git rebase --empty keep rules": RULES,
    "git rebase -C 3 rules": RULES,
    "git rebase": RULES,
    "git reset --hard rules": RULES,
    "git cherry-pick rules": RULES,
    "git stash pop 1": ("AGENTS.md",),
    "git stash apply stash@{1}": ("AGENTS.md",),
    "git switch secret": ("a.pem",),
    "git stash pop": (),
    "git switch plain": (),
    "git switch -c new": (),
    "git checkout -b new": (),
    "git checkout code": (),
    "git checkout main": (),
    "git merge plain": (),
    "git reset rules": RULES,
    "git reset --soft rules": RULES,
    "git reset -q rules": RULES,
    "git reset rules --": RULES,
    "git reset rules -- code": (),
    "git reset --har rules": RULES,
    "git --namespace x reset rules": RULES,
    "git --attr-source main -C . reset rules": RULES,
    "git --git-dir .git merge rules": RULES,
    "git --git-dir=.git merge rules": RULES,
    "git -c user.name=A switch rules": RULES,
    "git -C . merge rules": RULES,
    "git pull . rules": RULES,
    "git pull . +rules:new": RULES,
    "git pull --depth 1 . rules": RULES,
    "git pull . plain": (),
    "git stash branch new 1": ("AGENTS.md",),
    "git stash branch new": (),
    "git reset plain": (),
    "git reset": (),
    "git commit -m words": (),
    "git reset --hard": (),
    "git log rules": (),
    "git diff rules": (),
    "git switch nothing": (),
    "git": (),
    "ls rules": (),
}


def is_held(path: str) -> bool:
    return control_name(path) is not None or secret_name(path) is not None


@pytest.mark.parametrize("line", LINES)
def test_a_line_that_brings_a_control_file_is_known(line: str, repository: Path, tmp_path: Path) -> None:
    bubblewrap()
    ask = GitReader(str(repository), str(tmp_path / "private"))
    assert control_files_changed_by(line.split(), ask, is_held=is_held) == LINES[line]


WAYS_INTO_THE_INDEX = {
    "an object": "git update-index --add --cacheinfo 100644,{object},{name}",
    "input": "printf '100644 {object}\\t{name}\\n' | git update-index --index-info",
    "a tree": "git read-tree rules",
    "a patch": "git diff main rules | git apply --cached",
    "a file that is gone": "mkdir -p .github/workflows; echo x > {name}; git add {name}; rm {name}",
    "a file that was another": "mkdir -p .github/workflows; echo x > {name}; git add {name}; echo y > {name}",
    "a source": "git restore --staged --source=rules {name}",
    "paths of a commit": "git reset -q rules -- {name}",
}
COMMITS = ["git commit -m x", "git -c user.name=A commit -qm x", "git commit --amend", "git rebase --cont", "git am -r"]


@pytest.mark.parametrize("commits", COMMITS)
@pytest.mark.parametrize("way", WAYS_INTO_THE_INDEX.values(), ids=WAYS_INTO_THE_INDEX)
def test_what_is_committed_under_a_held_name_is_the_file_of_that_name(
    way: str, commits: str, repository: Path, tmp_path: Path
) -> None:
    """However it came there: to look at the commands that fill the index is to know all of them."""
    bubblewrap()
    name = ".github/workflows/x.yml"
    shutil.copytree(repository, copy := tmp_path / "copy", symlinks=True)
    ask = GitReader(str(copy), str(tmp_path / "private"))
    found = partial(control_files_changed_by, commits.split(), ask, is_held=is_held)

    def shell(line: str) -> None:
        subprocess.run(("sh", "-ec", line), cwd=copy, check=True, capture_output=True)

    assert found() == ()
    shell(way.format(object=hashed(copy), name=name))
    assert name in found()
    shell(f"mkdir -p .github/workflows; git checkout-index -f {name} AGENTS.md")
    assert found() == ()


def hashed(folder: Path) -> str:
    return subprocess.check_output(("git", "rev-parse", "rules:AGENTS.md"), cwd=folder, text=True).strip()


def test_a_first_commit_and_a_folder_without_a_repository_are_looked_at(tmp_path: Path) -> None:
    bubblewrap()
    ask = GitReader(str(folder := tmp_path / "new"), str(tmp_path / "private"))
    folder.mkdir()
    found = partial(control_files_changed_by, ("git", "commit", "-m", "x"), ask, is_held=is_held)
    assert found() == ()
    (folder / "AGENTS.md").write_text("rules")
    for words in (("init",), ("add", "AGENTS.md")):
        subprocess.run(("git", *words), cwd=folder, check=True, capture_output=True)
    assert found() == ()
    (folder / "AGENTS.md").unlink()
    assert found() == ("AGENTS.md",)


def test_to_go_back_in_the_history_brings_nothing_new(repository: Path, tmp_path: Path) -> None:
    bubblewrap()
    shutil.copytree(repository, copy := tmp_path / "copy", symlinks=True)
    subprocess.run(("git", "checkout", "-q", "rules"), cwd=copy, check=True)
    ask = GitReader(str(copy), str(tmp_path / "private"))
    for line in ("git reset main", "git reset --soft HEAD~1", "git reset HEAD"):
        assert control_files_changed_by(line.split(), ask, is_held=is_held) == ()
    subprocess.run(("git", "reset", "-q", "--soft", "HEAD~1"), cwd=copy, check=True)
    for line in ("git reset ORIG_HEAD", "git reset --soft rules"):  # on the disk it is as it is there
        assert control_files_changed_by(line.split(), ask, is_held=is_held) == ()


@pytest.mark.parametrize(
    ("line", "looked_at"),
    [
        ("git update-index --index-info < x; git commit -m x", True),
        ("git apply --cached p && git commit -m x", True),
        ("git -C . read-tree rules && git commit -m x", True),
        ("git reset -q x && git log", True),
        ("git add -A && git commit -m x", False),
        ("git commit -m x; git reset HEAD~1", True),  # as in a loop
        ("git tag x y; git merge x", True),
        ("git fetch . y:x && git rebase x", True),
        ("git merge x; git -c a=b branch x y", True),
        ("git stash && git stash pop", True),
        ("git show x && git merge x", False),
        ("git checkout -b x && git add -A && git commit -m x && git push", False),
        ("git tag x; git tag y", False),
        ("git merge \0", True),
        ("git rebase --onto=\0 main", True),
        ("git commit -m \0 && git add \0", False),
        ("git update-index --refresh", False),
        ("git log; ls", False),
    ],
)
def test_a_line_that_is_not_known_as_a_whole_is_known(line: str, looked_at: bool) -> None:
    commands = [part.split() for part in re.split(r"&&|;", line)]
    assert is_known_only_as_it_runs(commands) is looked_at


def test_a_history_without_a_common_commit_is_compared_as_a_whole(repository: Path, tmp_path: Path) -> None:
    bubblewrap()
    words = ("commit-tree", "-m", "apart", "rules^{tree}")
    apart = subprocess.run(("git", *SETTINGS, *words), cwd=repository, check=True, capture_output=True, text=True)
    ask = GitReader(str(repository), str(tmp_path / "private"))
    line = f"git merge --allow-unrelated-histories {apart.stdout.strip()}"
    assert control_files_changed_by(line.split(), ask, is_held=is_held) == RULES


def test_a_commit_that_is_known_only_when_the_line_runs_is_not_taken_for_none(tmp_path: Path) -> None:
    asked: list[object] = []
    for line in ("git merge \0", "git reset --soft HEAD~\0", "git switch \1", "git rebase --onto=\0 main"):
        with pytest.raises(ToolError, match="Name the commit"):
            control_files_changed_by(line.split(" "), lambda *words: asked.append(words), is_held=is_held)
    assert control_files_changed_by(["git", "checkout", "-b", "fix-\0"], lambda *_: None, is_held=is_held) == ()


@pytest.mark.parametrize("line", ["git switch rules", "git merge rules", "git reset --hard rules"])
def test_a_line_of_which_git_cannot_tell_what_it_changes_does_not_run(line: str) -> None:
    def ask(*words: str) -> bytes | None:
        return b"1" * 40 if words[0] == "rev-parse" else None

    with pytest.raises(ToolError, match="did not say which files rules would change"):
        control_files_changed_by(line.split(), ask, is_held=is_held)


def _injected(target: Path) -> list[str]:
    """Lines in which a word that git would take for a revision is one of its options."""
    words = [f"--output={target}", f"-O{target}", f"--ext-diff={target}", "--no-index", f"--exec=touch {target}", "-"]
    words += [f"refs/heads/../../{target}", f"^--output={target}", f"HEAD --output={target}", "--upload-pack=touch"]
    shapes = """
        rebase --onto {} HEAD|rebase {} HEAD|rebase HEAD {}|merge {}|pull {}|switch {}|switch -c new {}|checkout {}
        checkout -b new {}|checkout {} -- code|reset --hard {}|reset --merge {}|cherry-pick {}|cherry-pick HEAD..{}
        revert {}|revert {}..HEAD|stash pop {}|stash apply {}|switch -- {}|merge -m {} {}|rebase --onto HEAD {}
    """
    return [
        shape.strip().replace("{}", word)
        for shape in shapes.replace("\n", "|").split("|")
        if shape.strip()
        for word in words
    ]


def test_no_word_of_a_line_is_an_option_of_the_git_that_looks(repository: Path, tmp_path: Path) -> None:
    bubblewrap()
    target = tmp_path / "target"
    target.write_text("of the user")
    reader = GitReader(str(repository), str(tmp_path / "private"))
    asked: list[tuple[str, ...]] = []

    def ask(*words: str) -> bytes | None:
        asked.append(words)
        return reader(*words)

    lines = [*_injected(target)[::3], *_injected(repository / "code")[::7]]
    for line in lines:
        control_files_changed_by(["git", *line.split(" ")], ask, is_held=is_held)
    assert target.read_text() == "of the user"
    assert (repository / "code").read_text() == "one"
    own = {"--verify", "--quiet", "--name-only", "--no-renames", "--no-ext-diff", "-z", "--", "--format=%(refname)"}
    for words in asked:
        before, _, behind = " ".join(words).partition("--end-of-options")
        options = {word for word in before.split() if word.startswith("-")}
        assert options <= own, words
        assert not behind.strip().startswith("-"), words
    assert len(asked) > len(lines), "most lines are looked into"


def test_the_git_that_looks_can_change_nothing(repository: Path, tmp_path: Path) -> None:
    bubblewrap()
    target = tmp_path / "target"
    target.write_text("of the user")
    reader = GitReader(str(repository), str(tmp_path / "private"))
    assert reader("diff", f"--output={target}", "main", "rules") is None
    assert reader("diff", f"--output={repository}/code", "main", "rules") is None
    assert reader("branch", "made") is None
    assert target.read_text() == "of the user"
    assert (repository / "code").read_text() == "one"


@pytest.mark.parametrize(
    ("line", "tools"),
    [
        ("pip install x", {Installer.PYTHON}),
        (".venv/bin/pip3.11 install x", {Installer.PYTHON}),
        ("python -m pip install x", {Installer.PYTHON}),
        ("python3 -m venv .venv", {Installer.PYTHON}),
        ("uv --quiet sync", {Installer.PYTHON}),
        ("npm ci", {Installer.NODE}),
        ("yarn", {Installer.NODE}),
        ("pnpm add x ; uv pip install y", {Installer.NODE, Installer.PYTHON}),
        ("cd web ; npm install", {Installer.NODE}),
        ("npm test", set()),
        ("npm run build", set()),
        ("uv run evil", set()),
        ("npm install ; ./evil", set()),
        ("node_modules/.bin/npm install", set()),
        ("python -m evil", set()),
        ("make", set()),
        ("", set()),
    ],
)
def test_only_what_installs_owns_installed_programs(line: str, tools: set[Installer]) -> None:
    assert tools_of([part.split() for part in line.split(";")]) == tools


@pytest.mark.parametrize(
    "failure",
    [
        "echo 'bwrap: Creating new namespace failed: Resource temporarily unavailable' >&2; exit 1",
        "kill -9 $$",
        "exit 126",
        "echo 'fatal: Out of memory, malloc failed (tried to allocate 32 bytes)' >&2; exit 128",
        "exit 128",
    ],
)
def test_a_git_that_failed_or_was_not_started_has_not_said_that_nothing_changes(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    failing = Wrapping(inner=("sh", "-c", failure))
    monkeypatch.setattr(reading_git, "prepare", lambda *_: failing)
    ask = GitReader(str(repository), str(tmp_path / "private"))
    with pytest.raises(ToolError, match="Git did not say"):
        control_files_changed_by(["git", "merge", "rules"], ask, is_held=is_held)
