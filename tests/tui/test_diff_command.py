"""/diff in the terminal: drawn like every diff, and nothing that git says of the files is lost."""

import subprocess
from pathlib import Path

import pytest
from prompt_toolkit.output.color_depth import ColorDepth

from tests.person import ENTER
from tests.tui.session import session
from tests.tui.terminal import terminal
from treadle.app.slash import reporting
from treadle.tui.paint.theme import ROLES, Palette


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("COLORFGBG", "15;0")
    monkeypatch.delenv("NO_COLOR", raising=False)
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.py").write_text("def f():\n    return 1\n")
    (folder / "data").write_bytes(b"\0\1")
    (folder / "run").write_text("true\n")
    (folder / "sub").mkdir()
    (folder / "old.py").write_text("".join(f"line {number}\n" for number in range(20)))
    (folder / "sub/plain.py").write_text("plain\n" * 9)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(folder))
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "one")):
        subprocess.run([*git, *words], check=True)
    (folder / "a.py").write_text('def f():\n    return "two"\n')
    (folder / "data").write_bytes(b"\0\2")
    (folder / "run").chmod(0o755)
    (folder / "new.txt").write_text("x\n")
    subprocess.run([*git, "mv", "old.py", "sub/moved.py"], check=True)
    subprocess.run([*git, "mv", "sub/plain.py", "plain.py"], check=True)
    (folder / "sub/moved.py").write_text((folder / "sub/moved.py").read_text().replace("line 7\n", "line seven\n"))
    return folder


async def test_the_diff_has_numbers_and_the_colours_of_the_code(repository: Path) -> None:
    string = ROLES["code-string"][Palette.DARK].fg.removeprefix("#")
    async with session(repository) as rig, terminal(rig.live, depth=ColorDepth.DEPTH_24_BIT) as (term, _):
        await term.until("? for keys")
        term.type(f"/diff{ENTER}")
        await term.until("new: new.txt")
        await term.until("  a.py  +1 -1", "2 -     return 1", '2 +     return "two"')
        await term.until("  run", "mode 100755, was 100644", "  data", "binary: its content is not shown")
        await term.until("  sub/moved.py  +1 -1", "renamed from old.py", "  plain.py", "renamed from sub/plain.py")
        assert "diff --git" not in term.shown
        assert term.colour_of('"two"') == string


async def test_a_diff_that_is_too_long_is_shown_as_text(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "_MOST_SHOWN", 100)
    async with session(repository) as rig, terminal(rig.live) as (term, _):
        await term.until("? for keys")
        term.type(f"/diff{ENTER}")
        await term.until("`git diff` shows all of it")
