"""Every element of the app as it is drawn, at three widths and in four looks: one file for each pair."""

import re
from collections.abc import Iterator

import pytest
from msgspec.structs import replace
from prompt_toolkit.utils import get_cwidth

from tests.tui.asked import EVERY_KIND
from tests.tui.drawing import LIVING, STATES, TOUR, below, stages
from tests.tui.listed import LISTS
from tests.tui.snapshots import same_as_before
from treadle.tui.lists.choice_list import chooser_lines
from treadle.tui.paint.lines import Line, ansi
from treadle.tui.paint.painter import Painter
from treadle.tui.paint.theme import ASCII_SIGNS, Palette, Theme
from treadle.tui.question.asked import ask
from treadle.tui.question.dialog import Dialog
from treadle.tui.question.question_lines import question_lines, waiting_line

WIDTHS = (40, 80, 120)
LOOKS = {palette: Theme(palette=palette) for palette in Palette}
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def pictures(width: int, theme: Theme) -> Iterator[tuple[str, str]]:
    """Draw each element in each of its states."""
    painter = Painter(width, theme)
    for item in TOUR:
        yield type(item).__name__, painter.items([item])
    for name, living in LIVING.items():
        yield name, f"{Painter(width, theme).living(living, 50, 22.0)}\n"
    for name, (state, around) in STATES.items():
        yield name, painted(below(state, around, width, theme.signs), theme)
    for name, question in EVERY_KIND.items():
        yield f"question: {name}", painted(asked(Dialog(asking=ask(question), focused=True), width, theme), theme)
        yield (
            f"question that waits: {name}",
            painted([waiting_line(Dialog(asking=ask(question)), width, theme.signs)], theme),
        )
    for name, asking in stages():
        yield f"question, {name}", painted(asked(Dialog(asking=asking, focused=True), width, theme), theme)
    for name, chooser in LISTS.items():
        yield f"list: {name}", painted(chooser_lines(chooser, width, 24, theme.signs), theme)


def asked(dialog: Dialog, width: int, theme: Theme) -> list[Line]:
    laid = question_lines(dialog, ("/project",), width=width, rows=24, signs=theme.signs)
    return [*laid.above, *([laid.field] if laid.field else []), *laid.under]


def painted(rows: list[Line], theme: Theme) -> str:
    return "".join(f"{row}\n" for row in ansi(rows, theme))


@pytest.mark.parametrize(
    "palette", [Palette.DARK, Palette.LIGHT, Palette.PLAIN, Palette.DUMB], ids=lambda one: one.value
)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_element_has_its_picture(width: int, palette: Palette) -> None:
    """Colours are shown as their numbers in angle brackets, `<>` where they end."""
    drawn = "\n".join(f"== {name}\n{text}" for name, text in pictures(width, LOOKS[palette]))
    shown = SGR.sub(lambda found: f"<{found[1] if found[1] != '0' else ''}>", drawn)
    same_as_before(f"{palette.value}-{width}", shown)


@pytest.mark.parametrize("theme", LOOKS.values(), ids=lambda theme: theme.palette.value)
def test_colours_are_only_where_the_look_has_them(theme: Theme) -> None:
    drawn = "".join(text for _, text in pictures(80, theme))
    codes = {code for found in SGR.findall(drawn) for code in found.split(";")}
    coloured = bool(codes - {"0", "1", "2", "3", "4", "7", "9"})
    assert coloured == (theme.palette not in (Palette.PLAIN, Palette.DUMB))
    assert bool(codes) == (theme.palette is not Palette.DUMB)


@pytest.mark.parametrize("width", range(32, 130, 7))
def test_no_element_is_wider_than_the_screen(width: int) -> None:
    for name, text in pictures(width, LOOKS[Palette.PLAIN]):
        assert max(map(get_cwidth, SGR.sub("", text).split("\n"))) <= width, (name, width)


def test_nothing_in_the_scrollback_is_padded_to_the_width() -> None:
    painter = Painter(80, LOOKS[Palette.DUMB])
    for item in TOUR:
        assert all(row == row.rstrip() for row in painter.items([item]).split("\n")), item


def test_without_utf_8_every_sign_is_ascii() -> None:
    theme = replace(LOOKS[Palette.DUMB], signs=ASCII_SIGNS)
    for name, text in pictures(80, theme):
        bare = text.replace("·", "").replace("…", "")
        assert bare.isascii(), (name, [char for char in bare if not char.isascii()])
