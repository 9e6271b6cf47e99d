"""A yes opens exactly what the question names: a hostile program that has it finds nothing else of the home opened."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.rehearsal import Rehearsal, call, rehearse, run
from tests.needed import require
from treadle.app.reports.policy_explain import asked_context, explain_access, explanation_lines
from treadle.app.security.given_rights import give_rights
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Outcome, Right, RunCommand, SandboxDenial
from treadle.workspace.sandbox import Backend, Profile, probe
from treadle.workspace.sandbox.made_beforehand import OpenedPaths, recover_opened

ATTACK = """
import os, sys
home, target = os.path.expanduser("~"), sys.argv[1]
if len(sys.argv) > 2:
    os.mkdir(os.path.dirname(target))
open(target, "w").write("made")
for name in (".ssh/id_rsa", ".config/treadle/config.toml", ".config/other/keys.toml", "code/site/.env"):
    try:
        print(open(f"{home}/{name}").read()[::-1])
    except OSError:
        pass
for name in (".bashrc", ".ssh/authorized_keys", ".config/treadle/config.toml", ".config/autostart", "evil",
             ".local/share/treadle/evil", ".local/share/evil", "code/site/.git/config", "code/evil", "docs/.envrc"):
    try:
        open(f"{home}/{name}", "a").write("evil")
    except OSError:
        pass
"""
FILES = {
    ".bashrc": "usual",
    ".ssh/id_rsa": "PRIVATE",
    ".config/treadle/config.toml": "",
    ".config/other/keys.toml": "PRIVATE",
    ".local/share/treadle/note": "ours",
    "docs/plan.txt": "plan",
    "code/site/.git/config": "",
    "code/site/.env": "PRIVATE",
}


@pytest.fixture(params=[Backend.BUBBLEWRAP, Backend.LANDLOCK])
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home directory with keys and settings, a workspace in it, and one of the two sandboxes."""
    require("bwrap" if request.param is Backend.BUBBLEWRAP else "landlock")
    if request.param is Backend.LANDLOCK:
        monkeypatch.setattr("treadle.workspace.sandbox.backend.find_bubblewraps", list)
        probe.cache_clear()
    with tempfile.TemporaryDirectory(dir=Path.home(), prefix="treadle-test-") as folder:
        top = Path(os.path.realpath(folder))
        for name, text in FILES.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(text)
        (top / "link").symlink_to(".ssh")
        (top / "work" / "src").mkdir(parents=True)
        (top / "work" / "attack.py").write_text(ATTACK)
        monkeypatch.setenv("HOME", str(top))
        for name in ("TREADLE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            monkeypatch.delenv(name, raising=False)
        yield top
    if request.param is Backend.LANDLOCK:
        probe.cache_clear()


def written(home: Path) -> dict[str, str]:
    """Give each file of the home that is new or another one now; of Treadle's own only what is called evil."""
    found: dict[str, str] = {}
    for path in home.rglob("*"):
        name = str(path.relative_to(home))
        own = name.startswith(".local/share/treadle/") and path.name != "evil"
        if path.is_file() and not own and not name.startswith(("work/", ".cache/")):
            found[name] = path.read_text()
    return {name: text for name, text in found.items() if FILES.get(name) != text}


async def attack(home: Path, line: str, *, mode: Mode = Mode.AUTO) -> tuple[Rehearsal, list[str]]:
    """Run a line, with a yes to every question; gives also which paths the questions opened, from the home."""
    seen = await rehearse(home / "work", [run(line)], mode=mode, present=True)
    assert "ETAVIRP" not in seen.texts[0]
    rights = (right for question in seen.asked for right in question.rights)
    return seen, [right.target.removeprefix(f"{home}/") for right in rights if right.right is Right.WRITE]


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.ASK])
@pytest.mark.parametrize("target", [".toolrc", ".ssh/new", ".config/new", "code/site/new", "code/new"])
async def test_a_yes_after_a_run_opens_the_path_that_was_to_be_made_and_nothing_beside_it(
    home: Path, target: str, mode: Mode
) -> None:
    seen, opened = await attack(home, f"python3 attack.py {home}/{target}", mode=mode)
    assert (opened, seen.results[0].outcome) == ([target], Outcome.OK)
    assert written(home) == {target: "made"}


@pytest.mark.parametrize("target", [".toolrc", ".ssh/new", ".config/new/a.conf", "code/site/new"])
async def test_a_yes_before_a_run_opens_the_path_that_the_line_names_and_nothing_beside_it(
    home: Path, target: str
) -> None:
    above = "mkdir -p ~/.config/new; " if "/new/" in target else ""
    seen, opened = await attack(home, f"{above}echo made > ~/{target}; python3 attack.py ~/{target}")
    assert opened[-1] == target
    assert written(home) == {target: "made"}
    assert len(seen.asked) == 1, "it is in the first question, so it runs once"


