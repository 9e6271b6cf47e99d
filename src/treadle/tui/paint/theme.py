"""Every colour and sign of the terminal app: one table of roles, for prompt_toolkit, for Rich and for plain lines."""

import locale
import os
from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from msgspec import Struct


class Palette(Enum):
    """Which column of the table applies; `PLAIN` has no colour, only weight, `DUMB` has neither."""

    DARK = "dark"
    LIGHT = "light"
    ANSI = "ansi"
    PLAIN = "plain"
    DUMB = "dumb"


class Ink(Struct, frozen=True):
    """How a role looks: colours as `#rrggbb` or as the name of one of the sixteen, empty for the terminal's own."""

    fg: str = ""
    bg: str = ""
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    reverse: bool = False


def _row(dark: Ink, light: Ink, ansi: Ink, plain: Ink) -> Mapping[Palette, Ink]:
    return MappingProxyType(
        {Palette.DARK: dark, Palette.LIGHT: light, Palette.ANSI: ansi, Palette.PLAIN: plain, Palette.DUMB: Ink()}
    )


def _everywhere(ink: Ink) -> Mapping[Palette, Ink]:
    return _row(ink, ink, ink, ink)


_BOLD = Ink(bold=True)

ROLES: Mapping[str, Mapping[Palette, Ink]] = MappingProxyType(
    {
        "accent": _row(Ink("#5fc9c0"), Ink("#00736b"), Ink("cyan"), _BOLD),
        "dim": _row(Ink("#9097a0"), Ink("#646a73"), Ink("bright_black"), Ink(dim=True)),
        "add": _row(Ink("#7ec77e"), Ink("#1a7f37"), Ink("green"), Ink()),
        "add-row": _row(Ink(bg="#12301a"), Ink(bg="#dff5e3"), Ink(), Ink()),
        "add-word": _row(Ink(bg="#1f5a30"), Ink(bg="#a9e5b5"), _BOLD, _BOLD),
        "del": _row(Ink("#ef8a8a"), Ink("#b42318"), Ink("red"), Ink()),
        "del-row": _row(Ink(bg="#3a1518"), Ink(bg="#fde7e6"), Ink(), Ink()),
        "del-word": _row(Ink(bg="#6e2329"), Ink(bg="#f6b3ae"), Ink(underline=True), Ink(underline=True)),
        "warn": _row(Ink("#e0ad4b"), Ink("#875600"), Ink("yellow"), _BOLD),
        "danger": _row(Ink("#ff7b7b", bold=True), Ink("#c01c28", bold=True), Ink("red", bold=True), _BOLD),
        "danger-word": _row(
            Ink("#ff7b7b", bold=True),
            Ink("#c01c28", bold=True),
            Ink("red", bold=True),
            Ink(bold=True, reverse=True),
        ),
        "code": _row(Ink("#8fb8ff"), Ink("#0b57b5"), Ink("cyan"), Ink()),
        "code-comment": _row(Ink("#9aa1ab", italic=True), Ink("#5c636c", italic=True), Ink("bright_black"), Ink()),
        "code-keyword": _row(Ink("#e8bdf8"), Ink("#75199a"), Ink("magenta"), Ink()),
        "code-string": _row(Ink("#e8c88a"), Ink("#7a3e00"), Ink("cyan"), Ink()),
        "code-number": _row(Ink("#ffc0a8"), Ink("#902318"), Ink("cyan"), Ink()),
        "code-name": _row(Ink("#a6cdff"), Ink("#0b499b"), Ink(), Ink()),
        "code-type": _row(Ink("#8fe0d8"), Ink("#00524d"), Ink(), Ink()),
        "user": _row(Ink(bg="#2a2d33"), Ink(bg="#eef0f3"), _BOLD, _BOLD),
        "bold": _everywhere(_BOLD),
        "italic": _everywhere(Ink(italic=True)),
        "underline": _everywhere(Ink(underline=True)),
    }
)
"""What each role is used for, and how it looks (docs/terminal.md)."""

