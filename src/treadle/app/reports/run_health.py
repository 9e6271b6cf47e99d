"""How Treadle is at run time: providers that are not called for a while, keys, and what its data takes on the disk."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from treadle.app.config.layers import load_settings
from treadle.app.config.places import data_directory
from treadle.app.models.model_choice import Models
from treadle.app.models.model_rows import provider_lines, without_secrets
from treadle.protocol.base import Record
from treadle.providers.breaker import process_circuits

_MOST_FILES = 100_000
"""Files of one kind that are measured; of more the size is a lower bound."""

_KINDS = {
    "sessions": ("sessions.db", "sessions.db-wal", "sessions.db-shm", "sessions.db-words"),
    "checkpoints": ("checkpoints",),
    "command output": ("output",),
    "MCP servers": ("mcp",),
    "trust, rules and policy": ("trust", "rules", "policy"),
    "program log": ("treadle.log",),
}


class CircuitLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """An address that sessions of this process called; `seconds` until it is called again, None while it works."""

    address: str
    seconds: float | None


class KeyLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A provider with a key: where it comes from, never the key. `problem` says why it cannot be called."""

    provider: str
    title: str
    origin: str
    problem: str


class DiskLine(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What one kind of data takes; `whole`: all of it was measured."""

    kind: str
    bytes: int
    files: int
    whole: bool


class DiskReport(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The data folder by kinds, the largest first, and what the disk has left; in bytes."""

    folder: str
    lines: tuple[DiskLine, ...]
    free: int
    size: int


def circuit_lines() -> tuple[CircuitLine, ...]:
    """List the providers' addresses that this process called, those that are not called now first."""
    known = process_circuits().left_alone()
    lines = [CircuitLine(address=without_secrets(place), seconds=seconds) for place, seconds in known.items()]
    return tuple(sorted(lines, key=lambda line: (line.seconds is None, line.address)))


def found_keys() -> tuple[KeyLine, ...]:
    """List the providers that have a key. Raises `ConfigError`."""
    return tuple(
        KeyLine(provider=line.name, title=line.title, origin=line.key_origin, problem=line.problem)
        for line in provider_lines(Models(load_settings({})))
        if line.key_origin
    )


def disk_report() -> DiskReport:
    """Measure the data folder. Takes its time."""
    folder = data_directory()
    there = sorted(os.listdir(folder)) if folder.is_dir() else []  # noqa: PTH208 - names suffice
    of_kind = {name: kind for kind, names in _KINDS.items() for name in names}
    groups: dict[str, list[Path]] = {}
    for name in there:
        groups.setdefault(of_kind.get(name, "other"), []).append(folder / name)
    lines = [_measured(kind, places) for kind, places in groups.items()]
    existing = next(one for one in (folder, *folder.parents) if one.exists())
    usage = shutil.disk_usage(existing)
    return DiskReport(
        folder=str(folder),
        lines=tuple(sorted(lines, key=lambda line: -line.bytes)),
        free=usage.free,
        size=usage.total,
    )


def _measured(kind: str, places: list[Path]) -> DiskLine:
    size = count = 0
    for found in _sizes(places):
        size, count = size + found, count + 1
        if count == _MOST_FILES:
            return DiskLine(kind=kind, bytes=size, files=count, whole=False)
    return DiskLine(kind=kind, bytes=size, files=count, whole=True)


def _sizes(places: list[Path]) -> Iterator[int]:
    """Give the size of each file; what cannot be looked at, or is gone meanwhile, has none. Links are not followed."""
    waiting = list(places)
    while waiting:
        place = waiting.pop()
        try:
            if place.is_dir() and not place.is_symlink():
                waiting += list(place.iterdir())
            else:
                yield place.lstat().st_size
        except OSError:
            continue
