"""The files of a folder that its hooks name in their commands: who trusts the hooks trusts these with them."""

import os
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from treadle.protocol.codec import texts_within
from treadle.protocol.patterns import regex

_MOST = 200
_WORD = regex(r"[^\s\"'`;|&()<>=,]+")
_FROM_VARIABLE = regex(r"\$\{?\w+\}?[\"']?/")


def named_scripts(workspace: Path, top: Path, name: str, content: bytes) -> list[Path]:
    """Find the files that the hooks of a settings file name, in the folder or up to the top of its repository."""
    texts = texts_within(hooks_in(name, content))
    return list(islice(filter(_is_file, named_paths(workspace, top, texts)), _MOST))


def named_paths(workspace: Path, top: Path, texts: Iterable[str]) -> Iterator[Path]:
    """Give the paths that the texts of a hook may name, whether anything is there or not."""
    words = dict.fromkeys(word for text in texts for word in _words(text))
    files = dict.fromkeys(Path(os.path.normpath(workspace / word)) for word in words)
    return (file for file in files if file.is_relative_to(top))


def hooks_in(name: str, content: bytes) -> Any:
    """Read the hooks of settings; of what cannot be read, such as JSON with comments, all of it may be one."""
    text = content.decode(errors="replace")
    try:
        table: Any = tomllib.loads(text) if name.casefold().endswith(".toml") else msgspec.json.decode(content)
    except (ValueError, RecursionError):
        return text
    return table.get("hooks") if isinstance(table, dict) else None


def _words(text: str) -> Iterator[str]:
    """Give the words of a shell line, and the line itself, with what a variable of the folder begins left out."""
    text = _FROM_VARIABLE.sub("", text)
    yield text
    yield from _WORD.findall(text)
    with suppress(ValueError):
        yield from shlex.split(text)


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        return False
