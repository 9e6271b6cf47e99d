"""What cannot be listed is not known: it is kept from commands, moved by nobody, and never in force.

Modes bind a normal user only; what needs no mode runs as root, too.
"""

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.normal_user import MODES, normal_user
from tests.workspace.sandbox.running import bubblewrap, landlock
from treadle.app.security.command_confinement import confine_as
from treadle.app.security.command_folders import CommandFolders, is_control, is_secret
from treadle.app.security.file_view import DiskView
from treadle.app.security.trusting import session_trust, trust_store, whole_trust
from treadle.protocol.errors import ToolError
from treadle.protocol.rebase_steps import OPEN_STEPS
from treadle.protocol.tools import Confinement
from treadle.store.nested_rules import nested_repositories
from treadle.workspace.commands.launcher import Launcher
from treadle.workspace.commands.variables import child_variables
from treadle.workspace.sandbox import MadeFiles, SandboxState, Surveyor

TOLD = "told-to-nobody"
SECRETS = (".env", "sub/.env", "sub/deep/key.pem")
CONTROL = ("CLAUDE.md", "sub/AGENTS.md", ".git/config", ".git/HEAD")
FOLDERS = (".", "sub", "sub/deep", "plain")
DATA = (".git", ".git/hooks", ".git/info", ".git/worktrees")


