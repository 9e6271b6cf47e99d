"""The events of schema 1 in the shape of schema 2, with the defaults of Treadle 0.1.0. Frozen."""

from typing import Any

JsonObject = dict[str, Any]


def reshaped_1(data: JsonObject) -> JsonObject:
    """Give an event in its new shape, without what only the log before it tells."""
    match data["type"]:
        case "session_started":
            fallback = data.get("fallback")
            return {
                **{name: data[name] for name in ("type", "session_id", "workspace", "mode")},
                "choice": choice_1(data),
                "limits": limits_1(data.get("limits", {})),
                "roots": data.get("roots", []),
                "fallback": None if fallback is None else choice_1(fallback),
                "parent": None,
            }
        case "set_model":
            return {"type": "set_model", "choice": choice_1(data)}
        case "set_fallback" if data.get("choice"):
            return {"type": "set_fallback", "choice": choice_1(data["choice"])}
        case "set_limits":
            return {"type": "set_limits", "limits": limits_1(data["limits"])}
        case "context_ready":
            said = f"<environment>\n{data['environment']}\n</environment>" if data.get("environment") else ""
            kept = {name: value for name, value in data.items() if name != "environment"}
            return {**kept, "content": [passage_1("environment", said)] if said else []}
        case _:
            return data


def passage_1(kind: str, text: str) -> JsonObject:
    """Build a text of a user message."""
    return {"type": "passage", "kind": kind, "text": text}


def choice_1(data: JsonObject) -> JsonObject:
    """Write the choice of a model whole."""
    return {
        "model": data["model"],
        "tool_protocol": data["tool_protocol"],
        "thinking_budget": data.get("thinking_budget"),
    }


def limits_1(data: JsonObject) -> JsonObject:
    """Write limits whole, with the defaults of 0.1.0."""
    bounds = {
        "max_steps": None,
        "max_seconds": None,
        "soft": 0.8,
        "max_auto_approved": None,
        "max_mistakes": 3,
        "max_retries": 6,
        "warn_repeats": 3,
        "max_repeats": 5,
        "reminders": 0,
        "raisable": False,
    }
    known = {"max_auto_approved" if name == "max_unasked" else name: value for name, value in data.items()}
    return {**bounds, **known, **{name: _budget(data.get(name, {})) for name in ("turn", "session", "day")}}


def _budget(data: JsonObject) -> JsonObject:
    cost = data.get("cost")
    return {"cost": None if cost is None else float(cost), "tokens": data.get("tokens")}
