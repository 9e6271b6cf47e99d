"""Many small pieces of output become few; nothing is lost, and past the limit the newest is shown."""

import asyncio
from pathlib import Path

from treadle.workspace.commands.pacing import Paced
from treadle.workspace.workspace import Workspace


async def test_the_first_piece_comes_at_once_and_the_rest_together() -> None:
    passed: list[str] = []
    paced = Paced(passed.append, 1000)
    paced.add("a")
    assert passed == ["a"]
    for _ in range(100):
        paced.add("b")
    assert passed == ["a"]
    paced.close()
    assert passed == ["a", "b" * 100]


async def test_what_gathers_is_passed_on_without_more_coming() -> None:
    passed: list[str] = []
    came = asyncio.Event()

    def take(text: str) -> None:
        passed.append(text)
        if len(passed) == 2:
            came.set()

    paced = Paced(take, 1000)
    paced.add("a")
    paced.add("b")
    await came.wait()
    assert passed == ["a", "b"]
    paced.close()


async def test_what_comes_too_fast_is_left_out_and_counted_and_the_newest_is_there() -> None:
    passed: list[str] = []
    paced = Paced(passed.append, 1_000_000)
    for number in range(50_000):
        paced.add(f"{number:09}\n")
    paced.close()
    assert max(map(len, passed)) < 17 * 1024
    text = "".join(passed)
    assert text.startswith("000000000\n\n[434,454 characters are not shown here]\n")
    assert text.endswith("000049999\n")
    assert len(text) < 66 * 1024


async def test_past_the_limit_only_the_newest_is_passed_on() -> None:
    passed: list[str] = []
    paced = Paced(passed.append, 10)
    for number in range(10_000):
        paced.add(f"{number} ")
    paced.close()
    text = "".join(passed)
    assert text.startswith("0 1 2 3 4 \n[much output follows")
    assert text.endswith(" 9998 9999 ")
    assert len(text) < 700


async def test_a_flood_of_small_writes_tells_surfaces_seldom_and_is_all_in_the_spool(
    workspace: Workspace, tmp_path: Path
) -> None:
    code = "import os\nfor number in range(20000): os.write(1, b'%d\\n' % number)"
    Path(workspace.root, "flood.py").write_text(code)
    told: list[str] = []
    command = workspace.launcher.start("python3 flood.py")
    command.show(told.append)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await command.finish(60)
    command.show(None)
    assert len(told) <= 20 * (loop.time() - start) + 8
    whole = "".join(f"{number}\n" for number in range(20_000))
    assert "".join(told).endswith("\n19998\n19999\n")
    assert "".join(told) == whole or "characters are not shown here" in "".join(told)
    command.take_output()
    (spooled,) = (tmp_path / "spool").iterdir()
    assert spooled.read_text() == whole
    await command.close()
