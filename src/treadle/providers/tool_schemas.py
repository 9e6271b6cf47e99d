"""Schemas of tools as each wire API takes them: what an API refuses is written otherwise, or loosened.

A schema tells the model what to send; the tool checks what comes. So a bound that an API has no words for may go.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from treadle.protocol.tools import ToolSpec

_DEEPEST = 10
_MOST_PARTS = 3_000
"""Parts of one schema; what comes behind them is anything. References can make a small schema endless."""

_MOST_BRANCHES = 40
"""Branches of one choice; what comes behind them is not said."""

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_MEANT = {
    "int": "integer", "long": "integer", "float": "number", "double": "number", "str": "string", "bool": "boolean",
    "dict": "object", "map": "object", "list": "array", "tuple": "array", "none": "null",
}  # fmt: skip
_SIMPLE_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_ANYTHING: Mapping[str, Any] = {}


class SchemaForm(Struct, frozen=True, kw_only=True):
    """What one wire API takes of JSON Schema. `formats` None: every one; `keys` None: every name of a property."""

    keywords: frozenset[str]
    root: frozenset[str]
    one_of: str = "oneOf"
    type_lists: bool = True
    mixed_enums: bool = True
    formats: frozenset[str] | None = None
    keys: re.Pattern[str] | None = None
    empty_description: str = ""


_COMMON = frozenset(
    {
        "type", "title", "description", "default", "enum", "format", "properties", "required", "additionalProperties",
        "items", "minItems", "maxItems", "minimum", "maximum", "anyOf",
    }
)  # fmt: skip
_ALL = _COMMON | {
    "oneOf", "const", "uniqueItems", "minLength", "maxLength", "pattern", "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minProperties", "maxProperties",
}  # fmt: skip
_ROOT = _ALL - {"anyOf", "oneOf", "enum", "const"}

ANTHROPIC = SchemaForm(keywords=_ALL, root=_ROOT, keys=_SIMPLE_KEY)
OPENAI = SchemaForm(keywords=_ALL, root=_ROOT)
GEMINI = SchemaForm(
    keywords=_COMMON,
    root=_COMMON - {"anyOf", "enum"},
    one_of="anyOf",
    type_lists=False,
    mixed_enums=False,
    formats=frozenset({"date-time", "date", "time", "int32", "int64", "float", "double"}),
)
BEDROCK = SchemaForm(
    keywords=_ALL,
    root=frozenset({"type", "properties", "required"}),
    keys=_SIMPLE_KEY,
    empty_description="A tool without a description.",
)
SCHEMA_FORMS = {"anthropic": ANTHROPIC, "openai": OPENAI, "gemini": GEMINI}


def description_for(tool: ToolSpec, form: SchemaForm) -> str:
    """Give the description of a tool; some APIs take none that is empty."""
    return tool.description if tool.description.strip() else form.empty_description or tool.description


def schema_for(form: SchemaForm, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write the schema of a tool's arguments as an API takes it: one of an object, with no choice at its root."""
    writer = _Writer(form, schema)
    merged = writer.merged(writer.resolved(schema), branches=True)
    written = writer.write({**merged, "type": "object"}, 0)
    root = {key: value for key, value in written.items() if key in form.root}
    return {**root, "type": "object", "properties": root.get("properties", {})}