@pytest.mark.parametrize("before", ["", "echo made > ~/link/new; "])
async def test_a_yes_to_a_path_through_a_link_names_where_it_leads_and_opens_nothing_else(
    home: Path, before: str
) -> None:
    seen, opened = await attack(home, f"{before}python3 attack.py {home}/link/new")
    assert opened == [".ssh/new"]
    is_seen = probe().backend is Backend.LANDLOCK  # the other one hides the link itself
    assert written(home) == ({".ssh/new": "made"} if is_seen else {})
    assert is_seen or 'needs: ["host"] asks the user' in seen.texts[0]


async def test_a_folder_that_is_to_be_made_is_opened_with_what_is_made_in_it(home: Path) -> None:
    seen, opened = await attack(home, f"python3 attack.py {home}/.config/new/a.conf with-its-folder")
    assert opened[:1] == [".config/new/"] if probe().backend is Backend.BUBBLEWRAP else opened
    assert set(written(home)) <= {".config/new/a.conf"}
    seen, opened = await attack(home, f"python3 -c 'import os; os.makedirs(\"{home}/.config/new2\", exist_ok=True)'")
    assert "No yes to that opens it: " in seen.texts[0] or opened == [".config/new2/"]


@pytest.mark.parametrize("target", [".config/treadle/new", ".local/share/treadle/new", ".config/treadle/config.toml"])
async def test_nothing_opens_what_is_treadles_own(home: Path, target: str) -> None:
    seen, opened = await attack(home, f"python3 attack.py {home}/{target}")
    assert (opened, seen.results[0].outcome, written(home)) == ([], Outcome.FAILED, {})
    seen, opened = await attack(home, f"echo made > ~/{target}; python3 attack.py {home}/{target}")
    assert "does not let it change" in seen.asked[0].text
    assert (opened, written(home)) == ([], {})


@pytest.mark.parametrize("place", ["", ".config", ".config/treadle", ".local/share/treadle"])
async def test_no_yes_shows_what_holds_keys_settings_or_what_is_treadles_own(home: Path, place: str) -> None:
    name = "/config.toml" if place == ".config/treadle" else ""
    path = f"{home}/{place}{name}".rstrip("/")
    line = f"{'grep -r PRIVATE' if place else 'ls -a'} ~/{place}{name}; python3 attack.py x"
    seen = await rehearse(home / "work", [run(line)], mode=Mode.AUTO, present=True)
    rights = [right.right for question in seen.asked for right in question.rights]
    assert (rights, written(home), "ETAVIRP" in seen.texts[0]) == ([], {}, False)
    assert f"No right to read {path} was given: " in seen.texts[0]
    assert not seen.asked or f"approving does not let it read {path}" in seen.asked[0].text


async def test_a_plain_folder_is_opened_so_that_something_can_be_made_in_it(home: Path) -> None:
    seen, opened = await attack(home, f"python3 attack.py {home}/docs/new")
    assert (opened, seen.results[0].outcome) == (["docs"], Outcome.OK)
    assert written(home) == {"docs/new": "made", "docs/.envrc": "evil"}


async def test_a_repository_above_the_workspace_is_not_opened_after_a_run(home: Path) -> None:
    """Its hooks would run later; the whole of it was opened for the sake of its lock."""
    line = f"python3 -c \"open('{home}/code/site/.git/index.lock', 'w')\""
    seen, opened = await attack(home, line)
    assert (opened, seen.asked, written(home)) == ([], [], {})
    if probe().backend is Backend.BUBBLEWRAP:
        seen, opened = await attack(home, f'echo "{home}/code/site/.git/index.lock: Read-only file system"; false')
        assert f"It is git's, for {home}/code/site. Tell the user to start Treadle there" in seen.texts[0]


async def test_a_new_folder_is_asked_for_with_a_slash(home: Path) -> None:
    line = f"mkdir -p {home}/.config/new && python3 attack.py {home}/.config/new/a.conf"
    command = call("execute_command", command=line, needs=[f"outside:{home}/.config/new/"])
    seen = await rehearse(home / "work", [command], mode=Mode.AUTO, present=True)
    assert (len(seen.asked), seen.results[0].outcome) == (1, Outcome.OK)
    assert written(home) == {".config/new/a.conf": "made"}


async def test_what_stays_empty_is_taken_away_and_it_is_said(home: Path) -> None:
    needs = [f"outside:{home}/.config/new/deep/file"]
    seen = await rehearse(home / "work", [call("execute_command", command="true", needs=needs)], present=True)
    assert "was not there, so it was made empty before the command ran" in seen.texts[0]
    assert not (home / ".config" / "new").exists()


