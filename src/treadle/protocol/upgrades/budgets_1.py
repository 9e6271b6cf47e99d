"""What the budgets of Treadle 0.1.0 left for the next model call, and what it asked. Frozen."""

from collections.abc import Iterator
from typing import NamedTuple

from treadle.protocol.upgrades.shapes_1 import JsonObject
from treadle.protocol.upgrades.words_1 import dollars_1

_LEAST_REPLY = 1_024
_USUAL_REPLY = 8_192
_MOST_REPLY = 2**40
_MILLION = 1_000_000


class Room1(NamedTuple):
    """Whether the call is sent (neither `why` nor `text`), asked about (`text`), or stopped (`why`)."""

    reply_tokens: int | None = None
    about: str = ""
    text: str = ""
    more: str = ""
    why: str = ""


def context_tokens_1(usage: JsonObject) -> int:
    """Sum up what the conversation takes after a call."""
    kinds = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    return sum(usage.get(kind, 0) for kind in kinds)


def worst_of_1(terms: JsonObject, reply_tokens: int | None) -> JsonObject:
    """Say what a call costs at most."""
    longest = reply_tokens or _USUAL_REPLY
    prices = terms["input_tokens"] * (terms.get("input_price") or 0.0) + longest * (terms.get("output_price") or 0.0)
    cost = prices / _MILLION + (terms.get("search_cost", 0.0) or 0.0)
    return {"cost": cost, "tokens": terms["input_tokens"] + longest}


def room_for_1(state: JsonObject, terms: JsonObject) -> Room1:
    """Say whether the next call may be sent."""
    every = list(_budgets(state, terms))
    if any(budget["cost"] is not None for _, budget, _ in every) and (room := _unpriced(state, terms)):
        return room
    replies = [_affordable(budget, spent, terms) for _, budget, spent in every]
    short = [one for one, reply in zip(every, replies, strict=True) if reply is not None and reply < _LEAST_REPLY]
    for one in short:
        if room := _ask_for_more(one, state, terms):
            return room
    for one in every:
        if room := _soft(one, state):
            return room
    if short:
        return Room1(why=_exhausted(short[0], terms))
    bounds = [reply for reply in replies if reply is not None]
    most = terms.get("max_output")
    return Room1(min(*bounds, most or _USUAL_REPLY)) if bounds else Room1(most)


_Budget = tuple[str, JsonObject, JsonObject]
"""Whose budget, the budget, and what is spent of it."""


def _budgets(state: JsonObject, terms: JsonObject) -> Iterator[_Budget]:
    turn, limits = state["turn"], state["limits"]
    spent = {"cost": turn["cost"] or 0.0, "tokens": context_tokens_1(turn["usage"])}
    yield "turn", _raised("turn", limits["turn"], state), spent
    yield "session", _raised("session", limits["session"], state), state["money"]["spent"]
    yield "day", limits["day"], {"cost": 0.0, "tokens": 0, **terms.get("day", {})}


def _unpriced(state: JsonObject, terms: JsonObject) -> Room1 | None:
    model, agreed = state["model"]["choice"]["model"], state["money"]["agreed"]
    if (terms.get("input_price") is None or terms.get("output_price") is None) and f"price:{model}" not in agreed:
        text = f"The price of {model} is not known, so a budget in money cannot limit it. Continue?"
        return Room1(about=f"price:{model}", text=text)
    if terms.get("search_cost", 0.0) is None and f"searches:{model}" not in agreed:
        text = f"The cost of web searches with {model} has no known limit, so a budget in money cannot limit it. "
        return Room1(about=f"searches:{model}", text=f"{text}Continue?")
    return None


