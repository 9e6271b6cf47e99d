"""What a user can set of diagnostics: language servers and linters that look at each edit."""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from treadle.protocol.base import Record


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
