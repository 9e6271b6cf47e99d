"""A repository's own settings are read before git runs in it."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.policy.views import ROOT, MemoryView, context
from treadle.app.security.file_view import DiskView
from treadle.policy.classify import classify_command
from treadle.policy.decision_context import MAX_NAMES, PolicyContext
from treadle.policy.findings import CommandClass, PathOp
from treadle.policy.path_check import Where, check_path
from treadle.policy.repository import (
    INNER_REPOSITORIES,
    UNREADABLE_SETTINGS,
    is_inert,
    runs_at_next_step,
    surprising_settings,
)
from treadle.protocol.inert_settings import setting_names
from treadle.protocol.permissions import Mode

_LOCAL = ("-c", "protocol.file.allow=always")
_PLAIN = """
[core]
\trepositoryformatversion = 0
\tfilemode = true ; comment
# a comment that ends in a backslash \\
[remote "origin"]
\turl = https://example.com/r.git
\tfetch = +refs/heads/*:refs/remotes/origin/*
[branch "main"]
\tremote = origin
"""


def _view(config: str, **more: str) -> MemoryView:
    git = f"{ROOT}/.git"
    folders = dict.fromkeys((git, f"{git}/objects", f"{git}/refs"))
    return MemoryView(files={**folders, f"{git}/HEAD": "ref: refs/heads/main\n", f"{git}/config": config, **more})


def _class(line: str, files: MemoryView, *, trusted: bool = False) -> CommandClass:
    """Judge a line where commands are confined, so that what only reads may run in a folder that is not trusted."""
    return classify_command(line, ROOT, context(files=files, trusted=trusted, confines=True)).command_class


def test_plain_settings_let_git_read() -> None:
    assert _class("git status", _view(_PLAIN)) is CommandClass.READ_ONLY


@pytest.mark.parametrize(
    "setting",
    ["[core]\nfsmonitor = ./x", "[core] fsmonitor = ./x", "[CORE]\nFSMonitor=./x", '[filter "x"]\nclean = ./x',
     "[diff]\nexternal=./x", '[diff "x"]\ntextconv=./x', "[core]\npager=./x", "[core]\nhooksPath=./x",
     "[include]\npath=../x", '[includeIf "gitdir:/"]\npath=x', "[alias]\nst=!x", "[core]\nsshCommand=x",
     "[gpg]\nprogram=x", "[core]\nworktree=/", "[core]\nquotepath=a\\\nfsmonitor=x", '[core]\n"odd', "fsmonitor = x",
     "[core]\neol = lf \\\n[color]\nfsmonitor = x", "[core]\neol = lf \\\r\n[color]\r\nfsmonitor = x",
     '[core]\neol = "x\u2028[color] #"\nfsmonitor = x', '[core]\neol = "x\x85[color] #"\nfsmonitor = x',
     '[core]\neol = "x\x0b[color] #"\nfsmonitor = x', '[core]\neol = "x\r[color] #"\nfsmonitor = x'],
)  # fmt: skip
def test_a_setting_that_could_run_something_asks(setting: str) -> None:
    files = _view(_PLAIN + setting)
    assert _class("git status", files) is CommandClass.NEEDS_CONFIRMATION
    assert _class("git status", files, trusted=True) is CommandClass.READ_ONLY


def test_the_settings_of_worktrees_count() -> None:
    evil = "[core]\nfsmonitor = ./x"
    assert surprising_settings(ROOT, _view(_PLAIN, **{f"{ROOT}/.git/config.worktree": evil})) == [UNREADABLE_SETTINGS]


def test_a_git_file_is_followed_to_the_common_directory() -> None:
    own, folders = "/main/.git/worktrees/a", ("/main/.git/worktrees/a", "/main/.git/objects", "/main/.git/refs")
    files = MemoryView(
        files={
            **dict.fromkeys(folders),
            f"{ROOT}/.git": f"gitdir: {own}\n",
            f"{own}/commondir": "../..\n",
            f"{own}/HEAD": "ref: refs/heads/a\n",
            "/main/.git/config": "[core]\nfsmonitor = x",
        }
    )
    assert surprising_settings(f"{ROOT}/sub", files) == ["the setting core.fsmonitor"]


def test_settings_that_cannot_be_read_ask() -> None:
    unreadable = dict(_view(_PLAIN).files)
    del unreadable[f"{ROOT}/.git/HEAD"]
    assert surprising_settings(ROOT, MemoryView(unreadable)) == [UNREADABLE_SETTINGS]


@pytest.mark.parametrize("form", ["usual", "bare"])
def test_settings_beyond_what_is_read_are_not_taken_for_none(tmp_path: Path, form: str) -> None:
    """Git reads all of them."""
    folder = tmp_path / "w"
    _git(tmp_path, "init", "-q", *(["--bare"] if form == "bare" else []), str(folder))
    data = folder if form == "bare" else folder / ".git"
    assert (surprising_settings(str(folder), DiskView()), is_inert(str(data), DiskView())) == ([], True)
    (data / "config").write_text(f"{(data / 'config').read_text()}{'# more' * 20_000}\n[core]\n\tfsmonitor = ./x\n")
    assert (surprising_settings(str(folder), DiskView()), is_inert(str(data), DiskView())) == (
        [UNREADABLE_SETTINGS],
        False,
    )


class _Closed(MemoryView):
    """Files of which one folder cannot be listed, though git goes into it, and of others as many as are listed."""

    def __init__(self, files: Mapping[str, str | None], *, folder: str = "") -> None:
        super().__init__(files)
        self.folder = folder

    def names(self, path: str) -> tuple[str, ...] | None:
        return None if path.rstrip("/") == self.folder else (super().names(path) or ())[:MAX_NAMES]


@pytest.mark.parametrize("name", [".git", ".git/hooks"])
def test_a_folder_that_cannot_be_listed_is_not_empty(name: str) -> None:
    closed = _Closed({**_view(_PLAIN).files, f"{ROOT}/.git/hooks": None})
    assert surprising_settings(ROOT, closed) == []
    closed.folder = f"{ROOT}/{name}"
    assert surprising_settings(ROOT, closed) == [UNREADABLE_SETTINGS]
    assert not is_inert(f"{ROOT}/.git", closed)


@pytest.mark.parametrize(("beside", "where"), [(("objects", "refs"), Where.PROTECTED), (("objects",), Where.INSIDE)])
@pytest.mark.parametrize("closed", [True, False])
def test_what_a_folder_becomes_for_git_is_known_whether_or_not_all_of_it_is_listed(
    beside: tuple[str, ...], where: Where, closed: bool
) -> None:
    inside = {f"{ROOT}/sub/{name}": None for name in (*beside, *map(str, range(MAX_NAMES)))}
    files = _Closed({f"{ROOT}/sub": None, **inside}, folder=f"{ROOT}/sub" if closed else "")
    assert check_path("sub/HEAD", PathOp.WRITE, ROOT, context(files=files)).where is where


def test_hooks_beyond_those_that_are_listed_are_not_taken_for_none() -> None:
    samples = {f"{ROOT}/.git/hooks/{number}.sample": "" for number in range(MAX_NAMES)}
    files = _Closed({**_view(_PLAIN).files, f"{ROOT}/.git/hooks": None, **samples, f"{ROOT}/.git/hooks/x": "rm"})
    assert surprising_settings(ROOT, files) == [UNREADABLE_SETTINGS]
    assert not is_inert(f"{ROOT}/.git", files)


def test_steps_of_a_rebase_that_cannot_be_read_may_run_programs() -> None:
    files = {**_view(_PLAIN).files, f"{ROOT}/.git/rebase-merge": None}
    todo = f"{ROOT}/.git/rebase-merge/git-rebase-todo"
    found = [runs_at_next_step(ROOT, MemoryView({**files, **more})) for more in ({todo: "pick 1"}, {todo: "x ls"}, {})]
    assert (runs_at_next_step(ROOT, _view(_PLAIN)), found) == (False, [False, True, True])


def test_a_glob_in_a_folder_that_cannot_be_listed_stands_for_files_that_are_not_known() -> None:
    files = _Closed({f"{ROOT}/sub": None, f"{ROOT}/other/a": ""})
    found = {}
    for files.folder in ("", f"{ROOT}/sub"):
        judged = classify_command("touch */a", ROOT, context(files=files))
        found[files.folder] = "wide-glob" in {one.rule for part in judged.parts for one in part.findings}
    assert list(found.values()) == [False, True]


