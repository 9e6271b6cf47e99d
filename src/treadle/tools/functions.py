"""A Python function with type hints as a tool: for programs that use Treadle as a library, and for plugins."""

import asyncio
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_type_hints

import msgspec

from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.tools import (
    Access,
    CallResult,
    Origin,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolKind,
    ToolSpec,
    ToolTraits,
)
from treadle.tools.foreign_calls import RaisedByFunction, call_foreign
from treadle.tools.quoted_words import result_of
from treadle.workspace.files.text import HeadTail, visible

_CHARACTERS = 32 * 1024
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_ARGUMENTS = re.compile(r"(Args|Arguments|Parameters):")
_LEFT_OUT = re.compile(r"(Returns|Yields|Raises):")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")

Accesses: TypeAlias = Callable[[Mapping[str, Any]], tuple[Access, ...]]
"""Tells from the arguments what a call will touch, for the policy to judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionTraits:
    """What a signature cannot tell: how risky a call is, what a second run would do, and what it touches.

    By default a function may do anything, so that each call is asked about and none is run twice by itself.
    """

    risk: Risk = Risk.EXECUTE
    effect: ToolEffect = ToolEffect.ONCE
    kind: ToolKind = ToolKind.OTHER
    accesses: Accesses | None = None


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function as a tool. Made by `function_tool`."""

    function: Callable[..., Any]
    spec: ToolSpec
    arguments: type[msgspec.Struct]
    accesses: Accesses | None = None

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Convert the arguments to the types that the function declares; raises `ToolError` when they do not fit."""
        try:
            converted = msgspec.convert(dict(arguments), self.arguments)
        except msgspec.ValidationError as error:
            raise ToolError(f"The arguments do not fit: {error}. Correct them and call again.", invalid=True) from error
        values = {name: getattr(converted, name) for name in self.arguments.__struct_fields__}

        async def run(output: Output) -> CallResult:
            return await _run(self.spec.name, self.function, values, output)

        shown = "\n".join(f"{name}: {visible(str(value))}" for name, value in arguments.items())
        return Prepared(
            accesses=self.accesses(arguments) if self.accesses else (),
            preview=Preview(title=f"Call {self.spec.name}", text=shown),
            run=run,
        )


def function_tool(
    function: Callable[..., Any], *, name: str = "", description: str = "", traits: FunctionTraits = FunctionTraits()
) -> FunctionTool:
    """Make a tool of a function, synchronous or not.

    Name and description are those of the function unless given; an `Args:` section of its docstring describes the
    parameters. Each parameter needs a type hint that JSON can express. What the function returns is sent as text,
    or as JSON if it is none; a `CallResult` goes out as it is. Raises `ConfigError` when no tool can be made of it.
    """
    name = name or getattr(function, "__name__", "")
    if not _NAME.fullmatch(name):
        raise _unfit(name or repr(function), "a tool's name has letters, digits and `_` only", "Give it with `name`.")
    summary, documented = read_docstring(inspect.getdoc(function) or "")
    description = description or summary
    if not description:
        raise _unfit(name, "it has no docstring", "Write one. It is how the model knows what the tool does.")
    arguments = _arguments_of(name, function)
    spec = ToolSpec(
        name=name,
        description=description,
        parameters=_schema(name, arguments, documented),
        traits=ToolTraits(kind=traits.kind, effect=traits.effect),
        risk=traits.risk,
    )
    return FunctionTool(function, spec, arguments, traits.accesses)


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into its text and the descriptions of its `Args:` section; what it returns is left out."""
    kept: list[str] = []
    section: list[str] | None = None
    arguments: list[str] = []
    for line in text.splitlines():
        if line.strip() and not line.startswith((" ", "\t")):
            header = line.strip()
            section = arguments if _ARGUMENTS.fullmatch(header) else [] if _LEFT_OUT.fullmatch(header) else None
            if section is not None:
                continue
        (kept if section is None else section).append(line)
    return "\n".join(kept).strip(), _read_arguments(arguments)


