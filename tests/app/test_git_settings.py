"""Settings of git that commands write: who commits and what a branch follows, by Treadle, and nothing else."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.app.rehearsal import Rehearsal, rehearse, run
from tests.workspace.sandbox.running import bubblewrap
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.tools import Outcome
from treadle.workspace.namespaces.git_settings import GitSettings, SettingWrite, setting_write


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with another one inside that it pushes to, made once for all tests."""
    work = tmp_path_factory.mktemp("prepared") / "work"
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    git(work, "init", "-q", "-b", "main", "--bare", str(work / "there.git"))
    (work / ".gitignore").write_text("there.git\n")
    git(work, "config", "user.name", "A")
    git(work, "config", "user.email", "a@b")
    git(work, "remote", "add", "origin", "./there.git")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "first")
    git(work, "push", "-q", "origin", "main", "main:other")
    git(work, "fetch", "-q")
    git(work, "branch", "topic")
    return work


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(prepared, tmp_path / "work", symlinks=True))


def listed(folder: Path) -> dict[str, str]:
    lines = git(folder, "config", "--local", "--list").splitlines()
    return dict(line.split("=", 1) for line in lines if line.startswith(("user.", "branch.")))


BEFORE = {"user.name": "A", "user.email": "a@b"}
FOLLOWS = {"branch.main.remote": "origin", "branch.main.merge": "refs/heads/main"}
CALLS = {
    "git config user.name 'Ada L'": {"user.name": "Ada L"},
    "git config --local user.email ada@b": {"user.email": "ada@b"},
    "git config branch.main.description 'What it is'": {"branch.main.description": "What it is"},
    "git config branch.topic.rebase true": {"branch.topic.rebase": "true"},
    "git branch -u origin/main": FOLLOWS,
    "git branch --set-upstream-to=origin/other topic": {
        "branch.topic.remote": "origin",
        "branch.topic.merge": "refs/heads/other",
    },
    "git branch -u topic": {"branch.main.remote": ".", "branch.main.merge": "refs/heads/topic"},
}


async def ran(folder: Path, *lines: str, mode: Mode = Mode.AUTO, **more: object) -> Rehearsal:
    bubblewrap()
    return await rehearse(folder, [run(line) for line in lines], mode=mode, **more)  # type: ignore[arg-type]


FORMS = ["{}", "python3 -c 1 && {}", 'echo "{}" > s.sh; sh s.sh', "{} && git log -1"]
ROWS = [
    pytest.param(form, line, id=f"{at}-{form}", marks=pytest.mark.soak if (at + number) % 2 else ())
    for at, line in enumerate(CALLS)
    for number, form in enumerate(FORMS)
]
"""Each call in two forms here, and in all of them in the soak."""


@pytest.mark.parametrize(("form", "line"), ROWS)
async def test_a_call_that_writes_a_setting_is_done_by_treadle(folder: Path, line: str, form: str) -> None:
    found = await ran(folder, form.format(line))
    assert (found.results[0].outcome, found.asked) == (Outcome.OK, []), found.texts[0]
    assert listed(folder) == BEFORE | CALLS[line]
    assert f"Treadle wrote git's configuration: `{line.partition(' ')[0]}" in found.texts[0]


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.EDITS])
@pytest.mark.parametrize("option", [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE])
async def test_in_modes_that_ask_about_git_it_is_asked_once(folder: Path, mode: Mode, option: OptionKind) -> None:
    line = "git config user.name Ada && git branch -u origin/main"
    found = await ran(folder, line, mode=mode, present=True, option=option)
    assert len(found.asked) == 1
    assert listed(folder) == (BEFORE | {"user.name": "Ada"} | FOLLOWS if option is OptionKind.ALLOW_ONCE else BEFORE)


async def test_plan_mode_writes_no_setting(folder: Path) -> None:
    await ran(folder, "git config user.name Ada", "python3 -c 1; git branch -u origin/main", mode=Mode.PLAN)
    assert listed(folder) == BEFORE


@pytest.mark.parametrize("words", ["main", "main:other", "HEAD", ""])
async def test_a_push_with_u_is_asked_about_once_and_follows_what_it_pushed(folder: Path, words: str) -> None:
    git(folder, "remote", "set-url", "origin", "/tmp/there.git")
    look = "git -C /tmp/there.git for-each-ref"
    found = await ran(folder, "git init -q --bare /tmp/there.git", f"git push -u origin {words}", look, present=True)
    target = "other" if "other" in words else "main"
    assert len(found.asked) == 1, found.texts
    assert found.results[1].outcome is Outcome.OK, found.texts[1]
    assert listed(folder) == BEFORE | {"branch.main.remote": "origin", "branch.main.merge": f"refs/heads/{target}"}
    assert f"{git(folder, 'rev-parse', 'main')} commit\trefs/heads/{target}" in found.texts[2]