def test_names_of_settings_carry_their_section() -> None:
    assert setting_names(_PLAIN) == [
        "core.repositoryformatversion",
        "core.filemode",
        "remote.origin.url",
        "remote.origin.fetch",
        "branch.main.remote",
    ]


def _git(folder: Path, *words: str) -> str:
    command = ("git", "-c", "user.name=A", "-c", "user.email=a@b", "-C", str(folder), *words)
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _make(folder: Path, *init: str) -> Path:
    folder.mkdir(parents=True)
    _git(folder, "init", "-q", *init)
    (folder / "a").write_text("a")
    _git(folder, "add", "a")
    _git(folder, "commit", "-q", "-m", "one")
    return folder


def _link(outer: Path, inner: Path) -> None:
    entry = f"160000,{_git(inner, 'rev-parse', 'HEAD')},{inner.relative_to(outer)}"
    _git(outer, "update-index", "--add", "--cacheinfo", entry)


@pytest.mark.parametrize("init", [(), ("--object-format=sha256",)], ids=["sha1", "sha256"])
@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_a_repository_in_the_index_asks(tmp_path: Path, init: tuple[str, ...], version: str) -> None:
    outer = _make(tmp_path / "outer", *init)
    for number in range(9):
        (outer / f"file{'x' * number}").write_text("")
    _git(outer, "add", "-A")
    _git(outer, "update-index", "--index-version", version)
    assert surprising_settings(str(outer), DiskView()) == []
    _link(outer, _make(outer / "deps" / "inn\u00e9r", *init))
    for folder in (outer, outer / "deps"):
        assert surprising_settings(str(folder), DiskView()) == [INNER_REPOSITORIES]


