"""Sections of the settings: the model's window, diagnostics of each edit, the terminal app's colours and keys."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from treadle.context.compaction import CompactionSettings, CompactionStrategy
from treadle.protocol.base import Record

_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")


class ContextSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`compact_at` is a part of the window up to 1, or a number of tokens; without it, well before the window's end.

    `keep` is the part of the messages that stays. With the strategy `summary` the model sums up what leaves, with
    `drop` the log's facts of it have to do, with `auto` it depends on the window. `costly_request` is the price of a
    request in US dollars above which a cheaper configured model is named; 0 is never.
    """

    compact_at: Annotated[float, msgspec.Meta(gt=0)] | None = None
    keep: Annotated[float, msgspec.Meta(ge=0.05, le=0.9)] = 0.5
    strategy: CompactionStrategy = CompactionStrategy.AUTO
    costly_request: Annotated[float, msgspec.Meta(ge=0)] = 0.5

    @property
    def compaction(self) -> CompactionSettings:
        """The same for the engine."""
        return CompactionSettings(compact_at=self.compact_at, keep=self.keep, strategy=self.strategy)


class NetworkSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts that commands reach without asking, and hosts that they never reach.

    `pypi.org` names one, `.example.com` all below it. `needs` names hosts that the work needs, each by itself: they are
    asked about together, and nothing is allowed by it. `loopback_ports` are ports of this machine's own servers that
    commands reach on `localhost`, too.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    needs: Annotated[tuple[str, ...], msgspec.Meta(max_length=20)] = ()
    loopback_ports: tuple[Annotated[int, msgspec.Meta(ge=1024, le=65535)], ...] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for what is no name of a host."""
        for one in (*self.allow, *self.deny, *self.needs):
            if "." not in one.strip(".") or one != one.lower().rstrip(".") or not set(one) <= _HOST_CHARACTERS:
                raise ValueError(
                    f"network contains {one!r}, which is neither a host such as 'pypi.org' nor '.pypi.org'"
                )
        if some := next((one for one in self.needs if one.startswith(".")), ""):
            raise ValueError(f"network.needs contains {some!r}: name each host, as they are all asked about")


class DiagnosticSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One language server (`server`, a program with its arguments) or linter (`command`, a shell line).

    `files` are globs of file names; `seconds` is how long an edit waits, before and again after it. Of a linter,
    `pattern` is a regular expression for the lines of its output that name problems. Of a server, `language` is the
    language id to tell it, `options` go along with its start, `settings` are what it is answered when it asks.
    """

    command: str = ""
    server: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    pattern: str = ""
    language: str = ""
    options: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0


class Colours(StrEnum):
    """Which colours the terminal app uses; `auto` goes by the terminal's background."""

    AUTO = "auto"
    DARK = "dark"
    LIGHT = "light"
    ANSI = "ansi"


class Editing(StrEnum):
    """Which keys edit the input line."""

    EMACS = "emacs"
    VIM = "vim"
