"""Parse model replies given as JSON lines, in chunks as they would stream, and write what they contain."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import field

from treadle.parsing import CallFragment, ToolGrammar, grammar_of, parse_chunks
from treadle.protocol.base import Record
from treadle.protocol.codec import encode
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ToolProtocol


class ReplyRow(Record, frozen=True, kw_only=True):
    """One reply."""

    id: str | int
    chunks: tuple[str | CallFragment, ...]


class ToolRow(Record, frozen=True, kw_only=True):
    """A tool of the --tools file: a name and the JSON Schema of its arguments."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    input_schema: dict[str, Any] = field(default_factory=dict)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    protocols = [protocol.value for protocol in ToolProtocol]
    parser.add_argument(
        "--jsonl", action="store_true", required=True, help="read rows {id, chunks}, write {id, blocks, errors}"
    )
    parser.add_argument("--protocol", choices=protocols, default="xml", help="how calls are written (default: xml)")
    parser.add_argument(
        "--tools", type=Path, metavar="FILE", help="a JSON list of {name, parameters}; default: the built-in tools"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Read what comes on standard input."""
    tools = _built_in() if arguments.tools is None else _read_tools(arguments.tools)
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            row = msgspec.json.decode(line, type=ReplyRow)
        except msgspec.MsgspecError as error:
            answer: object = {"id": None, "blocks": [], "errors": [{"code": "bad_row", "message": str(error)}]}
        else:
            answer = {"id": row.id, **parse_chunks(row.chunks, arguments.protocol, tools)}
        sys.stdout.write(f"{encode(answer).decode()}\n")
    return 0


def _built_in() -> Sequence[ToolGrammar]:
    from treadle.door.opening import tool_specs

    return [grammar_of(spec.name, spec.parameters) for spec in tool_specs()]


def _read_tools(file: Path) -> Sequence[ToolGrammar]:
    try:
        tools = msgspec.json.decode(file.read_bytes(), type=tuple[ToolRow, ...])
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError("tools-file", f"The tools file {file} cannot be read.", why=str(error)) from error
    return [grammar_of(tool.name, tool.parameters or tool.input_schema) for tool in tools]