def test_a_file_whose_size_looks_like_the_mark_of_a_repository_asks_too(tmp_path: Path) -> None:
    outer = _make(tmp_path / "outer")
    (outer / "a").write_bytes(b"a" * 0xE000)
    _git(outer, "add", "a")
    assert b"\0\0\xe0\0" in (outer / ".git" / "index").read_bytes()
    assert surprising_settings(str(outer), DiskView()) == [INNER_REPOSITORIES]


@pytest.mark.parametrize("checked_out", [True, False])
def test_git_asks_where_there_are_submodules(tmp_path: Path, *, checked_out: bool) -> None:
    outer, files = _make(tmp_path / "outer"), DiskView()
    _git(outer, *_LOCAL, "submodule", "add", "-q", str(_make(tmp_path / "inner")), "libs/inner")
    if not checked_out:
        shutil.rmtree(outer / "libs")
        _git(outer, "rm", "-q", "--cached", "libs/inner")
    assert surprising_settings(str(outer), files) == [INNER_REPOSITORIES]
    assert not checked_out or surprising_settings(str(outer / "libs" / "inner"), files) == ["the setting core.worktree"]
    for trusted, expected in ((True, CommandClass.READ_ONLY), (False, CommandClass.NEEDS_CONFIRMATION)):
        here = PolicyContext(mode=Mode.ASK, roots=(str(outer),), files=files, trusted=trusted, confines=True)
        lines = ("git log --oneline", "git submodule status", "git status")
        assert {classify_command(line, str(outer), here).command_class for line in lines} == {expected}


def test_a_repository_that_is_in_no_index_does_not_count(tmp_path: Path) -> None:
    outer = _make(tmp_path / "outer")
    _git(_make(outer / "inner"), "config", "filter.x.clean", "./x")
    assert surprising_settings(str(outer), DiskView()) == []


def test_an_index_in_parts_is_searched_whole(tmp_path: Path) -> None:
    outer = _make(tmp_path / "outer")
    _link(outer, _make(outer / "inner"))
    _git(outer, "update-index", "--split-index")
    assert b"inner" not in (outer / ".git" / "index").read_bytes()
    assert surprising_settings(str(outer), DiskView()) == [UNREADABLE_SETTINGS]


def test_an_index_that_cannot_be_read_asks(tmp_path: Path) -> None:
    outer = _make(tmp_path / "outer")
    (outer / ".git" / "index").unlink()
    (outer / ".git" / "index").mkdir()
    assert surprising_settings(str(outer), DiskView()) == [UNREADABLE_SETTINGS]


def test_git_looks_further_up_where_a_repository_is_not_whole(tmp_path: Path) -> None:
    outer = _make(tmp_path / "outer")
    _git(outer, "config", "core.fsmonitor", "./x")
    (outer / "sub" / ".git").mkdir(parents=True)
    assert _git(outer / "sub", "rev-parse", "--git-dir") == str(outer / ".git")
    assert surprising_settings(str(outer / "sub"), DiskView()) == [UNREADABLE_SETTINGS]
    whole = _make(outer / "whole")
    assert surprising_settings(str(whole), DiskView()) == []