@pytest.fixture(params=[bubblewrap, landlock], ids=["bubblewrap", "landlock"])
def state(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> SandboxState:
    found: SandboxState = request.param()
    monkeypatch.setattr("treadle.app.security.command_confinement.probe", lambda: found)
    monkeypatch.setattr("treadle.workspace.sandbox.reading_git.probe", lambda: found)
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandFolders]:
    """A repository with secrets and control files at several depths."""
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "data"))
    root = (tmp_path / "work").resolve()
    for name in (*SECRETS, "sub/AGENTS.md", "CLAUDE.md", "plain/x.txt", "plain/y/z.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(TOLD if name in SECRETS else "before")
    subprocess.run(("git", "init", "-q", str(root)), check=True)
    for name in ("info", "hooks", "worktrees"):
        (root / ".git" / name).mkdir(exist_ok=True)
    (root / ".git/info/attributes").write_text("before")
    yield CommandFolders(root=str(root), data=tmp_path / "data", private=tmp_path / "data/private")
    subprocess.run(("chmod", "-R", "u+rwx", str(tmp_path)), check=True)


async def execute(place: CommandFolders, line: str, kind: Confinement = Confinement.WORK) -> str:
    """Run a line as a session does; gives what it printed and what was said of it, or why it was not started."""
    try:
        setup = await asyncio.to_thread(confine_as, kind, line, place)
    except ToolError as error:
        return str(error)
    spool = place.private / "spool"
    launcher = Launcher(shell="/bin/bash", directory=place.root, variables=child_variables(os.environ), spool=spool)
    command = launcher.start(line, setup=setup)
    launcher.close()
    await command.finish(30)
    output = command.take_output()
    said = await asyncio.to_thread(setup.settle, output, ended=True)
    await command.close()
    return "\n".join((output, *(one.text for one in said)))


def state_of(place: CommandFolders) -> dict[str, str]:
    """Give what is to stay: secrets and control files with their text; the modes are the user's again."""
    subprocess.run(("chmod", "-R", "u+rwx", place.root), check=True)
    names = (*SECRETS, *CONTROL, ".git/info/attributes")
    return {name: Path(place.root, name).read_text() if Path(place.root, name).exists() else "" for name in names}


ATTACK = """
chmod u+rwx . .git sub sub/deep plain .git/hooks .git/info 2>/dev/null
for f in .env sub/.env sub/deep/key.pem target/.env node_modules/.env; do cat $f; cp $f plain/copy; cat plain/copy; done
for f in CLAUDE.md sub/AGENTS.md .git/config .git/info/attributes; do echo evil >> $f; done
echo evil > .git/hooks/pre-commit; echo evil > .git/commondir; echo evil > plain/AGENTS.md; mkdir -p .git/worktrees/w
echo evil > .git/worktrees/w/commondir
mv sub/.env plain/found; cat plain/found; ln sub/.env plain/link; cat plain/link; rm -f CLAUDE.md
"""


def held(place: CommandFolders, before: dict[str, str], output: str) -> None:
    """What has to hold, whatever a command did and whichever backend confines it."""
    assert TOLD not in output
    assert state_of(place) == before
    made = (".git/hooks/pre-commit", ".git/commondir", "plain/AGENTS.md", ".git/worktrees/w/commondir")
    assert [name for name in made if os.path.lexists(Path(place.root, name))] == []
    quarantined = [path for path in (place.data / "quarantine").rglob("*") if path.is_file()]
    assert [path for path in quarantined if "evil" not in path.read_text()] == [], "only what was made is moved"


@normal_user
@pytest.mark.parametrize("kind", [Confinement.WORK, Confinement.GIT])
@pytest.mark.parametrize("mode", [0o000, 0o311, 0o555, 0o600])
async def test_a_mode_that_a_command_sets_opens_nothing_to_the_next(
    state: SandboxState, place: CommandFolders, mode: int, kind: Confinement
) -> None:
    before = state_of(place)
    output = ""
    for folder in (*FOLDERS, *DATA):
        output += await execute(place, f"chmod {mode:o} {folder}", kind)
        output += await execute(place, ATTACK, kind)
    held(place, before, output)


@normal_user
@pytest.mark.parametrize(("folder", "mode"), list(product((*FOLDERS, *DATA[:3]), [0o000, 0o111, 0o311, 0o444])))
async def test_a_folder_that_the_user_closed_opens_nothing_and_loses_nothing(
    state: SandboxState, place: CommandFolders, folder: str, mode: int
) -> None:
    before = state_of(place)
    closed = Path(place.root, folder)
    closed.chmod(mode)
    kind = Confinement.GIT if folder.startswith(".git") else Confinement.WORK
    output = await execute(place, ATTACK, kind)
    closed.chmod(0o755)
    output += await execute(place, "true", kind)
    held(place, before, output)
    if folder == ".":
        assert "cannot be listed whole" in output
    elif not folder.startswith(".git"):
        assert f"Commands do not see what is in {folder}: Treadle cannot list it." in output


@pytest.mark.parametrize(
    "forge",
    [
        "touch sub/pyvenv.cfg; touch sub/deep/pyvenv.cfg",
        "mv sub target",
        "mv sub node_modules",
        "mkdir target; mv sub target/sub",
        "mkdir node_modules; mv sub node_modules/sub",
        "mkdir -p x/site-packages; mv sub x/site-packages/; touch x/pyvenv.cfg",
        "mkdir __pycache__ .tox; mv sub __pycache__/; mv plain .tox/",
        "mv sub/deep sub/.nox; touch sub/__init__.py",
        "for i in $(seq 300); do mkdir -p many/$i; done",
        "mkfifo sub/pipe; ln -s .. sub/up; ln -s sub also",
    ],
)
async def test_no_file_of_the_workspace_uncovers_a_secret(
    state: SandboxState, place: CommandFolders, forge: str
) -> None:
    Path(place.root, "sub/AGENTS.md").unlink()  # it would hold the folder where it is
    output = await execute(place, forge)
    output += await execute(place, "cat $(find . -name '.env' -o -name '*.pem'); cat */.env */*/.env */*/*/.env")
    output += await execute(place, "cp -r . /tmp/all 2>/dev/null; grep -rh told . /tmp/all")
    assert TOLD not in output


def test_a_folder_with_too_much_in_it_is_not_known(place: CommandFolders, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.workspace.sandbox.survey._MOST_ENTRIES", 12)
    for number in range(30):
        Path(place.root, f"a{number:02}").mkdir()
    found = Surveyor(place.root, is_control=is_control, is_secret=is_secret).look()
    covered = [*found.secrets, *found.unlisted]
    assert all(any(f"{place.root}/{name}".startswith(each) for each in covered) for name in SECRETS)


def test_what_is_looked_through_while_it_changes_is_found_or_unknown(place: CommandFolders) -> None:
    """Folders vanish, and links take their place, in the middle of each look: what stays is always covered."""
    root, stop = Path(place.root), threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "moving").mkdir(exist_ok=True)
            (root / "moving/.env").write_text(TOLD)
            (root / "moving").rename(root / "moved")
            (root / "moving").symlink_to("/etc")
            (root / "moving").unlink()
            (root / "moved/.env").unlink()
            (root / "moved").rmdir()

    other = threading.Thread(target=swap)
    other.start()
    try:
        surveyor = Surveyor(place.root, is_control=is_control, is_secret=is_secret)
        for _ in range(300):
            found = surveyor.look()
            covered = {*found.secrets, *found.unlisted}
            assert covered >= {f"{root}/.env", f"{root}/sub/.env", f"{root}/sub/deep/key.pem"}
            assert all(path.startswith(f"{root}/") for path in (*covered, *found.control_paths))
    finally:
        stop.set()
        other.join()
    assert surveyor.look() == Surveyor(place.root, is_control=is_control, is_secret=is_secret).look()


MADE = ("plain/AGENTS.md", "plain/y/.envrc", "plain/.github/workflows/x.yml", "plain/n/.git/config")


@normal_user
@pytest.mark.parametrize(("name", "mode"), list(product(MADE, MODES)))
def test_what_was_made_in_a_folder_of_any_mode_is_moved_away(place: CommandFolders, name: str, mode: int) -> None:
    surveyor = Surveyor(place.root, is_control=is_control, is_secret=is_secret)
    run = MadeFiles(place.data, [surveyor], [surveyor.look()])
    made = Path(place.root, name)
    made.parent.mkdir(parents=True, exist_ok=True)
    made.write_text("evil")
    closed = [folder for folder in made.parents if folder.is_relative_to(Path(place.root, "plain"))]
    for folder in closed:
        folder.chmod(mode)
    said = run.end()
    assert not any("cannot" in one for one in said), said
    assert run.remaining() == ()
    subprocess.run(("chmod", "-R", "u+rwx", place.root), check=True)
    assert not os.path.lexists(made)
    subprocess.run(("chmod", "-R", "u+rwx", str(place.data)), check=True)
    assert [path.read_text() for path in (place.data / "quarantine").rglob(made.name)] == ["evil"]


@normal_user
async def test_what_cannot_be_moved_away_stops_the_next_command(
    place: CommandFolders, state: SandboxState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr("treadle.workspace.sandbox.moving.opened_folder", refuse)
        output = await execute(place, "echo evil > plain/AGENTS.md")
    if state.backend == "landlock":
        pytest.skip("Landlock lets nothing new be made beside protected files")
    assert "It cannot be moved" in output
    assert "The command was not started" in await execute(place, "echo ran")
    Path(place.root, "plain/AGENTS.md").unlink()
    assert "ran" in await execute(place, "echo ran")


ACTING = (
    *(
        ".treadle/config.toml",
        ".treadle/hooks/one",
        ".claude/settings.json",
        ".claude/hooks/run",
        ".claude/commands/a.md",
    ),
    *(".claude/rules/a.md", ".claude/skills/one/SKILL.md", ".agents/skills/one/SKILL.md", ".cursor/rules/a.mdc"),
    *(".clinerules/a.md", ".windsurf/rules/a.md", ".github/copilot-instructions.md", ".git/hooks/pre-commit"),
    *(".git/info/attributes", ".git/config"),
)
TEXT = '{"hooks": {"PreToolUse": [0]}, "x": 1}'
CHANGED = '{"hooks": {"PreToolUse": [1]}, "x": 2}\n[alias]\nx = !evil\n'


@normal_user
@pytest.mark.parametrize(("name", "mode"), list(product(ACTING, MODES)))
def test_what_acts_in_a_folder_of_any_mode_is_trusted_as_it_was_seen_or_not_in_force(
    place: CommandFolders, name: str, mode: int
) -> None:
    root = Path(place.root)
    for each in (".claude/settings.json", name):  # its hooks are what the scripts beside it are kept for
        (root / each).parent.mkdir(parents=True, exist_ok=True)
        (root / each).write_text(TEXT)
    trust_store().grant(whole_trust(root))
    before = session_trust(root)
    assert before.trusted
    assert name in [item.path for item in before.items]
    folders = [folder for folder in (root / name).parents if folder.is_relative_to(root)]
    for folder in folders:
        (root / name).write_text(TEXT)
        folder.chmod(mode)
        now = session_trust(root)
        assert not now.trusted or now.items == before.items, folder
        folder.chmod(0o755)
        (root / name).write_text(CHANGED)
        folder.chmod(mode)
        changed = session_trust(root)
        assert not changed.trusted, folder
        assert not changed.lets_code_run
        assert changed.notice(), "it is said"
        folder.chmod(0o755)


@normal_user
def test_a_closed_folder_of_settings_that_nobody_trusted_is_asked_about_and_named(place: CommandFolders) -> None:
    settings = Path(place.root, ".treadle")
    (settings / "hooks").mkdir(parents=True)
    settings.chmod(0o311)
    found = session_trust(Path(place.root))
    assert (found.trusted, found.lets_code_run) == (False, False)
    assert found.notice() == (
        f"untrusted: {settings} cannot be listed, so it is not known what in it would act. "
        "Nothing in the folder is used."
    )


@normal_user
def test_a_repository_below_whose_hooks_cannot_be_listed_is_told_with_the_folder(tmp_path: Path) -> None:
    """Git runs a hook by its name, and lists none."""
    work = tmp_path.resolve() / "work"
    subprocess.run(("git", "init", "-q", str(work / "sub")), check=True)
    hooks = work / "sub/.git/hooks"
    assert DiskView().names(str(hooks)) is not None
    before = {item.path for item in nested_repositories(work)}
    hooks.chmod(0o311)
    found = {item.path: item.digest for item in nested_repositories(work)}
    assert DiskView().names(str(hooks)) is None
    assert found.keys() - before == {"sub/.git/hooks"}
    assert found["sub/.git/hooks"].startswith("unreadable")
    hooks.chmod(0o755)


@normal_user
def test_steps_of_a_rebase_in_a_folder_that_a_command_closed_are_moved_away(tmp_path: Path) -> None:
    normal_user()
    git = tmp_path.resolve() / "work/.git"
    git.mkdir(parents=True)
    made = MadeFiles(tmp_path / "data", [], [], is_inert=lambda _: False, repositories=[str(git)])
    steps = git / OPEN_STEPS
    steps.parent.mkdir()
    steps.write_text("exec touch ran\n")
    steps.parent.chmod(0)
    assert [one.partition(",")[0] for one in made.end()] == [
        "rebase-merge could not be listed after the command",
        "rebase-merge/git-rebase-todo was made while the command ran. It can change what tools do",
    ]
    assert (list(steps.parent.iterdir()), made.remaining()) == ([], ())