def _soft(one: _Budget, state: JsonObject) -> Room1 | None:
    name, budget, spent = one
    cost, tokens, soft = budget["cost"], budget["tokens"], state["limits"]["soft"]
    about = f"soft:{name}:{state['turn']['number'] if name == 'turn' else 0}:{cost}:{tokens}"
    if not state["user_present"] or about in state["money"]["agreed"]:
        return None
    if cost is not None and spent["cost"] >= cost * soft:
        return Room1(None, about, _go_on(name, dollars_1(spent["cost"]), dollars_1(cost)), f"up to {dollars_1(cost)}")
    if tokens is not None and spent["tokens"] >= tokens * soft:
        limit = f"{tokens:,} tokens"
        return Room1(None, about, _go_on(name, f"{spent['tokens']:,}", limit), f"up to {limit}")
    return None


def _ask_for_more(one: _Budget, state: JsonObject, terms: JsonObject) -> Room1 | None:
    name, budget, spent = one
    if name == "day" or not (state["user_present"] and state["limits"]["raisable"]):
        return None
    first = state["limits"][name]
    reply, least = (
        _affordable({"cost": None, "tokens": budget["tokens"]}, spent, terms),
        worst_of_1(terms, _LEAST_REPLY),
    )
    if reply is not None and reply < _LEAST_REPLY:
        about, needed = "tokens", f"the next call can take {least['tokens']:,}"
        text = _go_on(name, f"{spent['tokens']:,}", f"{budget['tokens']:,} tokens", needed)
        more = f"up to {budget['tokens'] + first['tokens']:,} tokens"
    else:
        about, needed = "cost", f"the next call can cost {dollars_1(least['cost'])}"
        text = _go_on(name, dollars_1(spent["cost"]), dollars_1(budget["cost"] or 0.0), needed)
        more = f"up to {dollars_1((budget['cost'] or 0.0) + (first['cost'] or 0.0))}"
    begin = _more(name, about, first, state)
    return Room1(None, f"{begin}{_agreed(begin, state)}", text, more) if first[about] else None


def _raised(name: str, budget: JsonObject, state: JsonObject) -> JsonObject:
    times = {about: 1 + _agreed(_more(name, about, budget, state), state) for about in ("cost", "tokens")}
    return {about: None if budget[about] is None else budget[about] * times[about] for about in ("cost", "tokens")}


def _agreed(begin: str, state: JsonObject) -> int:
    return sum(one.startswith(begin) for one in state["money"]["agreed"])


def _more(name: str, about: str, first: JsonObject, state: JsonObject) -> str:
    turn = state["turn"]["number"] if name == "turn" else 0
    return f"more:{about}:{name}:{turn}:{first['cost']}:{first['tokens']}:"


def _go_on(name: str, used: str, limit: str, needed: str = "") -> str:
    where = {"turn": " in this turn", "day": " today"}.get(name, "")
    too_little = f", and {needed}" if needed and used != limit else ""
    return f"Spent {used} of {limit}{where}{too_little}. Go on?"


def _affordable(budget: JsonObject, spent: JsonObject, terms: JsonObject) -> int | None:
    bounds = []
    if budget["tokens"] is not None:
        bounds.append(budget["tokens"] - spent["tokens"] - terms["input_tokens"])
    into, out = terms.get("input_price"), terms.get("output_price")
    if budget["cost"] is not None and into is not None and out is not None:
        left = budget["cost"] - spent["cost"] - (terms.get("search_cost", 0.0) or 0.0)
        left -= terms["input_tokens"] * into / _MILLION
        if out > 0:
            bounds.append(int(min(max(left * _MILLION / out, 0.0), _MOST_REPLY)))
        elif left < 0:
            bounds.append(0)
    return min(bounds, default=None)


def _exhausted(one: _Budget, terms: JsonObject) -> str:
    name, budget, spent = one
    least = worst_of_1(terms, _LEAST_REPLY)
    if budget["tokens"] is not None and budget["tokens"] - spent["tokens"] < least["tokens"]:
        return (
            f"the {name}'s budget of {budget['tokens']:,} tokens: {spent['tokens']:,} are used, "
            f"and the next call can take {least['tokens']:,}"
        )
    return (
        f"the {name}'s budget of {dollars_1(budget['cost'] or 0.0)}: {dollars_1(spent['cost'])} is spent, "
        f"and the next call can cost {dollars_1(least['cost'])}"
    )