@pytest.mark.parametrize("text", ["gitdir: ../evil" + "\n" * 70_000, "gitdir: ../evil\0", "gitdir: \udcff"])
def test_a_git_file_that_cannot_be_followed_asks(tmp_path: Path, text: str) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / ".git").write_bytes(text.encode(errors="surrogateescape"))
    assert surprising_settings(str(tmp_path / "ws"), DiskView()) == [UNREADABLE_SETTINGS]


def test_a_git_file_is_followed_letter_by_letter(tmp_path: Path) -> None:
    odd = _make(tmp_path / "ws" / " odd ")
    _git(odd, "config", "core.fsmonitor", "./x")
    (tmp_path / "ws" / ".git").write_text("gitdir:  odd /.git\r\n")
    assert surprising_settings(str(tmp_path / "ws"), DiskView()) == ["the setting core.fsmonitor"]


def test_a_bare_repository_may_share_its_settings(tmp_path: Path) -> None:
    shared = _make(tmp_path / "shared")
    _git(shared, "config", "core.fsmonitor", "./x")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "HEAD").write_text("ref: refs/heads/main\n")
    (bare / "commondir").write_text("../shared/.git\n")
    assert surprising_settings(str(bare), DiskView()) == ["the setting core.fsmonitor"]


def test_git_does_not_compare_what_is_in_other_repositories_unasked() -> None:
    assert _class("git diff --stat", _view(_PLAIN)) is CommandClass.READ_ONLY
    assert _class("git log -p --submodule=diff", _view(_PLAIN)) is CommandClass.NEEDS_CONFIRMATION


_INERT = {
    "new": "true",
    "with commits": "git commit -q --allow-empty -m x && git switch -qc other",
    "with a name and a remote": "git config user.name x && git remote add origin https://example.org/x.git",
    "with a file that is staged": "echo x > a && git add a",
}
_ACTS = {
    "a setting": "git config core.fsmonitor ./x",
    "settings elsewhere": "git config include.path ../x",
    "settings that cannot be read": "rm .git/config && mkdir .git/config",
    "a hook": "echo x > .git/hooks/pre-commit",
    "hooks elsewhere": "rm -r .git/hooks && ln -s ../x .git/hooks",
    "a link": "mv .git x && ln -s x .git",
    "a file": "mv .git x && echo gitdir: x > .git",
    "another one's settings": "git init -q x && echo ../x/.git > .git/commondir",
    "settings by a link": "mv .git/config x && ln -s ../x .git/config",
    "settings with a second name": "ln .git/config x",
    "settings of a worktree": "git config extensions.worktreeConfig true && ln -s ../x .git/config.worktree",
    "no whole one": "rm -r .git/objects",
    "another repository in it": "git init -q sub && git -C sub commit -q --allow-empty -m x && git add sub",
}


@pytest.mark.parametrize("name", [*_INERT, *_ACTS])
def test_a_new_repository_is_inert_where_git_runs_nothing_in_it(tmp_path: Path, name: str) -> None:
    folder = _make(tmp_path / "ws")
    line = f"git config --global user.name x; git config --global user.email x; {(_INERT | _ACTS)[name]}"
    home = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    subprocess.run(["sh", "-ec", line], cwd=folder, check=True, capture_output=True, env=home)
    assert is_inert(f"{folder}/.git", DiskView()) is (name in _INERT)


def _bare(folder: Path) -> None:
    """Leave a repository whole, without the name `.git`."""
    _git(folder, "config", "core.worktree", str(folder))
    _git(folder, "config", "core.bare", "false")
    for part in (folder / ".git").iterdir():
        part.rename(folder / part.name)
    (folder / ".git").rmdir()


def _elsewhere(folder: Path) -> None:
    (folder / ".git").rename(folder.parent / "data")
    (folder / ".git").write_text("gitdir: ../data\n")


def _linked(folder: Path) -> None:
    (folder / ".git").rename(folder.parent / "data")
    (folder / ".git").symlink_to("../data")


def _worktree(folder: Path) -> None:
    main = folder.parent / "main"
    folder.rename(main)
    _git(main, "worktree", "add", "-q", str(folder))


_FORMS = {"usual": lambda _: None, "bare": _bare, "a file": _elsewhere, "a link": _linked, "a worktree": _worktree}
_WAYS = {
    "cd": "cd w && git {}",
    "-C": "git -C w {}",
    "-C twice": "git -C . -C w {}",
    "below": "cd w/deep; git {}",
    "a link to it": "cd to_w && git {}",
    "a link below it": "cd to_deep && git {}",
    "a shell": "sh -c 'cd w; git {}'",
}


