"""The look of the app on this terminal, and the terminal for the time of a session: it is asked for its background."""

import os
import select
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from msgspec import Struct
from msgspec.structs import replace
from prompt_toolkit.application import get_app_session
from prompt_toolkit.input.typeahead import store_typeahead

from treadle.door.settings import Colours, Editing, Settings, borrowed_terminal, data_directory
from treadle.tui.draft.pasting import parse_keys
from treadle.tui.paint.colour_replies import ASK, is_dark
from treadle.tui.paint.hyperlinks import supports_links
from treadle.tui.paint.theme import Palette, Signs, Theme, has_backgrounds, present_theme

ANSWER_SECONDS = 0.06
"""How long a terminal may take to say what its background is; a later answer is taken out of what is typed."""

_SILENT = Signs(ok="", failed="", refused="")

_WANTED = {Colours.DARK: Palette.DARK, Colours.LIGHT: Palette.LIGHT, Colours.ANSI: Palette.ANSI}


class Look(Struct, frozen=True, kw_only=True):
    """Colours and signs, whether anything moves, and which keys edit the input line; `plain` is lines, none redrawn.

    `keys` are further ones by their actions, `status_line` is the command whose output is shown below the status. With
    `links` paths and addresses are links.
    """

    theme: Theme
    animated: bool
    editing: Editing = Editing.EMACS
    keys: Mapping[str, str] = {}
    plain: bool = False
    status_line: str = ""
    links: bool = False


def look_of(settings: Settings, *, dark: bool | None = None) -> Look:
    """Choose by the settings and the environment; `dark` is what the terminal says of its background."""
    theme = present_theme(_palette(settings.theme, dark))
    still = theme.palette is Palette.DUMB or bool(os.environ.get("SSH_CONNECTION"))
    return Look(
        theme=theme,
        animated=settings.animation and not still,
        editing=settings.editing,
        keys=settings.keys,
        status_line=settings.status_line,
        links=settings.links and theme.palette is not Palette.DUMB and supports_links(os.environ),
    )


def _palette(colours: Colours, dark: bool | None) -> Palette | None:  # noqa: FBT001 - what the terminal says
    """Give the wanted palette; None: what the environment says of the background decides."""
    answered = None if dark is None else Palette.DARK if dark else Palette.LIGHT
    return _WANTED.get(colours, answered)


def asked_first(colours: Colours) -> bool:
    """Whether the terminal is to be asked for its background before these colours are used."""
    return colours is Colours.AUTO and has_backgrounds(os.environ)


def recoloured(theme: Theme, colours: Colours, *, dark: bool | None) -> Theme:
    """Give a theme in other colours; its signs stay, and one without any style stays so."""
    if theme.palette is Palette.DUMB:
        return theme
    return replace(theme, palette=present_theme(_palette(colours, dark)).palette)


def unseen_colours(theme: Theme, colours: Colours) -> str:
    """Say why wanted colours are not those that are shown; empty where they are."""
    if theme.palette in (Palette.PLAIN, Palette.DUMB):
        return (
            f"It shows in other terminals: {'NO_COLOR is set' if os.environ.get('NO_COLOR') else 'TERM is dumb'} here."
        )
    if colours in _WANTED and theme.palette is not _WANTED[colours]:
        return "It shows in other terminals: this one says that it has 16 colours only, and they are used."
    return ""


@contextmanager
def prepared_terminal(settings: Settings) -> Iterator[Look]:
    """Take the terminal for a session: what is typed is not shown twice, and all is as before afterwards.

    For a screen reader nothing is changed: the terminal shows and corrects what is typed.
    """
    if settings.screen_reader:
        with borrowed_terminal(data_directory() / "terminals"):
            yield Look(theme=Theme(palette=Palette.DUMB, signs=_SILENT), animated=False, plain=True)
        return
    with borrowed_terminal(data_directory() / "terminals"), _quiet() as quiet:
        asks = quiet and asked_first(settings.theme)
        yield look_of(settings, dark=_ask_background() if asks else None)


@contextmanager
def _quiet() -> Iterator[bool]:
    """Let the terminal show nothing that is typed or answered before the app reads it; gives whether that works."""
    try:
        before = termios.tcgetattr(0)
        if not sys.stdout.isatty() or os.tcgetpgrp(0) != os.getpgrp():
            raise OSError
        quiet = [*before]
        quiet[3] = before[3] & ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(0, termios.TCSANOW, quiet)
    except (OSError, termios.error):
        yield False
        return
    try:
        yield True
    finally:
        with suppress(termios.error):
            termios.tcsetattr(0, termios.TCSANOW, before)


def _ask_background() -> bool | None:
    """Ask whether the background is dark; None where the terminal does not say so in time. Keys are kept."""
    sys.stdout.write(ASK)
    sys.stdout.flush()
    data, dark = b"", None
    end = time.monotonic() + ANSWER_SECONDS
    with suppress(OSError):
        while dark is None and (left := end - time.monotonic()) > 0 and select.select([0], [], [], left)[0]:
            read = os.read(0, 4096)
            if not read:
                break
            data += read
            dark = is_dark(data.decode(errors="replace"))
    _type_again(data)
    return dark


def _type_again(data: bytes) -> None:
    """Give the app what was read, as if it were typed now; it takes replies out itself, whole or in part."""
    source = get_app_session().input
    parser = parse_keys(source)
    if parser is not None and data:
        parser.feed(data.decode(errors="surrogateescape"))
        store_typeahead(source, source.flush_keys())
