"""What is hidden wherever it turns up: the secrets of the environment, of credential files, and Treadle's own keys."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from treadle.app.config.places import read_regular
from treadle.app.config.sections import Settings
from treadle.app.models.provider_keys import stored_values
from treadle.policy.secret_formats import IN_HOME, values_of
from treadle.policy.secrets import Redactor, known_secrets
from treadle.protocol.patterns import regex
from treadle.protocol.protected_names import secret_name

_LARGEST = 256 * 1024
_MOST_FILES = 20
_COULD_BE_CODE = regex(r"[\s;&|<>()$`]")
"""What a workspace calls a secret must not be able to hide a piece of a command from the person who is asked."""


def session_redactor(
    workspace: str,
    settings: Settings,
    environment: Mapping[str, str] = os.environ,
    *,
    roots: Sequence[str] = (),
    also: Sequence[tuple[str, str]] = (),
) -> Redactor:
    """Collect what one session hides: it reads a handful of small files, and keeps nothing of them on disk.

    `roots` are further folders of the workspace, `also` are values with their names.
    """
    named = [(environment.get(one.api_key_env, ""), one.api_key_env) for one in settings.providers.values()]
    return known_secrets(
        environment, [*named, *also, *stored_values(), *_in_files([Path(one) for one in (workspace, *roots)])]
    )


def _in_files(folders: Sequence[Path]) -> Iterator[tuple[str, str]]:
    home = Path.home()
    of_folders = [file for folder in folders for file in _environment_files(folder)]
    for file in (*(home / name for name in IN_HOME), *of_folders):
        text = _read(file)
        ours = file.parent not in folders
        label = f"~/{file.relative_to(home)}" if ours else file.name
        for value in values_of(file.as_posix(), text):
            if ours or not _COULD_BE_CODE.search(value):
                yield value, label


def _environment_files(folder: Path) -> list[Path]:
    """List a folder's own files of variables."""
    try:
        files = sorted(file for file in folder.iterdir() if ".env" in file.name and secret_name(file.name))
    except OSError:
        return []
    return files[:_MOST_FILES]


def _read(file: Path) -> str:
    """Read a small file; empty where there is none. A pipe or device is not waited for."""
    try:
        content = read_regular(file, _LARGEST) or b""
    except OSError:
        return ""
    return content[:_LARGEST].decode(errors="replace")
