"""The form that a running call wants filled in: what it asks for, and the values read from a person's words."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from treadle.present.escape import printable

_YES, _NO = ("yes", "y", "true", "1", "on"), ("no", "n", "false", "0", "off")


def form_fields(form: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give the fields of a form by name; a server's mistakes in it are left out."""
    fields = form.get("properties", {})
    return (
        {name: about for name, about in fields.items() if isinstance(about, dict)} if isinstance(fields, dict) else {}
    )


def form_lines(form: Mapping[str, Any], values: Mapping[str, Any]) -> Iterator[str]:
    """Say what a form asks for, a line for each field, with the value that it has."""
    for name, about in form_fields(form).items():
        offered = " | ".join(map(str, offered_values(about)))
        kind = offered or str(about.get("type", "text"))
        needed = "" if name in form.get("required", ()) else ", optional"
        said = f": {about['description']}" if about.get("description") else ""
        value = f" = {values[name]}" if values.get(name, "") != "" else ""
        yield printable(f"{name} ({kind}{needed}){said}{value}")


def filled_in(form: Mapping[str, Any], words: str, known: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Read values from words: the value itself where the form has one field, else `name=value`, blanks in quotes.

    Gives all values that are there now, and what is wrong or missing; empty where the form is complete.
    """
    fields = form_fields(form)
    values = {name: value for name, value in known.items() if name in fields and value != ""}
    try:
        pairs = [(next(iter(fields)), words)] if len(fields) == 1 and words else list(_pairs(words))
    except ValueError as error:
        return values, f"This cannot be read: {error}."
    for name, text in pairs:
        if name not in fields:
            return values, f"There is no field {name}." if name else f"Write name=value: {text}"
        try:
            values[name] = _value(fields[name], text)
        except ValueError as error:
            return values, f"{name}: {error}"
    missing = [name for name in form.get("required", ()) if name not in values]
    return values, f"Missing: {', '.join(missing)}." if missing else ""


def typed_values(form: Mapping[str, Any], typed: Mapping[str, str]) -> tuple[dict[str, Any], str]:
    """Read the values of a form that was filled in field by field; an empty field has none.

    Gives the values, and what is wrong or missing; empty where the form is complete.
    """
    values: dict[str, Any] = {}
    for name, about in form_fields(form).items():
        if typed.get(name, "") != "":
            try:
                values[name] = _value(about, typed[name])
            except ValueError as error:
                return values, f"{name}: {error}"
    missing = [name for name in form.get("required", ()) if name not in values]
    return values, f"Missing: {', '.join(missing)}." if missing else ""


def _pairs(words: str) -> Iterator[tuple[str, str]]:
    for word in shlex.split(words):
        name, sign, value = word.partition("=")
        yield (name, value) if sign else ("", word)


def offered_values(about: Mapping[str, Any]) -> list[Any]:
    """Give the values that a field is limited to."""
    found = about.get("enum") or [one.get("const") for one in about.get("oneOf", ()) if isinstance(one, dict)]
    return list(found) if isinstance(found, list) else []


def _value(about: Mapping[str, Any], text: str) -> Any:
    match about.get("type"):
        case "boolean":
            if text.lower() not in (*_YES, *_NO):
                raise ValueError("it is yes or no")
            return text.lower() in _YES
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "array":
            return [one.strip() for one in text.split(",")]
        case _:
            if (offered := offered_values(about)) and text not in offered:
                raise ValueError(f"it is one of {', '.join(map(str, offered))}")
            return text
