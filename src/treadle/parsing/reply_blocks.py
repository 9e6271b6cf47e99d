"""What a reply parser takes and gives: tool grammars in, blocks out.

Blocks are msgspec structs because there is one for every chunk: making one takes a fifth of the time of a
frozen dataclass, which would be half of the time of a parser.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from treadle.parsing.aliases import written_aliases
from treadle.parsing.readings import Reading


class ToolGrammar(Struct, frozen=True):
    """The shape of one tool: its name, its parameters and which of them a call must have.

    `aliases` maps other names that are read, too, to what they stand for.
    """

    name: str
    parameters: tuple[str, ...]
    required: tuple[str, ...] = ()
    aliases: Mapping[str, str] = {}


def grammar_of(name: str, json_schema: Mapping[str, Any], *, aliases: bool = False) -> ToolGrammar:
    """Read the grammar of tool `name` off the JSON schema of its arguments, with other names if wanted."""
    parameters = tuple(json_schema.get("properties", {}))
    required = set(json_schema.get("required", ()))
    closed = json_schema.get("additionalProperties", True) is False
    others = written_aliases(parameters) if aliases and closed else {}
    return ToolGrammar(name, parameters, tuple(p for p in parameters if p in required), others)


class ContentDelta(msgspec.Struct, frozen=True):
    """The next piece of the text that the user reads."""

    text: str


class ReasoningDelta(msgspec.Struct, frozen=True):
    """The next piece of the model's reasoning."""

    text: str


class CallOpened(msgspec.Struct, frozen=True):
    """A call begins. `index` counts the calls of the reply; the call may still turn out malformed."""

    index: int
    name: str
    call_id: str | None = None


class ParameterDelta(msgspec.Struct, frozen=True):
    """The next piece of one parameter's value, for a live preview.

    XML: the value's own text. Native JSON: the decoded text of a string, the raw JSON of any other type.
    """

    index: int
    name: str
    text: str


class CallComplete(msgspec.Struct, frozen=True):
    """A whole call. `arguments` are strings for XML and JSON values for native calls.

    `source` is the call as the model wrote it: its XML text or its argument JSON. `readings` are those of its
    notation; its names and values are read later.
    """

    index: int
    name: str
    arguments: dict[str, Any]
    call_id: str | None = None
    source: str = ""
    readings: tuple[Reading, ...] = ()


class Malformation(msgspec.Struct, frozen=True):
    """A call that will never complete. `message` tells the model what was wrong and what to do.

    `index` and `name` are those of the call's `CallOpened`. `source` is the text that goes with the call, so
    that texts and sources together are the whole reply.
    """

    code: str
    message: str
    index: int | None = None
    name: str = ""
    source: str = ""


ParserEvent: TypeAlias = ContentDelta | ReasoningDelta | CallOpened | ParameterDelta | CallComplete | Malformation
