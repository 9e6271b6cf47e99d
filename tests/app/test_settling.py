"""What a confined command did is said in its result: files that were moved away, bounds, and edits that stay."""

import sys
from pathlib import Path

import pytest

from tests.app.rehearsal import call, rehearse, run
from tests.needed import needs
from treadle.protocol.permissions import Mode

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