async def test_a_push_that_fails_or_is_refused_writes_nothing(folder: Path) -> None:
    git(folder, "commit", "-q", "--allow-empty", "-m", "second")
    refused = await ran(folder, "git push -u origin main", present=True, option=OptionKind.REJECT_ONCE)
    failed = await ran(folder, "git push -u origin nothing", present=True)
    assert [one.results[0].outcome for one in (refused, failed)] == [Outcome.REJECTED, Outcome.FAILED]
    assert listed(folder) == BEFORE


HOSTILE = [
    "git config core.hooksPath /tmp",
    "git config core.fsmonitor /tmp/x",
    "git config user.name.x y",
    "git config branch.none.remote origin",
    "git config branch.main.remote ext::sh",
    "git config branch.main.remote nowhere",
    "git config branch.main.merge -x",
    "git config branch.main.rebase exec",
    "git config branch.main.pushRemote origin",
    "git config branch.main.mergeOptions --no-verify",
    "git config remote.origin.url ext::sh",
    "git config alias.x '!sh'",
    "git config include.path /tmp/x",
    "git branch -u nowhere/main",
]
VALUES = ["a\n[core]\n\thooksPath = /tmp", "a\rb", "a\x00b", "a\x1bb", "a\u2028b", "x" * 1001]


@pytest.mark.parametrize("line", HOSTILE)
async def test_nothing_else_gets_into_the_configuration(folder: Path, line: str) -> None:
    before = (folder / ".git" / "config").read_bytes()
    (folder / "call.sh").write_text(f"{line}\n")
    found = await ran(folder, "sh call.sh", line)
    assert (folder / ".git" / "config").read_bytes() == before
    assert Outcome.OK not in [one.outcome for one in found.results[:2]]


def writer(folder: Path) -> GitSettings:
    return GitSettings([str(folder)], "/usr/bin/git")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("key", ["user.name", "branch.main.description"])
def test_a_value_is_one_plain_line(folder: Path, key: str, value: str) -> None:
    before = (folder / ".git" / "config").read_bytes()
    with pytest.raises(ToolError, match="not one plain line"):
        writer(folder).write(SettingWrite(sets=((key, value),)), str(folder))
    assert (folder / ".git" / "config").read_bytes() == before


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(codec="utf-8"), max_size=60), st.sampled_from(["user.name", "branch.main.description"]))
def test_whatever_is_written_is_that_setting_alone(folder: Path, value: str, key: str) -> None:
    def known() -> set[str]:
        return set(git(folder, "config", "--local", "--list", "--null").split("\0"))

    before = {line for line in known() if not line.startswith(key)}
    try:
        writer(folder).write(SettingWrite(sets=((key, value),)), str(folder))
    except ToolError:
        assert {line for line in known() if not line.startswith(key)} == before
    else:
        done = subprocess.run(["git", "-C", folder, "config", "--null", key], capture_output=True, check=True)
        assert done.stdout == value.encode() + b"\0"
        assert {line for line in known() if not line.startswith(key)} == before


@given(
    st.lists(st.sampled_from(["config", "-u", "push", "branch", "user.name", "x", "-c", ":a", "--", "a:b"]), max_size=6)
)
def test_every_list_of_words_is_read(words: list[str]) -> None:
    found = setting_write(words)
    assert found is None or "-u" not in found.before


