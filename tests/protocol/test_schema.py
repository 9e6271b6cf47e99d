"""What is in a log is read the same for ever: the schema of events, and of the state that they hold, is frozen."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from treadle.engine.core.state import State
from treadle.protocol.codec import schemas
from treadle.protocol.events import SCHEMA_VERSION
from treadle.protocol.upgrades import UPGRADES

FROZEN = Path(__file__).with_name("schemas")
NEUTRAL: tuple[Any, ...] = (None, "", 0, 0.0, False, [], {})
"""Defaults of new fields that say what was not known before."""

ADVICE = (
    "Rows of version {version} would read differently: {what}. Raise SCHEMA_VERSION, write an upgrade into "
    "protocol/upgrades that gives rows of version {version} the new shape with the old meaning, freeze the new schema "
    "beside this test, and make golden logs of the new version."
)


def present() -> dict[str, Any]:
    """The schema of what this version writes into a log."""
    found = json.loads(json.dumps({"event": schemas()["event"], "state": msgspec.json.schema(State)}))
    return dict(_without_words(found))


def _without_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: _without_words(one)
            for name, one in value.items()
            if not (name == "description" and isinstance(one, str))
        }
    return list(map(_without_words, value)) if isinstance(value, list) else value


def differences(frozen: Any, now: Any, at: str = "") -> Iterator[str]:
    """Name each change by which an old row would read differently."""
    if not isinstance(frozen, dict) or not isinstance(now, dict):
        if frozen != now:
            yield f"{at} is {json.dumps(now)}, and was {json.dumps(frozen)}"
        return
    for name in sorted({*frozen, *now}):
        where = f"{at}/{name}" if at else name
        match name:
            case "properties":
                yield from _of_fields(frozen.get(name, {}), now.get(name, {}), now.get("required", []), at)
            case "required":
                yield from (f"{at}/{one} is required" for one in now.get(name, []) if one not in frozen.get(name, []))
            case "enum" | "anyOf":
                gone = [one for one in frozen.get(name, []) if one not in now.get(name, [])]
                yield from (f"{at} has no {json.dumps(one)}" for one in gone)
            case "mapping" | "$defs":
                for one in frozen.get(name, {}):
                    yield from differences(frozen[name][one], now.get(name, {}).get(one), f"{where}/{one}")
            case _:
                yield from differences(frozen.get(name), now.get(name), where)


def _of_fields(frozen: dict[str, Any], now: dict[str, Any], required: list[str], at: str) -> Iterator[str]:
    for name, field in frozen.items():
        if name in now:
            yield from differences(field, now[name], f"{at}/{name}")
        else:
            yield f"{at}/{name} is gone"
    for name, field in now.items():
        if name not in frozen and name not in required and field.get("default") not in NEUTRAL:
            yield f"{at}/{name} is new, and its default {json.dumps(field['default'])} is not neutral"


def test_rows_of_this_version_are_read_as_they_were_written() -> None:
    file = FROZEN / f"{SCHEMA_VERSION}.json"
    assert file.exists(), f"Freeze the schema of version {SCHEMA_VERSION} in {file.name}: see `freeze` in this test."
    found = list(differences(json.loads(file.read_text(encoding="utf-8")), present()))
    assert not found, ADVICE.format(version=SCHEMA_VERSION, what="; ".join(found))


def test_each_older_version_has_its_upgrade() -> None:
    assert set(UPGRADES) == set(range(1, SCHEMA_VERSION))


LIMITS = ("event", "$defs", "Limits", "properties")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ((*LIMITS, "max_mistakes", "default"), 4, "max_mistakes/default is 4, and was 3"),
        ((*LIMITS, "max_mistakes"), None, "max_mistakes is gone"),
        ((*LIMITS, "patience"), {"type": "integer", "default": 5}, "patience is new, and its default 5 is not neutral"),
        ((*LIMITS, "patience"), {"type": "integer", "default": 0}, ""),
        (("event", "$defs", "Mode", "enum"), ["plan", "ask"], 'Mode has no "auto"'),
        (("event", "$defs", "Mode", "enum"), ["plan", "ask", "edits", "auto", "full", "new"], ""),
        (("event", "$defs", "Interrupt", "required"), ["type", "why"], "Interrupt/why is required"),
        (("state", "$defs", "State", "properties", "step", "default"), 1, "step/default is 1, and was 0"),
    ],
)
def test_a_change_by_which_old_rows_read_differently_is_named(path: tuple[str, ...], value: Any, said: str) -> None:
    changed = inner = present()
    for name in path[:-1]:
        inner = inner[name]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    found = "; ".join(differences(present(), changed))
    assert (said in found) if said else not found


def freeze() -> None:
    """Write the schema of this version down; once, when it is new: `python -m tests.protocol.test_schema`."""
    text = json.dumps(present(), indent=1, sort_keys=True)
    (FROZEN / f"{SCHEMA_VERSION}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    freeze()