_IN_256: Mapping[str, Mapping[Palette, Ink]] = MappingProxyType(
    {
        role: MappingProxyType({Palette.DARK: dark, Palette.LIGHT: light})
        for role, dark, light in (
            ("add-row", Ink("#d7ffd7", "#005f00"), Ink("#1c1c1c", "#d7ffd7")),
            ("add-word", Ink(bg="#005f00", bold=True, underline=True), Ink(bg="#d7ffd7", bold=True, underline=True)),
            ("del-row", Ink("#ffd7d7", "#5f0000"), Ink("#1c1c1c", "#ffd7d7")),
            ("del-word", Ink(bg="#5f0000", bold=True, underline=True), Ink(bg="#ffd7d7", bold=True, underline=True)),
            ("code-comment", Ink("#c6c6c6", italic=True), Ink("#5f5f5f", italic=True)),
            ("code-keyword", Ink("#ffafff"), Ink("#870087")),
            ("code-string", Ink("#ffd787"), Ink("#5f5f00")),
            ("code-number", Ink("#ffafaf"), Ink("#870000")),
            ("code-name", Ink("#afd7ff"), Ink("#005faf")),
            ("code-type", Ink("#87ffd7"), Ink("#005f5f")),
        )
    }
)
"""Looks with 256 colours, which have no dark green and red but these: the tints of `ROLES` would be greys."""

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


class Signs(Struct, frozen=True, kw_only=True):
    """Signs that say the state besides the colour."""

    bar: str = "▎"
    chosen: str = "❯"
    prompt: str = "›"
    ok: str = "✓"
    failed: str = "✗"
    refused: str = "⊘"
    running: str = "●"
    ended: str = "■"
    more: str = "…"
    rule: str = "─"
    arrows: str = "↑↓"
    dot: str = "·"
    thought: str = "∴"
    to_do: str = "○"
    wrapped: str = "↳"
    gap: str = "⋯"
    received: str = "↓ "
    up: str = "↑"
    groups: str = "█▓▒■▪·"
    spinner: str = "⠋⠙⠹⠸⢰⣠⣄⡆"


ASCII_SIGNS = Signs(
    bar="|",
    chosen=">",
    prompt=">",
    ok="ok",
    failed="x",
    refused="-",
    running="*",
    ended="*",
    more="...",
    rule="-",
    arrows="up/down",
    dot="-",
    thought="~",
    to_do="o",
    wrapped=">",
    gap=":",
    received="",
    up="up",
    groups="#%=+o.",
    spinner="|/-\\",
)


_IN_ASCII = str.maketrans("│•─━·…▞▚↑↓←→⋯⚠", "|*---.##^v<>:!")


class Theme(Struct, frozen=True, kw_only=True):
    """The look of one terminal; `true_colour` where it knows more than 256."""

    palette: Palette = Palette.ANSI
    signs: Signs = Signs()
    true_colour: bool = False

    def ink(self, roles: str) -> Ink:
        """Merge the looks of roles (names with blanks between); later ones win."""
        ink = Ink()
        for role in roles.split():
            more = self._look(role)
            ink = Ink(
                fg=more.fg or ink.fg,
                bg=more.bg or ink.bg,
                bold=more.bold or ink.bold,
                dim=more.dim or ink.dim,
                italic=more.italic or ink.italic,
                underline=more.underline or ink.underline,
                reverse=more.reverse or ink.reverse,
            )
        return ink

    @property
    def ascii(self) -> bool:
        """Whether the terminal has no signs beyond ASCII."""
        return self.signs.dot.isascii()

    def legible(self, text: str) -> str:
        """Give a text with every sign of Treadle's own as this terminal has it, as wide as it was."""
        return text.translate(_IN_ASCII) if self.ascii else text

    def sgr(self, roles: str) -> str:
        """Give the control sequence that begins roles; empty where they change nothing."""
        codes = _codes(self.ink(roles), true_colour=self.true_colour)
        return f"\x1b[{';'.join(codes)}m" if codes else ""

    def for_prompt_toolkit(self) -> dict[str, str]:
        """Give the rules of a `prompt_toolkit` style: a class for each role."""
        if self.palette is Palette.DUMB:
            # prompt_toolkit has classes of some of these names, which are bold or underlined.
            return dict.fromkeys(ROLES, "noinherit")
        return {role: _toolkit_style(self._look(role)) for role in ROLES}

    def for_rich(self) -> dict[str, str]:
        """Give the styles of a Rich theme: a name for each role."""
        return {role: _rich_style(self._look(role)) for role in ROLES}

    def _look(self, role: str) -> Ink:
        ink = ROLES[role][self.palette]
        return ink if self.true_colour else _IN_256.get(role, {}).get(self.palette, ink)


