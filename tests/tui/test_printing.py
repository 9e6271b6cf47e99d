"""What is printed waits until the files that it names are looked up, is seen meanwhile, and never waits for long."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tests.fakes.clock import run_at_once
from treadle.present.items import NoteItem
from treadle.tui.paint.hyperlinks import FileLinks
from treadle.tui.paint.painter import Painter
from treadle.tui.paint.theme import Palette, Theme
from treadle.tui.session.aside import Aside
from treadle.tui.session.printing import Printing

THEME = Theme(palette=Palette.DARK)


class LateAside:
    """What is looked up aside is known once `answer` is called."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def start(self, work: Callable[[], object], done: Callable[[object], None], instead: object) -> None:
        self.waiting.append(lambda: done(work()))

    def answer(self) -> None:
        for one in self.waiting:
            one()
        self.waiting.clear()


def opened(root: Path) -> tuple[Printing, LateAside, list[bool]]:
    aside, drawn = LateAside(), list[bool]()
    printing = Printing(cast("Aside", aside), FileLinks(str(root)), lambda: drawn.append(True))
    printing.painter = Painter
    return printing, aside, drawn


def test_what_names_a_file_is_seen_while_that_is_looked_up_and_then_printed_once(tmp_path: Path) -> None:
    async def drive() -> None:
        (tmp_path / "cart.py").touch()
        printing, aside, drawn = opened(tmp_path)
        printing.held.append(NoteItem("See cart.py and none.py"))
        assert [printing.text(80, THEME), printing.text(80, THEME), len(aside.waiting)] == ["", "", 1]
        assert "See cart.py" in printing.living(80, THEME, [], rows=20, now=0.0, blinks=False)
        printing.held.append(NoteItem("more"))
        aside.answer()
        printed = printing.text(80, THEME)
        assert (drawn, printed.count("\x1b]8;;file:"), printed.index("See") < printed.index("more")) == (
            [True],
            1,
            True,
        )
        assert (printing.text(80, THEME), printing.living(80, THEME, [], rows=20, now=0.0, blinks=False)) == ("", "")
        printing.held.append(NoteItem("cart.py"))
        assert "file:" in printing.text(80, THEME)  # it is known
        (tmp_path / "none.py").touch()
        printing.files_changed()
        printing.held.append(NoteItem("none.py"))
        assert printing.text(80, THEME) == ""
        aside.answer()
        assert "file:" in printing.text(80, THEME)

    run_at_once(drive())


@pytest.mark.parametrize("leaves", [False, True])
def test_what_cannot_be_looked_up_in_time_is_printed_without_a_link(tmp_path: Path, leaves: bool) -> None:
    async def drive() -> None:
        (tmp_path / "cart.py").touch()
        printing, aside, drawn = opened(tmp_path)
        printing.held.append(NoteItem("See cart.py"))
        assert printing.text(80, THEME) == ""
        if not leaves:
            await asyncio.sleep(1)
            assert drawn == [True]
        printed = printing.text(80, THEME, at_once=leaves)
        assert ("cart.py" in printed, "file:" in printed) == (True, False)
        aside.answer()  # too late
        assert printing.text(80, THEME) == ""

    run_at_once(drive())