def _read_arguments(lines: Sequence[str]) -> dict[str, str]:
    """Read `name: text` entries, whose text may go on in lines that are further in."""
    described: dict[str, list[str]] = {}
    current: list[str] = []
    filled = [line for line in lines if line.strip()]
    indent = min((len(line) - len(line.lstrip()) for line in filled), default=0)
    for line in filled:
        content = line.strip()
        if not line[indent].isspace() and (found := _PARAMETER.fullmatch(content)):
            current = described.setdefault(found.group(1), [])
            content = found.group(2)
        current.append(content)
    return {name: " ".join(filter(None, words)) for name, words in described.items()}


def _unfit(name: str, why: str, fix: str) -> ConfigError:
    return ConfigError("tool-function", f"{name} cannot become a tool: {why}.", fix=fix)


def _arguments_of(name: str, function: Callable[..., Any]) -> type[msgspec.Struct]:
    """Build the record of a function's parameters."""
    try:
        signature = inspect.signature(function)
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, ValueError) as error:
        raise _unfit(name, f"its signature cannot be read ({error})", "Import what its type hints name.") from error
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in signature.parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise _unfit(name, f"its parameter {parameter} cannot be passed by name", "Use plain parameters.")
        if parameter.name not in hints:
            raise _unfit(name, f"its parameter {parameter.name} has no type hint", "Add one, such as `str`.")
        field = (parameter.name, hints[parameter.name])
        fields.append(field if parameter.default is parameter.empty else (*field, _default(parameter.default)))
    try:
        record: type[msgspec.Struct] = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
    except (TypeError, ValueError) as error:
        raise _unfit(name, str(error), "Use types that JSON can express.") from error
    return record


def _default(value: Any) -> Any:
    """Give each call a default of its own where a list, set or mapping could be changed by the function."""
    match value:
        case list() | dict() | set():
            return msgspec.field(default_factory=value.copy)
        case _:
            return value


def _schema(name: str, record: type[msgspec.Struct], documented: Mapping[str, str]) -> dict[str, Any]:
    """Write the JSON Schema of the parameters; what they share stands under `$defs`."""
    try:
        (schema,), components = msgspec.json.schema_components((record,), ref_template="#/$defs/{name}")
    except TypeError as error:
        raise _unfit(name, str(error), "Use types that JSON can express.") from error
    own: dict[str, Any] = components.pop(schema["$ref"].removeprefix("#/$defs/"))
    properties = {
        parameter: {"description": documented[parameter], **about} if documented.get(parameter) else about
        for parameter, about in own["properties"].items()
    }
    found = {
        "type": "object",
        "properties": properties,
        "required": own["required"],
        "additionalProperties": False,
    }
    return {**found, "$defs": components} if components else found


async def _run(name: str, function: Callable[..., Any], values: Mapping[str, Any], output: Output) -> CallResult:
    try:
        returned = await call_foreign(function, values)
    except asyncio.CancelledError:
        if not inspect.iscoroutinefunction(function):
            output(f"{name} cannot be stopped: its function may still run, and do all that it was called for.")
        raise
    match returned:
        case RaisedByFunction(ToolError() as error):
            raise error
        case RaisedByFunction(error):
            raise ToolError(
                f"{name} failed: {type(error).__name__}: {error}. Check the arguments, or continue without it."
            ) from error
        case CallResult():
            return returned
        case _:
            return result_of(Origin.COMMAND, Outcome.OK, _text_of(name, returned))


def _text_of(name: str, returned: object) -> str:
    if returned is None:
        return "Done."
    kept = HeadTail(_CHARACTERS)
    try:
        kept.add(returned if isinstance(returned, str) else msgspec.json.encode(returned).decode())
    except (TypeError, msgspec.MsgspecError) as error:
        what = type(returned).__name__
        raise ToolError(
            f"{name} did its work, but returned a {what}, which cannot be sent: {error}. "
            "Do not call it again for this. Continue without what it returns."
        ) from error
    return visible(kept.take()) or "(empty)"