def theme_of(environment: Mapping[str, str], *, encoding: str = "utf-8", wanted: Palette | None = None) -> Theme:
    """Choose by what the environment says of the terminal; `wanted` is used where there are enough colours."""
    signs = Signs() if encoding.lower().replace("-", "").startswith("utf8") else ASCII_SIGNS
    if environment.get("TERM") == "dumb":
        return Theme(palette=Palette.DUMB, signs=signs)
    if environment.get("NO_COLOR"):
        return Theme(palette=Palette.PLAIN, signs=signs)
    palette = Palette.ANSI
    if has_backgrounds(environment):
        palette = _background(environment) if wanted is None else wanted
    return Theme(palette=palette, signs=signs, true_colour=_true_colour(environment))


def has_backgrounds(environment: Mapping[str, str]) -> bool:
    """Whether the terminal has the colours of the palettes for dark and light, and they are wanted."""
    if environment.get("TERM") == "dumb" or environment.get("NO_COLOR"):
        return False
    return _true_colour(environment) or "256" in environment.get("TERM", "")


def _true_colour(environment: Mapping[str, str]) -> bool:
    return environment.get("COLORTERM", "") in ("truecolor", "24bit")


def _background(environment: Mapping[str, str]) -> Palette:
    """COLORFGBG ends in the number of the background colour, of sixteen."""
    last = environment.get("COLORFGBG", "").rpartition(";")[2]
    if not last.isdecimal():
        return Palette.ANSI
    return Palette.LIGHT if int(last) in (7, 15) else Palette.DARK


def present_theme(wanted: Palette | None = None) -> Theme:
    """Choose for this process."""
    return theme_of(os.environ, encoding=locale.getpreferredencoding(do_setlocale=False), wanted=wanted)


def _codes(ink: Ink, *, true_colour: bool) -> list[str]:
    flags = ((ink.bold, "1"), (ink.dim, "2"), (ink.italic, "3"), (ink.underline, "4"), (ink.reverse, "7"))
    codes = [code for flag, code in flags if flag]
    if ink.fg:
        codes.append(_colour(ink.fg, background=False, true_colour=true_colour))
    if ink.bg:
        codes.append(_colour(ink.bg, background=True, true_colour=true_colour))
    return codes


def _colour(name: str, *, background: bool, true_colour: bool) -> str:
    if not name.startswith("#"):
        plain = name.removeprefix("bright_")
        base = 90 if plain != name else 30
        return str(base + _NAMES.index(plain) + (10 if background else 0))
    red, green, blue = (int(name[place : place + 2], 16) for place in (1, 3, 5))
    kind = 48 if background else 38
    if true_colour:
        return f"{kind};2;{red};{green};{blue}"
    return f"{kind};5;{_of_256(red, green, blue)}"


_STEPS = (0, 95, 135, 175, 215, 255)


def _of_256(red: int, green: int, blue: int) -> int:
    """Find the nearest of the 256 colours: in the cube, or among the greys."""
    cube = [min(range(6), key=lambda step, part=part: abs(_STEPS[step] - part)) for part in (red, green, blue)]  # type: ignore[misc]
    grey = min(23, max(0, round(((red + green + blue) / 3 - 8) / 10)))
    in_cube = sum((_STEPS[step] - part) ** 2 for step, part in zip(cube, (red, green, blue), strict=True))
    in_grey = sum((8 + 10 * grey - part) ** 2 for part in (red, green, blue))
    return 232 + grey if in_grey < in_cube else 16 + 36 * cube[0] + 6 * cube[1] + cube[2]


def _toolkit_style(ink: Ink) -> str:
    words = ["nostrike"]  # prompt_toolkit has a class `del` of its own, which is struck through
    words += [name for name in ("bold", "dim", "italic", "underline", "reverse") if getattr(ink, name)]
    if ink.fg:
        words.append(f"fg:{_toolkit_colour(ink.fg)}")
    if ink.bg:
        words.append(f"bg:{_toolkit_colour(ink.bg)}")
    return " ".join(words)


def _toolkit_colour(name: str) -> str:
    return name if name.startswith("#") else f"ansi{name.replace('_', '')}"


def _rich_style(ink: Ink) -> str:
    words = [name for name in ("bold", "dim", "italic", "underline", "reverse") if getattr(ink, name)]
    if ink.fg:
        words.append(ink.fg)
    if ink.bg:
        words.append(f"on {ink.bg}")
    return " ".join(words) or "none"
