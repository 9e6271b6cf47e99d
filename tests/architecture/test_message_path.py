"""The path of a message through the files, as docs/architecture.md tells it, is the one that a message takes."""

import re
import sys
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.running import model
from treadle.app.errors.exits import Exit
from treadle.providers.scripted.script import MakeCall, SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"
DRIVER = (sys.executable, str(Path(__file__).with_name("path_driver.py")))
MOST_FILES = 22
READS = MakeCall(name="read_file", arguments={"path": "a.txt"})
ENDS = MakeCall(name="attempt_completion", arguments={"result": "It is read."})


def told() -> list[tuple[str, str]]:
    """The rows of the page: a file, and the function at which to begin to read it."""
    rows = re.findall(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    return [(file, name) for _, file, name in rows]


def test_the_path_is_short() -> None:
    assert 15 <= len(told()) <= MOST_FILES
    assert len({file for file, _ in told()}) == len(told())


async def test_a_message_takes_the_path_that_the_page_tells(tmp_path: Path) -> None:
    listing, folder = tmp_path / "ran", tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("a\n")
    turns = (Turn(items=(SayText(text="I look."), READS)), Turn(items=(ENDS,)))
    async with ScriptedServer(Script(turns=turns)) as server:
        flags = (*model(server), "--directory", str(folder))
        ended = await Program(tmp_path / "home").run("-p", "Read it.", *flags, command=(*DRIVER, str(listing)))
    assert ended.code == Exit.DONE, ended.err
    order = {line: number for number, line in enumerate(listing.read_text().splitlines())}
    places = [order.get(f"{file} {name}") for file, name in told()]
    assert None not in places, [row for row, place in zip(told(), places, strict=True) if place is None]
    assert places == sorted(place for place in places if place is not None), list(zip(told(), places, strict=True))