@pytest.mark.parametrize("kind", ["link", "folder link", "hard link", "elsewhere", "lock", "fifo"])
def test_what_is_not_plainly_the_repositorys_is_not_written(folder: Path, tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    git(tmp_path, "init", "-q", str(outside))
    data, config = folder / ".git", folder / ".git" / "config"
    match kind:
        case "link":
            config.unlink()
            config.symlink_to(outside / ".git" / "config")
        case "folder link":
            data.rename(tmp_path / "data")
            data.symlink_to(tmp_path / "data")
        case "hard link":
            os.link(config, tmp_path / "other")
        case "elsewhere":
            data.rename(tmp_path / "data")
            data.write_text(f"gitdir: {outside}/.git\n")
        case "lock":
            (data / "config.lock").touch()
        case _:
            config.unlink()
            os.mkfifo(config)
    before = (outside / ".git" / "config").read_bytes()
    with pytest.raises(ToolError):
        writer(folder).write(SettingWrite(sets=(("user.name", "x"),)), str(folder))
    assert (outside / ".git" / "config").read_bytes() == before


def test_a_worktree_writes_what_its_checkouts_share(folder: Path) -> None:
    git(folder, "worktree", "add", "-q", "inner", "topic")
    writer(folder).write(SettingWrite(follow=(("", "", "origin/main"),)), str(folder / "inner"))
    assert listed(folder)["branch.topic.merge"] == "refs/heads/main"


def test_a_setting_that_is_removed_leaves_the_others_and_the_comments(folder: Path) -> None:
    config = folder / ".git" / "config"
    config.write_text(f"# mine\n{config.read_text()}")
    mode = config.stat().st_mode
    one = writer(folder)
    one.write(SettingWrite(follow=(("topic", "", "origin/main"),)), str(folder))
    one.write(SettingWrite(follow=(("topic", "", ""),)), str(folder))
    assert (listed(folder), config.read_text().startswith("# mine\n"), config.stat().st_mode) == (BEFORE, True, mode)
    assert not (folder / ".git" / "config.lock").exists()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("words", ["topic new", "topic feature/x.y", "new"])
async def test_a_branch_is_renamed_with_what_it_follows(folder: Path, words: str, form: str) -> None:
    old, new = "main" if words == "new" else "topic", words.rsplit(maxsplit=1)[-1]
    for name in ("topic", "main"):
        git(folder, "branch", "-q", "-u", "origin/other", name)
    git(folder, "config", f"branch.{old}.pushRemote", "origin")
    before = listed(folder)
    found = await ran(folder, form.format(f"git branch -m {words}"))
    assert (found.results[0].outcome, found.asked) == (Outcome.OK, []), found.texts[0]
    assert "could not write" not in found.texts[0]
    assert listed(folder) == {key.replace(f"branch.{old}.", f"branch.{new}."): value for key, value in before.items()}
    assert git(folder, "branch", "--format=%(refname:short)").split() == sorted({"main", "topic"} - {old} | {new})


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.EDITS])
@pytest.mark.parametrize("option", [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE])
async def test_a_branch_is_renamed_after_one_yes(folder: Path, mode: Mode, option: OptionKind) -> None:
    found = await ran(folder, "git branch -m topic new", mode=mode, present=True, option=option)
    name = "new" if option is OptionKind.ALLOW_ONCE else "topic"
    assert (len(found.asked), git(folder, "branch", "--format=%(refname:short)")) == (1, f"main\n{name}")


async def test_a_branch_without_a_commit_is_renamed_and_why_another_one_is_not_is_said(tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    found = await ran(new, "git init -q -b main && git branch -m trunk", "git branch -m none other")
    assert (found.asked, git(new, "symbolic-ref", "HEAD")) == ([], "refs/heads/trunk"), found.texts
    assert [one.outcome for one in found.results[:2]] == [Outcome.OK, Outcome.FAILED]
    assert "none" in found.texts[1]
    assert "could not write" not in found.texts[1]


ASKED = [
    "git config filter.up.clean 'tr a-z A-Z'",
    "git config core.autocrlf input",
    "git config --local pull.rebase true",
    "git config --add user.name B",
    "git remote add other ../other",
    "git remote set-url --push origin ../other",
    "git remote rename origin upstream",
    "git branch -f -m topic new",
    "git branch --copy topic new",
    "git sparse-checkout set src",
]
"""What writes git's configuration otherwise than Treadle does for a command."""


@pytest.mark.parametrize("option", [OptionKind.ALLOW_ONCE, OptionKind.REJECT_ONCE])
@pytest.mark.parametrize("mode", [Mode.ASK, Mode.AUTO])
@pytest.mark.parametrize("line", ASKED)
async def test_what_treadle_does_not_write_is_asked_about_once_and_a_yes_is_not_in_vain(
    folder: Path, line: str, mode: Mode, option: OptionKind
) -> None:
    before = (folder / ".git" / "config").read_bytes(), git(folder, "branch")
    found = await ran(folder, line, mode=mode, present=True, option=option)
    yes = option is OptionKind.ALLOW_ONCE
    assert [one.text for one in found.asked] == ["Run; approving also lets it run outside the sandbox"]
    assert found.results[0].outcome is (Outcome.OK if yes else Outcome.REJECTED), found.texts[0]
    assert (((folder / ".git" / "config").read_bytes(), git(folder, "branch")) != before) is yes


@pytest.mark.parametrize("line", ["git checkout third", "git switch --track origin/third", "sh call.sh"])
async def test_where_git_goes_on_without_its_configuration_the_way_is_said(folder: Path, line: str) -> None:
    git(folder, "push", "-q", "origin", "main:third")
    (folder / "call.sh").write_text("git checkout third\n")
    found = await ran(folder, line)
    assert git(folder, "branch", "--show-current") == "third"
    assert "[The sandbox keeps git's configuration as it is. `git branch -u" in found.texts[0]
    assert 'needs: ["host"]' in found.texts[0]


async def test_a_repository_is_begun_and_set_up_by_one_line_after_one_yes(tmp_path: Path) -> None:
    new = tmp_path / "new"
    new.mkdir()
    line = "git init -q -b main && git remote add origin ../there && git config core.eol lf && git config user.name A"
    found = await ran(new, line, present=True)
    assert (found.results[0].outcome, len(found.asked)) == (Outcome.OK, 1), found.texts[0]
    assert (git(new, "remote"), git(new, "config", "core.eol")) == ("origin", "lf")