def _below(tmp_path: Path, form: str, *settings: str) -> Path:
    """Make a folder without anything that acts, and a repository in it."""
    par = tmp_path / "par"
    work = _make(par / "w")
    (work / "deep").mkdir()
    (work / "deep" / "b").touch()
    _git(work, "add", "deep")
    _git(work, "commit", "-qm", "two")
    _FORMS[form](work)
    if settings:
        _git(work, "config", *settings)
    (par / "to_w").symlink_to("w")
    (par / "to_deep").symlink_to("w/deep")
    return par


def _asks(line: str, folder: Path, mode: Mode, *, never_asked: bool = True) -> bool:
    """Whether the line asks because of what git would run."""
    here = PolicyContext(
        mode=mode, roots=(str(folder),), files=DiskView(), never_asked=never_asked, confines=mode is not Mode.FULL
    )
    found = classify_command(line, str(folder), here).every
    return any(one.rule == "untrusted" and one.always_asks for one in found)


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.AUTO, Mode.FULL])
@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("form", _FORMS)
def test_a_repository_below_a_folder_that_nobody_was_asked_about_is_not_trusted(
    tmp_path: Path, form: str, way: str, mode: Mode
) -> None:
    par = _below(tmp_path, form, "filter.x.clean", "./x")
    for call in ("status", "commit -qam x"):
        assert _asks(_WAYS[way].format(call), par, mode)
        assert not _asks(_WAYS[way].format(call), par, mode, never_asked=False)
    assert not _asks("git status", par, mode)


@pytest.mark.parametrize("way", _WAYS)
@pytest.mark.parametrize("form", ["usual", "a file", "a worktree"])
def test_an_inert_repository_below_a_folder_asks_no_more_than_its_commands(tmp_path: Path, form: str, way: str) -> None:
    par = _below(tmp_path, form)
    assert not any(_asks(_WAYS[way].format("status"), par, mode) for mode in (Mode.AUTO, Mode.FULL))


def test_a_repository_of_the_folder_itself_came_after_it_was_opened(tmp_path: Path) -> None:
    work = _below(tmp_path, "usual", "core.fsmonitor", "./x") / "w"
    assert not any(_asks("git status", folder, Mode.FULL) for folder in (work, work / "deep"))
    assert _asks(f"cd {work} && git status", _make(tmp_path / "other"), Mode.FULL)


def test_an_unknown_place_asks_only_where_nothing_confines_it(tmp_path: Path) -> None:
    par = _below(tmp_path, "usual")
    for line in ("cd $X; git status", "find . -name b -execdir git status \\;", "ls | xargs -I{} git -C {} status"):
        assert (_asks(line, par, Mode.FULL), _asks(line, par, Mode.AUTO)) == (True, False)


def test_a_bare_repository_is_read_like_another_one(tmp_path: Path) -> None:
    work = _below(tmp_path, "bare", "core.fsmonitor", "./x") / "w"
    expected = ["the setting core.worktree", "the setting core.fsmonitor"]
    assert sorted(surprising_settings(str(work / "deep"), DiskView())) == sorted(expected)
    (tmp_path / "HEAD").write_text("no repository has this alone")
    assert surprising_settings(str(tmp_path), DiskView()) == []


_MAKES_ONE = {
    "HEAD": ("objects/", "refs/", "config"),
    "config": ("HEAD", "objects/", "refs/"),
    "objects/aa/x": ("HEAD", "refs/"),
    "refs/heads/main": ("HEAD", "objects/"),
    "commondir": ("HEAD",),
    "hooks/x": ("HEAD", "objects/", "refs/"),
}


@pytest.mark.parametrize("name", _MAKES_ONE)
@pytest.mark.parametrize("whole", [True, False])
def test_a_file_that_makes_a_folder_a_repository_is_protected(tmp_path: Path, name: str, *, whole: bool) -> None:
    root = tmp_path / "ws"
    (root / "sub").mkdir(parents=True)
    for other in _MAKES_ONE[name][not whole :]:
        (root / "sub" / other).mkdir() if other.endswith("/") else (root / "sub" / other).write_text("")
    here = PolicyContext(mode=Mode.AUTO, roots=(str(root),), files=DiskView())
    checked = check_path(f"sub/{name}", PathOp.WRITE, str(root), here)
    assert (checked.where is Where.PROTECTED) is whole
    assert check_path(f"sub/{name}", PathOp.READ, str(root), here).where is Where.INSIDE
