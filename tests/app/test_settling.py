"""What a confined command did is said in its result: files that were moved away, bounds, and edits that stay."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.rehearsal import call, rehearse, run
from tests.needed import needs
from treadle.protocol.permissions import Mode, OptionKind

pytestmark = needs("sandbox")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    (tmp_path / "ws").mkdir()
    return (tmp_path / "ws").resolve()


def script(folder: Path, text: str) -> str:
    """Write a program of the workspace; gives the line that runs it: what it does is not judged."""
    (folder / "work.py").write_text(text)
    return f"{sys.executable} work.py" if Path(sys.executable).is_relative_to("/usr") else "python3 work.py"


async def test_a_control_file_that_a_program_made_is_moved_away_and_the_result_says_so(folder: Path) -> None:
    line = script(folder, "open('AGENTS.md', 'w').write('evil')\nopen('fine', 'w').write('x')\n")
    rehearsal = await rehearse(folder, [run(line), run("ls")], mode=Mode.AUTO)
    assert (
        "[AGENTS.md was made while the command ran. It can change what tools do, so it was moved" in rehearsal.texts[0]
    )
    assert sorted(path.name for path in folder.iterdir()) == ["fine", "work.py"]
    assert "AGENTS.md" not in rehearsal.texts[1]


async def test_a_control_file_that_somebody_approved_stays_while_a_command_runs_on(folder: Path) -> None:
    line = script(folder, "import time\nprint('up', flush=True)\ntime.sleep(60)\n")
    server = call("execute_command", command=line, background=True)
    edit = call("write_to_file", path="AGENTS.md", content="rules\n")
    look = call("read_command_output", command_number=1)
    rehearsal = await rehearse(folder, [server, edit, look], mode=Mode.AUTO, present=True)
    assert (folder / "AGENTS.md").read_text() == "rules\n"
    assert "was made while" not in "".join(rehearsal.texts)


_FAKE = """
import os
os.makedirs('build/sub/objects'); os.makedirs('build/sub/refs')
open('build/sub/HEAD', 'w').write('ref: refs/heads/main\\n')
open('build/sub/config', 'w').write('[core]\\n\\tfsmonitor = touch ran; false\\n')
"""


@pytest.mark.parametrize("mode", [Mode.ASK, Mode.AUTO])
@pytest.mark.parametrize("option", [OptionKind.RUN_FOR_REAL, OptionKind.REJECT_ONCE])
async def test_a_repository_by_its_form_stays_only_with_a_yes(folder: Path, mode: Mode, option: OptionKind) -> None:
    (folder / ".gitignore").write_text("build/\n")
    subprocess.run(("git", "init", "-q"), cwd=folder, check=True)
    rehearsal = await rehearse(folder, [run(script(folder, _FAKE))], mode=mode, present=True, option=option)
    stays = (folder / "build/sub/HEAD").exists()
    assert (len(rehearsal.asked), stays) == ((1, option is OptionKind.RUN_FOR_REAL) if mode is Mode.ASK else (0, False))
    assert ("build/sub/HEAD was made while the command ran." in rehearsal.texts[0]) is (mode is Mode.AUTO)


async def test_why_a_mode_is_refused_is_said(folder: Path) -> None:
    (folder / "a").touch()
    rehearsal = await rehearse(folder, [run("chmod u+s a"), run("chmod 700 a; ls -l")], mode=Mode.AUTO)
    said = "[In the sandbox no file gets a set-user-ID or set-group-ID bit"
    assert [said in text for text in rehearsal.texts[:2]] == [True, False]
    assert (folder / "a").stat().st_mode & 0o7777 == 0o700