@pytest.mark.parametrize("word", ["$D/x", "$(date)/x", "`pwd`/x", "${D:-$RANDOM}", "-m$M"])
async def test_a_folder_whose_name_a_line_computes_is_made_like_any_other(home: Path, word: str) -> None:
    line = f'D=src/made; mkdir -p "{word}"; git init -q "{word}/y" 2>/dev/null; mkdir src/after'
    needs = [f"outside:{home}/.toolrc"]
    for more in ({}, {"needs": needs}):
        command = call("execute_command", command=line, **more)
        seen = await rehearse(home / "work", [command], mode=Mode.AUTO, present=True)
        assert "failed" not in seen.texts[0]
        assert (home / "work" / "src" / "after").is_dir(), seen.texts[0]
        (home / "work" / "src" / "after").rmdir()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("touch ~/.toolrc", "approving also lets it change {}/.toolrc"),
        ("echo x > ~/.config/treadle/x", "no right lets it change {}/.config/treadle/x (it is Treadle's own)"),
        ("cat ~/.config/treadle/x", "no right lets it read {}/.config/treadle/x (it is Treadle's own)"),
        ("ls ~", "no right lets it read {} ({}/.local/share/treadle is in it)"),
    ],
)
def test_an_explanation_says_what_a_yes_gives_and_what_none_does(home: Path, line: str, said: str) -> None:
    context = asked_context(home / "work", Mode.AUTO, trusted=True)
    access = RunCommand(command=line, cwd=str(home / "work"))
    lines = list(explanation_lines(explain_access(access, context)))
    assert [one for one in lines if "lets it" in one and "outside" not in one] == [said.format(home, home)]


@pytest.mark.parametrize("need", ["", ".config", ".config/treadle", ".local/share/treadle/sessions.db"])
async def test_what_no_right_opens_is_refused_when_the_model_asks_for_it(home: Path, need: str) -> None:
    command = call("execute_command", command="python3 attack.py x", needs=[f"outside:{home}/{need}"])
    seen = await rehearse(home / "work", [command], mode=Mode.AUTO, present=True)
    assert (seen.asked, seen.results[0].outcome, written(home)) == ([], Outcome.DENIED, {})
    assert "Name the file or folder itself in needs" in seen.texts[0]
    assert 'needs: ["host"]' in seen.texts[0]


def test_a_link_that_came_after_the_question_is_not_followed(tmp_path: Path) -> None:
    """The path was named with its links followed; a program could put one there while the question is open."""
    top = Path(os.path.realpath(tmp_path))
    for name in ("home/.ssh", "work", "plain", "mail"):
        (top / name).mkdir(parents=True)
    (top / "link").symlink_to(top / "plain")
    (top / "keys").symlink_to(top / "home")
    (top / "masked").symlink_to(top / "mail")
    profile = Profile(
        root=f"{top}/work", hidden=(f"{top}/home",), masked=(f"{top}/masked",), tmp=f"{top}/t", private=f"{top}/p"
    )
    for name, given in {"plain": True, "link": False, "link/new": False, "keys": False, "masked": True}.items():
        right = SandboxDenial(right=Right.WRITE, target=f"{top}/{name}")
        found, made, refused = give_rights(profile, (right,), OpenedPaths(top / "data"), ())
        assert (found.writable, made, bool(refused)) == ((f"{top}/{name}",) if given else (), (), not given), name
    assert list((top / "plain").iterdir()) == []


def test_what_cannot_be_made_beforehand_is_no_right_and_holds_no_command_up(tmp_path: Path) -> None:
    profile = Profile(root=f"{tmp_path}/work", tmp=f"{tmp_path}/t", private=f"{tmp_path}/p")
    (tmp_path / "work").mkdir()
    opened = OpenedPaths(tmp_path / "data")
    rights = [SandboxDenial(right=Right.WRITE, target=path) for path in ("/proc/no/x", f"{tmp_path}/new")]
    found, made, refused = give_rights(profile, rights, opened, ())
    assert (found.writable, made) == ((f"{tmp_path}/new",), (f"{tmp_path}/new",))
    assert [one.partition(":")[0] for one in refused] == ["No right to write /proc/no/x was given"]
    opened.take_away(made)
    assert not (tmp_path / "new").exists()


def test_what_a_killed_treadle_made_is_taken_away_at_the_next_start(tmp_path: Path) -> None:
    made = str(tmp_path / "a" / "b")
    code = (
        "import os, pathlib, signal; from treadle.workspace.sandbox.made_beforehand import OpenedPaths;"
        f"OpenedPaths(pathlib.Path({str(tmp_path / 'data')!r})).make([{made!r}]); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run((sys.executable, "-c", code), check=False)
    assert Path(made).exists()
    recover_opened(tmp_path / "data")
    assert not (tmp_path / "a").exists()


def test_a_path_that_two_commands_may_write_stays_until_both_have_ended(tmp_path: Path) -> None:
    opened, path = OpenedPaths(tmp_path / "data"), tmp_path / "file"
    opened.make([str(path)])
    opened.make([str(path)])
    assert (opened.take_away([str(path)]), path.exists()) == ([], True)
    path.write_text("used")
    assert (opened.take_away([str(path)]), path.read_text()) == ([], "used")
