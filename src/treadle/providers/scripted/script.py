"""A script as data: turns of items, conditions and expectations; read from JSON or TOML."""

import tomllib
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from treadle.protocol.base import Record, Tagged
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ErrorKind, ReplyStop
from treadle.protocol.usage import Usage


class SayText(Tagged, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="text"):
    """Says text."""

    text: str


class SayThinking(Tagged, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="thinking"):
    """Thinks aloud; `redacted` is an encrypted block instead."""

    text: str = ""
    signature: str = "scripted"
    redacted: str = ""


class MakeCall(Tagged, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="call"):
    """Calls a tool. `raw` is written instead of the arguments' JSON, to send damaged arguments."""

    name: str
    arguments: dict[str, Any] = msgspec.field(default_factory=dict)
    id: str = ""
    raw: str | None = None


class Wait(Tagged, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="wait"):
    """Says nothing for some seconds."""

    seconds: float


class Refuse(Tagged, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="error"):
    """Answers with an HTTP error; must be the first item. Only the first `times` times, if that is not 0.

    `code` is the provider's own error code; `body` is sent instead of an error in the provider's form.
    """

    status: int
    message: str = "as the script says"
    code: str = ""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    body: str | None = None
    times: int = 0


class BreakOff(Tagged, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="stream_error"):
    """Sends an error event inside the stream; only the first `times` times, if that is not 0."""

    kind: ErrorKind = ErrorKind.OVERLOADED
    message: str = "as the script says"
    times: int = 0


class Cut(Tagged, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="cut"):
    """Drops the connection; only the first `times` times, if that is not 0.

    Over HTTP, `after_bytes` more bytes of the reply are still sent. In process there are no bytes: it ends here.
    """

    after_bytes: int = 0
    times: int = 0


ScriptItem: TypeAlias = SayText | SayThinking | MakeCall | Wait | Refuse | BreakOff | Cut


class Texts(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a text must and must not contain; for tool names, the names themselves."""

    contains: tuple[str, ...] = ()
    not_contains: tuple[str, ...] = ()


class Expectation(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a request must look like; everything that is given must hold.

    `messages` counts messages, neighbours of one role as one. `last_result` is the text of the last results; where no
    tools are offered results are plain text, so it is the last user message then.
    """

    last_user: Texts = Texts()
    last_result: Texts = Texts()
    system: Texts = Texts()
    conversation: Texts = Texts()
    tools: Texts = Texts()
    messages: int | None = None
    assistant_messages: int | None = None
    result_is_error: bool | None = None
    model: str | None = None


class Pace(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How text and arguments are cut into deltas: characters each (0: whole), seconds before each."""

    chunk: int = 0
    delay: float = 0.0


class Turn(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reply. Without `when` it answers the request that has as many assistant messages as turns stand before it."""

    items: tuple[ScriptItem, ...] = ()
    when: Expectation | None = None
    expect: Expectation = Expectation()
    stop: ReplyStop | None = None
    usage: Usage | None = None
    pace: Pace | None = None


class Script(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole script. `otherwise` answers what would be refused: no turn is left, or one expected something else."""

    turns: tuple[Turn, ...]
    otherwise: Turn | None = None
    model: str = "scripted"
    pace: Pace = Pace()


def load_script(path: Path) -> Script:
    """Read a script from a `.json` or `.toml` file; raises `ConfigError`."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "script-unreadable",
            f"The script {path} cannot be read.",
            why=str(error),
            fix="Name a file with a script; docs/scripted-model.md describes it.",
        ) from error
    try:
        value = tomllib.loads(raw.decode()) if path.suffix == ".toml" else msgspec.json.decode(raw)
        script = msgspec.convert(value, Script)
    except (ValueError, msgspec.MsgspecError) as error:
        raise ConfigError(
            "script-invalid",
            f"The script {path} is not valid.",
            why=str(error),
            fix="docs/scripted-model.md describes the form.",
        ) from error
    check_script(script, str(path))
    return script


def check_script(script: Script, name: str) -> None:
    """Raise `ConfigError` where an HTTP error stands behind something that was already said."""
    for number, turn in enumerate(script.turns, 1):
        said = False
        for item in turn.items:
            if isinstance(item, Refuse) and said:
                why = f"Turn {number} has an 'error' after something else; use 'stream_error' there."
                raise ConfigError("script-invalid", f"The script {name} is not valid.", why=why)
            said = said or not isinstance(item, Refuse | Wait)
