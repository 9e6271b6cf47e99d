"""Colours: contrast as docs/terminal.md promises, and the choice of a palette."""

import io

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import DEFAULT_ATTRS, default_pygments_style, default_ui_style, merge_styles

from treadle.tui.paint.theme import ROLES, Ink, Palette, Theme, _colour, theme_of
from treadle.tui.paint.window_signals import WindowSignals
from treadle.tui.screen import _style

DARK, LIGHT = ("#000000", "#1e1e1e", "#282c34"), ("#ffffff", "#fdf6e3")
TEXT = ("accent", "dim", "add", "del", "warn", "danger", "code")
CODE = ("code-comment", "code-keyword", "code-string", "code-number", "code-name", "code-type")
ROWS = ("add-row", "add-word", "del-row", "del-word", "user")


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("role", TEXT)
def test_text_is_readable_on_every_usual_background(role: str) -> None:
    for palette, backgrounds in ((Palette.DARK, DARK), (Palette.LIGHT, LIGHT)):
        ink = ROLES[role][palette]
        assert not ink.bg
        assert min(contrast(ink.fg, background) for background in backgrounds) >= 4.5, (role, palette)


@pytest.mark.parametrize("role", ROWS)
def test_what_stands_on_a_tinted_row_is_the_plain_foreground_and_readable(role: str) -> None:
    for palette, foreground in ((Palette.DARK, "#d4d4d4"), (Palette.LIGHT, "#1f2328")):
        ink = ROLES[role][palette]
        assert not ink.fg
        assert contrast(foreground, ink.bg) >= 4.5


@pytest.mark.parametrize("role", CODE)
def test_code_is_readable_on_every_usual_background_and_on_the_rows_of_a_diff(role: str) -> None:
    for palette, backgrounds in ((Palette.DARK, DARK), (Palette.LIGHT, LIGHT)):
        ink = ROLES[role][palette]
        # A comment that is marked has the plain foreground.
        tinted = ROWS if role != "code-comment" else ("add-row", "del-row", "user")
        under = [*backgrounds, *(ROLES[row][palette].bg for row in tinted)]
        assert min(contrast(ink.fg, background) for background in under) >= 4.7, (role, palette)


def of_256(colour: str) -> str:
    """The colour that a terminal with 256 colours shows."""
    number = int(_colour(colour, background=True, true_colour=False).rpartition(";")[2])
    steps = (0, 95, 135, 175, 215, 255)
    parts = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
    grey = (8 + 10 * (number - 232),) * 3
    red, green, blue = grey if number >= 232 else tuple(steps[part] for part in parts)
    return f"#{red:02x}{green:02x}{blue:02x}"


@pytest.mark.parametrize("palette", [Palette.DARK, Palette.LIGHT])
def test_lines_that_go_and_come_differ_with_256_colours_too_and_are_readable(palette: Palette) -> None:
    theme = Theme(palette=palette)
    usual = DARK if palette is Palette.DARK else LIGHT
    for sign in ("add", "del"):
        for row in (f"{sign}-row", f"{sign}-row {sign}-word"):
            ink = theme.ink(row)
            red, green, _ = (int(of_256(ink.bg)[place : place + 2], 16) for place in (1, 3, 5))
            assert (green - red if sign == "add" else red - green) >= 40
            for role in ("", *CODE):
                assert contrast(of_256(theme.ink(f"{row} {role}").fg), of_256(ink.bg)) >= 4.5, (row, role)
            for role in ("dim", sign):
                assert contrast(of_256(theme.ink(f"{role} {row}").fg), of_256(ink.bg)) >= 4.5, (row, role)
    for role in CODE:
        assert min(contrast(of_256(theme.ink(role).fg), background) for background in usual) >= 4.5
    assert theme.sgr("add-row") != theme.sgr("add-row add-word")
    for styles, place in ((theme.for_prompt_toolkit(), "bg:"), (theme.for_rich(), "on ")):
        assert f"{place}{theme.ink('add-row').bg}" in styles["add-row"]


def test_code_has_no_look_of_its_own_without_colours() -> None:
    assert {ROLES[role][palette] for role in CODE for palette in (Palette.PLAIN, Palette.DUMB)} == {Ink()}
    assert not any(ROLES[role][Palette.ANSI].fg.startswith("#") for role in CODE)


def test_backgrounds_are_left_out_where_there_are_only_sixteen_colours() -> None:
    assert all(not inks[palette].bg for inks in ROLES.values() for palette in (Palette.ANSI, Palette.PLAIN))


@pytest.mark.parametrize(
    ("environment", "palette"),
    [
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, Palette.DUMB),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, Palette.PLAIN),
        ({"TERM": "xterm-256color", "COLORFGBG": "15;0"}, Palette.DARK),
        ({"TERM": "xterm-256color", "COLORFGBG": "0;default;15"}, Palette.LIGHT),
        ({"TERM": "xterm", "COLORFGBG": "15;0"}, Palette.ANSI),
        ({"TERM": "xterm-256color"}, Palette.ANSI),
    ],
)
def test_the_palette_follows_what_the_environment_says(environment: dict[str, str], palette: Palette) -> None:
    assert theme_of(environment).palette is palette


def test_colours_are_written_for_what_the_terminal_knows() -> None:
    assert Theme(palette=Palette.DARK, true_colour=True).sgr("accent") == "\x1b[38;2;95;201;192m"
    assert Theme(palette=Palette.DARK).sgr("accent") == "\x1b[38;5;79m"
    assert Theme(palette=Palette.ANSI).sgr("danger") == "\x1b[1;31m"
    assert Theme(palette=Palette.DUMB).sgr("danger") == ""
    assert theme_of({}, encoding="ascii").signs.ok == "ok"


def test_no_role_is_struck_through_by_a_class_of_the_library() -> None:
    assert all("nostrike" in style for style in Theme(palette=Palette.DARK).for_prompt_toolkit().values())


@pytest.mark.parametrize("role", ROLES)
def test_a_dumb_terminal_is_sent_no_style_whatever_a_role_is_called(role: str) -> None:
    style = merge_styles([default_ui_style(), default_pygments_style(), _style(Theme(palette=Palette.DUMB))])
    for name in (role, "search", "search-toolbar", "search-toolbar.text"):
        assert style.get_attrs_for_style_str(f"class:{name}") == DEFAULT_ATTRS


def test_the_window_of_a_dumb_terminal_gets_no_title() -> None:
    for nothing in (False, True):
        written = io.StringIO()
        output = Vt100_Output(written, get_size=lambda: Size(rows=24, columns=80), term="dumb")
        signals = WindowSignals(output, None, nothing=nothing)
        signals.begin()
        signals.set_title("Treadle: shop", "\x1b]7501;x\x1b\\")
        signals.end()
        assert (written.getvalue() == "") is nothing
