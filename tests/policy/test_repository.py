"""A repository's own settings are read before git runs in it."""

import pytest

from tests.policy.views import ROOT, MemoryView, context
from treadle.policy.classify import classify_command
from treadle.policy.findings import CommandClass
from treadle.policy.repository import setting_names, surprising_settings

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
    files: dict[str, str | None] = {f"{ROOT}/.git": None, f"{ROOT}/.git/config": config}
    return MemoryView(files={**files, **more})


def _class(line: str, files: MemoryView) -> CommandClass:
    return classify_command(line, ROOT, context(files=files)).command_class


def test_plain_settings_let_git_read() -> None:
    assert _class("git status", _view(_PLAIN)) is CommandClass.READ_ONLY


@pytest.mark.parametrize(
    "setting",
    ["[core]\nfsmonitor = ./x", "[core] fsmonitor = ./x", "[CORE]\nFSMonitor=./x", '[filter "x"]\nclean = ./x',
     "[diff]\nexternal=./x", '[diff "x"]\ntextconv=./x', "[core]\npager=./x", "[core]\nhooksPath=./x",
     "[include]\npath=../x", '[includeIf "gitdir:/"]\npath=x', "[alias]\nst=!x", "[core]\nsshCommand=x",
     "[gpg]\nprogram=x", "[core]\nworktree=/", "[core]\nquotepath=a\\\nfsmonitor=x", '[core]\n"odd', "fsmonitor = x"],
)  # fmt: skip
def test_a_setting_that_could_run_something_asks(setting: str) -> None:
    assert _class("git status", _view(_PLAIN + setting)) is CommandClass.NEEDS_CONFIRMATION


def test_the_settings_of_worktrees_and_submodules_count() -> None:
    evil = "[core]\nfsmonitor = ./x"
    assert surprising_settings(ROOT, _view(_PLAIN, **{f"{ROOT}/.git/config.worktree": evil})) == ["core.fsmonitor"]
    assert surprising_settings(ROOT, _view(_PLAIN, **{f"{ROOT}/.git/modules/a/config": evil})) == ["core.fsmonitor"]


def test_a_git_file_is_followed_to_the_common_directory() -> None:
    files = MemoryView(
        files={
            f"{ROOT}/.git": "gitdir: /main/.git/worktrees/a\n",
            "/main/.git/worktrees/a/commondir": "../..\n",
            "/main/.git/config": "[core]\nfsmonitor = x",
        }
    )
    assert surprising_settings(f"{ROOT}/sub", files) == ["core.fsmonitor"]


def test_settings_that_cannot_be_read_ask() -> None:
    files = MemoryView(files={f"{ROOT}/.git": None, f"{ROOT}/.git/config": None})
    assert surprising_settings(ROOT, files) == ["? (its settings cannot be read)"]


def test_names_of_settings_carry_their_section() -> None:
    assert setting_names(_PLAIN) == [
        "core.repositoryformatversion",
        "core.filemode",
        "remote.origin.url",
        "remote.origin.fetch",
        "branch.main.remote",
    ]
