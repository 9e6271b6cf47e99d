"""Names of the one table, against real commands in the sandbox: what is secret stays unread, what acts unchanged."""

import random
from pathlib import Path

import pytest

from tests.app.test_inside import Inside
from tests.needed import needs
from treadle.protocol import name_lists as table
from treadle.workspace.sandbox import Backend, SandboxState
from treadle.workspace.sandbox.confine import version

pytestmark = needs("bwrap")
SECRET = "CONTENT-OF-A-SECRET"
USUAL = 40


def _files(listed: list[str], below: str = "") -> list[str]:
    return [f"{name.replace('*', 'x')}{below}" for name in listed]


SECRETS = [*_files(table.SECRET_DIRECTORIES, "/inner"), *_files(table.SECRET_FILES), *_files(table.SECRET_PATHS)]
LATER = [
    *_files([name for name in table.CONTROL_DIRECTORIES if name not in (".git", "*.git")], "/inner"),
    *_files(table.CONTROL_FILES),
    *_files(table.CONTROL_PATHS),
    # Other installed programs are those of an environment, which its `pyvenv.cfg` tells.
    "node_modules/.bin/inner",
]


def _made(folder: Path, names: list[str], text: str) -> list[str]:
    """Make the files that can be made beside each other."""
    made = []
    for name in names:
        file = folder / name
        if file.exists() or any(parent.is_file() for parent in file.parents):
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        made.append(name)
    return made


@pytest.fixture(params=["bubblewrap", "landlock"])
def inside(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Inside:
    made = Inside(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    if request.param == "landlock":
        if version() < 3:
            pytest.skip("the kernel has no Landlock that is new enough")
        state = SandboxState(backend=Backend.LANDLOCK)
        monkeypatch.setattr("treadle.app.security.command_confinement.probe", lambda: state)
    return made


@pytest.fixture(params=[USUAL, pytest.param(0, marks=pytest.mark.soak)])
def sample(request: pytest.FixtureRequest) -> int:
    """How many names are tried; 0 for all of them."""
    return int(request.param)


def _some(names: list[str], count: int) -> list[str]:
    return random.Random(30).sample(names, count) if count else names


async def test_no_secret_of_the_workspace_is_printed(inside: Inside, sample: int) -> None:
    made = _made(inside.root, _some(SECRETS, sample), SECRET)
    (inside.root / "plain.txt").write_text("plain")
    reads = "\n".join(f"cat '{name}'; cp '{name}' copied && cat copied; base64 -w0 < '{name}'" for name in made)
    output, _ = await inside.run(
        f"{{ {reads}\ngrep -r . .; tar -cf - . | grep -ao CONTENT.*; }} 2>/dev/null; cat plain.txt"
    )
    assert SECRET not in output
    assert "Q09OVEVOVC1PRi1BLVNFQ1JFV" not in output
    assert "plain" in output


async def test_nothing_that_acts_later_is_changed(inside: Inside, sample: int) -> None:
    made = _made(inside.root, _some(LATER, sample), "as it was")
    ways = ("echo x > {}", "echo x >> {}", "mv {} moved", "cp plain.txt {}", "ln -sf plain.txt {}", "rm -f {}")
    writes = "\n".join(way.format(f"'{name}'") for name in made for way in ways)
    (inside.root / "plain.txt").write_text("plain")
    await inside.run(f"{{ {writes}\n }} 2>/dev/null; echo done > plain.txt")
    assert {name: (inside.root / name).read_text() for name in made} == dict.fromkeys(made, "as it was")
    assert (inside.root / "plain.txt").read_text() == "done\n"


async def test_no_secret_of_the_home_directory_is_printed(inside: Inside, sample: int) -> None:
    made = _made(inside.home, _some(SECRETS, sample), SECRET)
    reads = "\n".join(f"cat ~/'{name}'; ls -d ~/'{name}'" for name in made)
    output, _ = await inside.run(f"{{ {reads}\ngrep -r . ~; }} 2>/dev/null; echo end")
    assert SECRET not in output
    assert output.endswith("end\n")
