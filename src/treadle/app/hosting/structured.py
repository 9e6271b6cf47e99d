"""The answer of a task as a value of a JSON Schema: the tool that takes it, and the word to a model without one."""

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from itertools import islice
from typing import Any

from treadle.app.config.hook_settings import HookEvent
from treadle.app.hooks.hook_rows import HookAnswer, HookRow
from treadle.engine.ports import Output, Prepared
from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.notifications import TurnOutcome, TurnStop
from treadle.protocol.tools import (
    CallResult,
    Flow,
    Outcome,
    Preview,
    Risk,
    ToolEffect,
    ToolSpec,
    ToolTraits,
    result_text,
)

_NAME = "StructuredOutput"
_MOST_REMINDERS = 5
"""Times that the model is asked for a missing answer before the turn ends without it."""

PROMPT = f"""# The answer

Give the final answer of each task by calling `{_NAME}`, once, as the last thing that you do. It ends the task. \
Do not use `attempt_completion`, and do not answer in plain text."""

_AGAIN = f"The answer is still missing. Give it now by calling `{_NAME}` with arguments that fit its schema."

NO_ANSWER = "The model did not give an answer that fits the JSON Schema."
"""Why a task failed whose answer is missing."""

_VALUE = "value"
_SHOWN = 5


class StructuredAnswer:
    """The tool that takes the answer; `value` is what the last turn gave, None where it gave none.

    A schema that is not of an object is put into one, with the answer as its `value`. Its `hook` keeps a turn of the
    session that it has joined from ending without an answer, a few times.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raises `ConfigError` for a schema that is none."""
        _check_schema(schema)
        self.value: Any = None
        self.given = False
        self.hook = HookRow(event=HookEvent.STOP, handler=self._at_end, name="of --json-schema", changes_files=False)
        self._session_id = ""
        self._awaits: Callable[[], bool] = lambda: False
        self._reminders = 0
        self._schema = schema
        self._wrapped = schema.get("type") != "object"
        inner = _below(schema)
        wrapped = {"type": "object", "properties": {_VALUE: inner}, "required": [_VALUE]}
        self.spec = ToolSpec(
            name=_NAME,
            description="Give the final answer of the task, in exactly this form. The task ends with it.",
            parameters=wrapped if self._wrapped else schema,
            traits=ToolTraits(effect=ToolEffect.PURE, flow=Flow.END_TURN),
            risk=Risk.NONE,
        )

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Check the answer; raises `ToolError` for one that does not fit the schema."""
        value = arguments.get(_VALUE) if self._wrapped else dict(arguments)
        if problems := _problems(self._schema, value):
            raise ToolError(f"The answer does not fit the schema: {problems} Correct it and call again.", invalid=True)
        text = json.dumps(value, ensure_ascii=False)

        async def run(output: Output) -> CallResult:  # noqa: ARG001 - it prints nothing
            self.value, self.given = value, True
            return result_text(Outcome.OK, text)

        return Prepared(accesses=(), preview=Preview(title="Gives the answer", text=text), run=run)

    def join(self, session_id: str, awaits: Callable[[], bool] = lambda: False) -> None:
        """Want the answer of this session, not of its subagents; not yet while it `awaits` something that wakes it."""
        self._session_id, self._awaits = session_id, awaits

    async def _at_end(self, given: dict[str, Any]) -> HookAnswer:
        """Let the turn end, or ask for the answer that is missing."""
        ends = self.given or self._reminders >= _MOST_REMINDERS or self._awaits()
        if ends or given["session_id"] != self._session_id:
            return HookAnswer()
        self._reminders += 1
        return HookAnswer(objects=({"decision": "block", "reason": _AGAIN},))

    def forget(self) -> None:
        """Begin a task: it has no answer yet."""
        self.value, self.given, self._reminders = None, False, 0

    def is_missing(self, outcome: TurnOutcome) -> bool:
        """Whether a turn ended by itself without an answer."""
        return outcome.stop is TurnStop.END_TURN and not self.given


def _below(schema: Any) -> Any:
    """Give a schema as that of the value: what it refers to in itself is found from the root of the whole."""
    match schema:
        case dict():
            return {
                name: f"#/properties/{_VALUE}{one[1:]}" if _is_inner(name, one) else _below(one)
                for name, one in schema.items()
            }
        case list():
            return [_below(one) for one in schema]
        case _:
            return schema


def _is_inner(name: str, value: Any) -> bool:
    return name == "$ref" and isinstance(value, str) and (value == "#" or value.startswith("#/"))


def structured_answer(text: str) -> StructuredAnswer:
    """Make the tool for a JSON Schema that is given as text. Raises `ConfigError`."""
    try:
        schema = json.loads(text)
    except ValueError as error:
        raise _wrong(str(error)) from error
    if not isinstance(schema, dict):
        raise _wrong("It is not a JSON object.")
    return StructuredAnswer(schema)


def _check_schema(schema: Mapping[str, Any]) -> None:
    """Raise `ConfigError` for a schema that no answer could be checked against, where that can be found out."""
    checker = _checker()
    if checker is None:
        return
    try:
        checker.validators.validator_for(dict(schema)).check_schema(dict(schema))
    except checker.SchemaError as error:
        raise _wrong(error.message) from error


def _problems(schema: dict[str, Any], value: Any) -> str:
    """Say what of a value does not fit; empty where all of it does.

    Without the package jsonschema (the extra `mcp` brings it) types, required members, enums and bounds are checked.
    """
    checker = _checker()
    if checker is None:
        from treadle.parsing import validate_arguments

        whole = {"type": "object", "properties": {_VALUE: schema}, "required": [_VALUE]}
        return " ".join(validate_arguments(whole, {_VALUE: value}))
    # With a registry of its own it fetches nothing that a schema refers to.
    found = checker.validators.validator_for(schema)(schema, registry=import_module("referencing").Registry())
    try:
        return " ".join(f"{error.json_path}: {error.message}." for error in islice(found.iter_errors(value), _SHOWN))
    except import_module("referencing.exceptions").Unresolvable as error:
        return f"The schema refers to what is not in it: {error}."


def _checker() -> Any:
    try:
        return import_module("jsonschema")
    except ImportError:
        return None


def _wrong(why: str) -> ConfigError:
    return ConfigError(
        "json-schema", "The JSON Schema of the answer cannot be used.", why=why, fix="Correct what --json-schema says."
    )
