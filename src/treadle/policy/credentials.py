"""The values in files that hold credentials, so that they can be hidden wherever they turn up."""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from treadle.policy.secret_formats import looks_random
from treadle.policy.shell.tables.dangers import VARIABLES_SECRET

IN_HOME = (
    ".netrc",
    ".aws/credentials",
    ".config/gh/hosts.yml",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".docker/config.json",
    ".cargo/credentials.toml",
    ".vault-token",
)
"""Files below the home directory that are read for their values."""

_LONGEST = 4096
_ASSIGNMENT = re.compile(
    r"""(?m)^\s*(?:export\s+)?["']?([\w./:@-]*?)["']?\s*[=:]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s\#]*))"""
)
_NETRC = re.compile(r"\b(?:password|account)\s+(\S+)")
_NPMRC = re.compile(r"_(?:authToken|auth|password)\s*=\s*[\"']?([^\s\"']+)")
_ADDRESS = re.compile(r"://[^\s/:@]*:([^\s/@]+)@")
_SECRET_FIELDS = re.compile(r"(?i)auth|_?token|oauth_token|password|secret\w*|identitytoken|registrytoken")
_NO_SECRETS = frozenset({"true", "false", "none", "null", "development", "production", "localhost"})


def values_of(name: str, text: str) -> Iterator[str]:
    """Give the secrets of a file by its name (its last parts, with `/`)."""
    if name.endswith("netrc"):
        yield from _NETRC.findall(text)
    elif name.endswith(("git-credentials", "git/credentials")):
        yield from _ADDRESS.findall(text)
    elif name.endswith(".npmrc"):
        yield from _NPMRC.findall(text)
    elif name.endswith(".pgpass"):
        yield from (line.rpartition(":")[2] for line in text.splitlines() if line.count(":") >= 4)
    elif name.endswith(".vault-token"):
        yield text.strip()
    elif name.endswith(".json"):
        with suppress(ValueError, RecursionError):
            yield from _fields(json.loads(text))
    else:
        yield from _assigned(text)


def _assigned(text: str) -> Iterator[str]:
    """Give what is assigned to names of secrets, what looks like a key, and the passwords of addresses."""
    for name, *values in _ASSIGNMENT.findall(text):
        value = "".join(values)
        if not value or len(value) > _LONGEST or value.lower() in _NO_SECRETS or value.startswith(("/", "$")):
            continue
        passwords = _ADDRESS.findall(value)
        yield from passwords
        is_key = len(value) >= 20 and looks_random(value)
        if not passwords and "://" not in value and (is_key or VARIABLES_SECRET.fullmatch(name)):
            yield value


def _fields(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, inner in value.items():
                if isinstance(inner, str) and _SECRET_FIELDS.fullmatch(name):
                    yield inner
                else:
                    yield from _fields(inner)
        case list():
            for inner in value:
                yield from _fields(inner)
        case _:
            pass
