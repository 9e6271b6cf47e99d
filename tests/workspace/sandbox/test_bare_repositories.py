"""A folder that git takes for a repository by what is in it: not left behind by a command where git runs something."""

import subprocess
from pathlib import Path

import msgspec
import pytest

from treadle.app.security.file_view import DiskView
from treadle.policy.repository import is_inert
from treadle.workspace.sandbox import MadeFiles, Surveyor
from treadle.workspace.sandbox.made import Before, recover_made

FAKE = """mkdir -p {0}/objects {0}/refs; echo 'ref: refs/heads/main' > {0}/HEAD
printf '[core]\\n\\trepositoryformatversion = 0\\n{1}' > {0}/config"""
MOVED = {
    "a monitor": (FAKE.format("a/sub", "\\tfsmonitor = ./x\\n"), ["a/sub/HEAD"]),
    "a work tree": (FAKE.format("sub", "\\tworktree = .\\n"), ["sub/HEAD"]),
    "an include": (FAKE.format("sub", "[include]\\n\\tpath = ../x\\n"), ["sub/HEAD"]),
    "a hook": (FAKE.format("sub", "") + "; mkdir sub/hooks; echo x > sub/hooks/pre-commit", ["sub/HEAD"]),
    "settings elsewhere": ("mkdir sub; echo x > sub/HEAD; echo ../other > sub/commondir", ["sub/HEAD"]),
    "no settings": ("mkdir -p sub/objects sub/refs; echo x > sub/head", ["sub/head"]),
    "the folder itself": (FAKE.format(".", "\\tfsmonitor = ./x\\n"), ["HEAD"]),
    "a setting of one from before": ("git -C bare config core.fsmonitor ./x", ["bare/config", "bare/hooks"]),
    "a hook of one from before": ("echo x > bare/hooks/pre-push", ["bare/config", "bare/hooks"]),
    "a copy with a setting": ("cp -r bare new; git -C new config core.pager ./x", ["new/HEAD"]),
    "two": (f"{FAKE.format('one', 'x')}; {FAKE.format('two', 'x')}", ["one/HEAD", "two/HEAD"]),
    "among what tools installed": (FAKE.format("target/x", "x"), ["target/x/HEAD"]),
    "in a package": (FAKE.format("node_modules/x", "x"), ["node_modules/x/HEAD"]),
    "after its parts": ("echo 'ref: refs/heads/main' > parts/HEAD", ["parts/HEAD"]),
}
KEPT = {
    "made by git": "git init -q --bare new",
    "cloned": "git clone -q --bare bare new",
    "a mirror": "git clone -q --mirror bare new",
    "shared": "git init -q --bare --shared new",
    "moved": "mv bare new",
    "pushed to": "git init -q x; cd x; git commit -q --allow-empty -m x; git push -q ../bare HEAD:main; rm -rf .git",
    "one that acted before": "echo x > acting/HEAD; touch acting/hooks/pre-push",
    "no whole one": "mkdir -p sub/objects; echo x > sub/HEAD; git config -f sub/config core.fsmonitor x",
    "a folder of that name": "mkdir -p src/refs src/objects src/heads; touch src/config",
}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bare repository, with one whose hook runs, and with one that lacks its `HEAD`."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "A")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "a@b")
    work = tmp_path / "work"
    work.mkdir()
    line = f"git init -q --bare bare; git init -q --bare acting; {FAKE.format('parts', 'x')}; rm parts/HEAD"
    subprocess.run(("sh", "-ec", f"{line}; echo x > acting/hooks/pre-commit"), cwd=work, check=True)
    return work


def _is_inert(path: str) -> bool:
    return is_inert(path, DiskView())


def _is_control(path: str) -> bool:
    return Path(path).name == ".git"


def _is_secret(_: str) -> bool:
    return False


def _made(work: Path, line: str, allowed: tuple[str, ...] = ()) -> tuple[MadeFiles, tuple[str, ...]]:
    surveyor = Surveyor(str(work), is_control=_is_control, is_secret=_is_secret)
    run = MadeFiles(work.parent / "data", [surveyor], [surveyor.look()], is_inert=_is_inert, allowed=allowed)
    subprocess.run(("sh", "-ec", line), cwd=work, check=True)
    return run, run.check()


def _quarantined(work: Path) -> list[str]:
    place = work.parent / "data/quarantine"
    return [name for batch in place.glob("*") for name in _tops(batch)]


def _tops(batch: Path) -> list[str]:
    named = ("HEAD", "head", "config", "hooks")
    return sorted(str(path.relative_to(batch)) for path in batch.rglob("*") if path.name in named)


@pytest.mark.parametrize("name", MOVED)
def test_a_folder_in_which_git_would_run_something_is_none_any_more(work: Path, name: str) -> None:
    line, moved = MOVED[name]
    run, said = _made(work, line)
    assert sorted(text.partition(" was made ")[0] for text in said) == moved
    assert _quarantined(work) == moved
    for one in moved:
        folder = (work / one).parent
        asked = ("git", "config", "--get", "core.fsmonitor")
        assert subprocess.run(asked, cwd=folder, capture_output=True, check=False).returncode != 0
    assert run.end() == ()


@pytest.mark.parametrize("name", KEPT)
def test_a_folder_in_which_git_runs_nothing_stays(work: Path, name: str) -> None:
    run, said = _made(work, KEPT[name])
    assert (said, run.end(), _quarantined(work)) == ((), (), [])


def test_one_that_somebody_allowed_stays(work: Path) -> None:
    _, said = _made(work, MOVED["a work tree"][0], allowed=(f"{work}/sub/HEAD",))
    assert said == ()


def test_a_treadle_that_was_killed_finds_it_when_it_starts_again(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MadeFiles, "check", lambda _: ())
    _made(work, f"{MOVED['two'][0]}; {MOVED['a setting of one from before'][0]}")
    monkeypatch.setattr("treadle.workspace.sandbox.made.lives", lambda _: False)
    said = recover_made(work.parent / "data", is_control=_is_control, is_secret=_is_secret, is_inert=_is_inert)
    assert sorted(text.partition(" was made ")[0] for text in said) == [
        *("bare/config", "bare/hooks", "one/HEAD", "two/HEAD")
    ]


def test_a_note_of_an_older_version_is_read() -> None:
    note = b'{"owner":{"pid":1,"started":2},"control":{"/ws":{}},"unlisted":[]}'
    assert msgspec.json.decode(note, type=Before).bare == {}