class _Writer:
    """Writes one schema; `root` is where its references lead."""

    def __init__(self, form: SchemaForm, root: Mapping[str, Any]) -> None:
        self._form = form
        self._root = root
        self._left = _MOST_PARTS

    def write(self, schema: object, depth: int) -> dict[str, Any]:
        """Write a part; what is too deep, or no schema, becomes anything."""
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > _DEEPEST or self._left < 0:
            return {}
        found = self.merged(self.resolved(schema))
        kinds = _kinds(found)
        written: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else list(kinds)} if kinds else {}
        for key, value in found.items():
            if key in _SIMPLE and key in self._form.keywords and (kept := _SIMPLE[key](value)) is not None:
                written[key] = kept
        self._exclusive(found, written)
        self._object(found, written, depth)
        self._array(found, written, depth)
        self._choices(found, written, depth)
        return self._narrowed(written)

    def resolved(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put what a reference leads to in its place; one that leads nowhere, or in circles, is anything."""
        for _ in range(_DEEPEST):
            ref = schema.get("$ref") or schema.get("$dynamicRef")
            if ref is None:
                return schema
            rest = {key: value for key, value in schema.items() if key not in ("$ref", "$dynamicRef")}
            schema = {**self._target(ref), **rest}
        return _ANYTHING

    def _target(self, ref: object) -> Mapping[str, Any]:
        at: Any = self._root
        if not isinstance(ref, str) or not ref.startswith("#"):
            return _ANYTHING
        for part in filter(None, ref[1:].split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            at = at.get(name) if isinstance(at, Mapping) else None
        return at if isinstance(at, Mapping) else _ANYTHING

    def merged(self, schema: Mapping[str, Any], *, branches: bool = False, depth: int = 0) -> Mapping[str, Any]:
        """Join `allOf` with the schema; at the root, where no choice may stand, the branches of one as well."""
        names = ("allOf", "anyOf", "oneOf") if branches else ("allOf",)
        if depth > _DEEPEST or not any(name in schema for name in names):
            return schema
        self._left -= 1
        if self._left < 0:
            return _ANYTHING
        joined = {key: value for key, value in schema.items() if key not in names}
        properties = _mapping(schema.get("properties"))
        required = _names(schema.get("required"))
        for name in names:
            parts = [
                self.merged(self.resolved(part), branches=branches, depth=depth + 1)
                for part in _list(schema.get(name))[:_MOST_BRANCHES]
                if isinstance(part, Mapping)
            ]
            for part in parts:
                joined = {**part, **joined}
                properties = {**_mapping(part.get("properties")), **properties}
            wanted = [_names(part.get("required")) for part in parts]
            if name == "allOf":
                required += [key for keys in wanted for key in keys]
            elif wanted:
                required += [key for key in wanted[0] if all(key in keys for keys in wanted)]
        if branches and len(_list(schema.get("anyOf")) + _list(schema.get("oneOf"))) > 1:
            joined.pop("additionalProperties", None)
        if properties:
            joined["properties"] = properties
        joined.pop("required", None)
        return {**joined, "required": list(dict.fromkeys(required))} if required else joined

    def _object(self, found: Mapping[str, Any], written: dict[str, Any], depth: int) -> None:
        """Write the properties; one whose name an API refuses goes, and then others are allowed."""
        keys = self._form.keys
        all_properties = _mapping(found.get("properties"))
        taken = {key: value for key, value in all_properties.items() if value is not False}
        taken = {key: value for key, value in taken.items() if keys is None or keys.fullmatch(key)}
        required = [key for key in _names(found.get("required")) if keys is None or keys.fullmatch(key)]
        properties = {key: self.write(value, depth + 1) for key, value in taken.items()}
        properties |= {key: {} for key in required if key not in properties}
        if properties:
            written["properties"] = properties
        if required:
            written["required"] = list(dict.fromkeys(required))
        extra = found.get("additionalProperties")
        if isinstance(extra, bool) and len(taken) == len(all_properties):
            written["additionalProperties"] = extra
        elif isinstance(extra, Mapping):
            written["additionalProperties"] = self.write(extra, depth + 1)

    def _array(self, found: Mapping[str, Any], written: dict[str, Any], depth: int) -> None:
        """Write the items, which every array has to have; those of a tuple become a choice."""
        items = found.get("items")
        tuples = [*_list(found.get("prefixItems")), *_list(items)]
        if tuples:
            choices = _distinct(self.write(one, depth + 1) for one in tuples[:_MOST_BRANCHES])
            written["items"] = choices[0] if len(choices) == 1 else {"anyOf": choices}
        elif isinstance(items, Mapping):
            written["items"] = self.write(items, depth + 1)
        elif "array" in _kinds(found):
            written["items"] = {}

    def _choices(self, found: Mapping[str, Any], written: dict[str, Any], depth: int) -> None:
        for name, target in (("anyOf", "anyOf"), ("oneOf", self._form.one_of)):
            parts = [one for one in _list(found.get(name))[:_MOST_BRANCHES] if isinstance(one, Mapping)]
            choices = _distinct(self.write(one, depth + 1) for one in parts)
            if choices and target not in written:
                written[target] = choices
        if "const" in found and "const" not in self._form.keywords:
            written["enum"] = [found["const"]]
        elif "const" in found:
            written["const"] = found["const"]

    def _exclusive(self, found: Mapping[str, Any], written: dict[str, Any]) -> None:
        """Write the bounds of the older drafts, where a flag said that one is excluded."""
        for flag, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if found.get(flag) is True and bound in written and flag in self._form.keywords:
                written[flag] = written.pop(bound)

    def _narrowed(self, written: dict[str, Any]) -> dict[str, Any]:
        """Leave out what this API has no words for."""
        form = self._form
        if form.formats is not None and written.get("format", "") not in form.formats:
            written.pop("format", None)
        kinds = written.get("type")
        if isinstance(kinds, list) and not form.type_lists:
            written = _split(written, kinds)
        if "enum" in written and not form.mixed_enums and not all(isinstance(one, str) for one in written["enum"]):
            said = f"One of {', '.join(map(str, written.pop('enum')))}."
            written["description"] = " ".join(filter(None, (written.get("description", ""), said)))
        elif "enum" in written and not form.mixed_enums:
            written["type"] = "string"
            written["enum"] = [one for one in written["enum"] if one]  # an empty text is refused
            if not written["enum"]:
                del written["enum"]
        return written


def _split(written: dict[str, Any], kinds: Sequence[str]) -> dict[str, Any]:
    """Write several types as a choice between them; each takes along what is said of it."""
    about: dict[str, Any] = {key: written[key] for key in ("title", "description", "default") if key in written}
    if "anyOf" in written or "enum" in written:
        return {key: value for key, value in written.items() if key != "type"}
    own = {
        "object": ("properties", "required", "additionalProperties"),
        "array": ("items", "minItems", "maxItems"),
        "string": ("format",),
        "number": ("minimum", "maximum"),
        "integer": ("minimum", "maximum"),
    }
    choices = [{"type": kind, **{key: written[key] for key in own.get(kind, ()) if key in written}} for kind in kinds]
    return {**about, "anyOf": choices}


def _kinds(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The types that a schema names, in the words of the standard; none where it names none that exists."""
    given = schema.get("type")
    named = [given] if isinstance(given, str) else _list(given)
    meant = [_MEANT.get(one.lower(), one.lower()) for one in named if isinstance(one, str)]
    found = [one for one in meant if one in _TYPES]
    if found and schema.get("nullable") is True:
        found.append("null")
    return tuple(dict.fromkeys(found))


def _mapping(value: object) -> dict[str, Any]:
    return {key: one for key, one in value.items() if isinstance(key, str)} if isinstance(value, Mapping) else {}


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _names(value: object) -> list[str]:
    return list(dict.fromkeys(one for one in _list(value) if isinstance(one, str)))


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Each value once; JSON tells a number from a truth value, which Python does not."""
    seen: dict[str, Any] = {}
    for value in values:
        seen.setdefault(repr(value), value)
    return list(seen.values())


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _number(value: object) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _positive(value: object) -> int | float | None:
    number = _number(value)
    return number if number is not None and number > 0 else None


def _expression(value: object) -> str | None:
    """A regular expression that others read as well: not all of them know how to look around, or Python's words."""
    if not isinstance(value, str) or "(?" in value.replace("(?:", ""):
        return None
    try:
        re.compile(value)
    except (re.error, RecursionError, OverflowError):
        return None
    return value


_SIMPLE: Mapping[str, Callable[[object], Any]] = {
    "title": _text,
    "description": _text,
    "format": _text,
    "default": lambda value: value,
    "enum": lambda value: _distinct(_list(value)) or None,
    "minItems": _count,
    "maxItems": _count,
    "minLength": _count,
    "maxLength": _count,
    "minProperties": _count,
    "maxProperties": _count,
    "minimum": _number,
    "maximum": _number,
    "exclusiveMinimum": _number,
    "exclusiveMaximum": _number,
    "multipleOf": _positive,
    "uniqueItems": lambda value: value if isinstance(value, bool) else None,
    "pattern": _expression,
}
