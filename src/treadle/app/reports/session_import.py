"""Importing sessions: which format a file has, and what became of each session in it."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct


class ImportReport(Struct, frozen=True, kw_only=True):
    """What to say: a session that was taken or skipped, or with `problem` what was left out. `failed`: all of it."""

    text: str
    problem: bool = False
    failed: bool = False


def import_sessions(path: Path) -> Iterator[ImportReport]:
    """Import what a file or folder holds; raises `ConfigError`, `StoreError`."""
    yield ImportReport(text=f"{path} holds nothing that can be imported.", problem=True, failed=True)
