"""What the next model call may cost at worst, and what the budgets leave for it."""

from collections.abc import Iterator
from functools import reduce
from typing import TypeAlias

from msgspec import UNSET, Struct

from treadle.engine.core.state import State, replace
from treadle.protocol.children import ChildEnded
from treadle.protocol.limits import USUAL_REPLY, Budget, Limits, Terms
from treadle.protocol.models import Spent, money
from treadle.protocol.permissions import UP_TO
from treadle.protocol.usage import Usage

LEAST_REPLY = 1_024
"""Tokens; where a budget leaves less than this for the reply, nothing is sent."""

_MOST_REPLY = 2**40
"""Tokens; what a price of next to nothing would allow."""

_PRICED_TOKENS = 1_000_000


class Send(Struct, frozen=True):
    """The call fits. `reply_tokens` bounds the reply, None leaves it to the model; `worst` is what to reserve."""

    reply_tokens: int | None
    worst: Spent


class Ask(Struct, frozen=True):
    """The user has to say yes first; `about` names what they are asked once, `more` is what a yes gives, in words."""

    about: str
    text: str
    more: str = ""


class Stop(Struct, frozen=True):
    """The call does not fit."""

    why: str


BudgetCheck: TypeAlias = Send | Ask | Stop


def bounded(limits: Limits) -> bool:
    """Whether anything bounds what may be spent."""
    every = (limits.turn, limits.session, limits.day, limits.tree, limits.run)
    return any(one not in (Budget(), UNSET) for one in every)


def check_budgets(state: State, terms: Terms) -> BudgetCheck:
    """Say whether the next call may be sent: what it can cost at worst has to fit into every budget."""
    every = list(_budgets(state, terms))
    if any(budget.cost is not None for _, budget, _ in every) and (unknown := _unpriced(state, terms)) is not None:
        return unknown
    replies = [_affordable(budget, spent, terms) for _, budget, spent in every]
    short = [one for one, reply in zip(every, replies, strict=True) if reply is not None and reply < LEAST_REPLY]
    for name, budget, spent in short:
        if (question := _ask_for_more(name, budget, spent, state, terms)) is not None:
            return question
    for name, budget, spent in every:
        if (question := _soft(name, budget, spent, state)) is not None:
            return question
    for name, budget, spent in short:
        return Stop(_exhausted(name, budget, spent, terms))
    bounds = [reply for reply in replies if reply is not None]
    if not bounds:
        return Send(terms.max_output, worst_of(terms, terms.max_output))
    tokens = min(*bounds, terms.max_output or USUAL_REPLY)
    return Send(tokens, worst_of(terms, tokens))


def spent_by(usage: Usage, cost: float | None) -> Spent:
    """Count a model call."""
    return Spent(cost=cost or 0.0, tokens=usage.context_tokens, estimated=usage.estimated)


def bill(state: State, usage: Usage, cost: float | None, *, known: bool = True) -> State:
    """Count the use of a model; a call of which the provider did not tell what it used counts as its worst case."""
    turn = state.turn
    if turn is None:
        spent = state.money.spent + spent_by(usage, cost)
        return replace(state, money=replace(state.money, spent=spent))
    total = None if cost is None or turn.cost is None else turn.cost + cost
    terms = state.money.terms
    used = spent_by(usage, cost)
    if not known and terms is not None:
        used = replace(worst_of(terms, state.money.reply_tokens), estimated=True)
    if terms is not None:
        terms = replace(terms, day=terms.day + used, run=terms.run + used)
    turn = replace(turn, usage=turn.usage + usage, cost=total)
    return replace(state, turn=turn, money=replace(state.money, spent=state.money.spent + used, terms=terms))


def bill_child(state: State, ended: ChildEnded) -> State:
    """Count in the turn what a subagent used and got no leave for: its own session has paid it, this one has not.

    While no turn goes on it is kept for the next one, such as the one that its end begins.
    """
    turn = state.turn
    if turn is None:
        return replace(state, unbilled=(*state.unbilled, ended))
    cost = None if ended.cost is None or turn.cost is None else turn.cost + ended.cost
    denied = turn.denied + ended.denied
    refused = state.refused + (ended.refused if state.limits.counts_refused is True else 0)
    return replace(state, turn=replace(turn, usage=turn.usage + ended.usage, cost=cost, denied=denied), refused=refused)


def bill_unbilled(state: State) -> State:
    """Count in the turn that begins what subagents used that ended before it."""
    return reduce(bill_child, state.unbilled, replace(state, unbilled=()))


def worst_of(terms: Terms, reply_tokens: int | None) -> Spent:
    """Say what a call with a reply of so many tokens costs at most."""
    longest = reply_tokens or USUAL_REPLY
    prices = terms.input_tokens * (terms.input_price or 0.0) + longest * (terms.output_price or 0.0)
    cost = prices / _PRICED_TOKENS + (terms.search_cost or 0.0)
    return Spent(cost=cost, tokens=terms.input_tokens + longest, estimated=terms.estimated)


def _budgets(state: State, terms: Terms) -> Iterator[tuple[str, Budget, Spent]]:
    turn = state.turn
    if turn is not None:
        yield "turn", _raised("turn", state.limits.turn, state), spent_by(turn.usage, turn.cost)
    of_tree = state.money.spent + terms.tree
    if isinstance(state.limits.tree, Budget):
        yield "session", state.limits.session, state.money.spent
        yield "tree", state.limits.tree, of_tree
    else:
        yield "session", _raised("session", state.limits.session, state), of_tree
    yield "day", state.limits.day, terms.day
    if state.limits.run:
        yield "run", state.limits.run, terms.run


def _unpriced(state: State, terms: Terms) -> Ask | None:
    """Ask once for each price that is not known, as no budget in money can hold without it."""
    if (
        terms.input_price is None or terms.output_price is None
    ) and f"price:{state.choice.model}" not in state.money.agreed:
        text = f"The price of {state.choice.model} is not known, so a budget in money cannot limit it. Continue?"
        return Ask(f"price:{state.choice.model}", text)
    if terms.search_cost is None and f"searches:{state.choice.model}" not in state.money.agreed:
        text = f"The cost of web searches with {state.choice.model} has no known limit, so a budget in money "
        text += "cannot limit it. Continue?"
        return Ask(f"searches:{state.choice.model}", text)
    return None


def session_budget(state: State) -> float | None:
    """Give what the session may spend (US dollars), with what the user agreed to besides; None is unbounded."""
    return _raised("session", state.limits.session, state).cost


def _soft(name: str, budget: Budget, spent: Spent, state: State) -> Ask | None:
    """Ask once when a good part of a budget is gone; where nobody is there, the budget itself is the bound."""
    turn = state.turn.number if state.turn is not None else 0
    about = f"soft:{name}:{turn if name == 'turn' else 0}:{budget.cost}:{budget.tokens}"
    if not state.user_present or about in state.money.agreed:
        return None
    if budget.cost is not None and spent.cost >= budget.cost * state.limits.soft:
        return Ask(
            about,
            _go_on(name, _paid(spent), money(budget.cost)),
            f"up to {money(budget.cost)}",
        )
    if budget.tokens is not None and spent.tokens >= budget.tokens * state.limits.soft:
        limit = f"{budget.tokens:,} tokens"
        return Ask(about, _go_on(name, _tokens(spent), limit), f"up to {limit}")
    return None


def _ask_for_more(name: str, budget: Budget, spent: Spent, state: State, terms: Terms) -> Ask | None:  # noqa: PLR0917
    """Ask to raise a budget that is used up by what it was at first; the day's bounds other sessions too and stays."""
    first = {"turn": state.limits.turn, "session": state.limits.session}.get(name)
    if first is None or not (state.user_present and state.limits.raisable):
        return None
    reply, least = _affordable(Budget(tokens=budget.tokens), spent, terms), worst_of(terms, LEAST_REPLY)
    if reply is not None and reply < LEAST_REPLY:
        about, raisable = "tokens", bool(first.tokens)
        more_needed = f"the next call can take {least.tokens:,}"
        text = _go_on(name, _tokens(spent), f"{budget.tokens:,} tokens", more_needed)
        more = f"{UP_TO}{(budget.tokens or 0) + (first.tokens or 0):,} tokens"
    else:
        about, raisable = "cost", bool(first.cost)
        more_needed = f"the next call can cost {_paid(least)}"
        text = _go_on(name, _paid(spent), money(budget.cost or 0.0), more_needed)
        more = f"{UP_TO}{money((budget.cost or 0.0) + (first.cost or 0.0))}"
    begin = _more(name, about, first, state)
    return Ask(f"{begin}{_agreed(begin, state)}", text, more) if raisable else None


def _raised(name: str, budget: Budget, state: State) -> Budget:
    """Give a budget with what the user agreed to besides."""
    cost, tokens = (1 + _agreed(_more(name, about, budget, state), state) for about in ("cost", "tokens"))
    return Budget(
        cost=None if budget.cost is None else budget.cost * cost,
        tokens=None if budget.tokens is None else budget.tokens * tokens,
    )


def _agreed(begin: str, state: State) -> int:
    return sum(one.startswith(begin) for one in state.money.agreed)


def _more(name: str, about: str, first: Budget, state: State) -> str:
    """Name what the user agrees to: with other limits, as after resuming with a larger budget, it applies no more."""
    turn = state.turn.number if state.turn is not None and name == "turn" else 0
    return f"more:{about}:{name}:{turn}:{first.cost}:{first.tokens}:"


def _go_on(name: str, used: str, limit: str, needed: str = "") -> str:
    """Ask whether to go on; `needed` is said where not all is spent, and what is left is too little."""
    where = {"turn": " in this turn", "day": " today"}.get(name, "")
    too_little = f", and {needed}" if needed and used != limit else ""
    return f"Spent {used} of {limit}{where}{too_little}. Go on?"


def _tokens(spent: Spent) -> str:
    return f"about {spent.tokens:,}" if spent.estimated else f"{spent.tokens:,}"


def _paid(spent: Spent) -> str:
    return money(spent.cost, estimated=spent.estimated)


def _affordable(budget: Budget, spent: Spent, terms: Terms) -> int | None:
    """Say how many tokens of reply a budget leaves; None where it bounds nothing."""
    bounds = []
    if budget.tokens is not None:
        bounds.append(budget.tokens - spent.tokens - terms.input_tokens)
    if budget.cost is not None and terms.input_price is not None and terms.output_price is not None:
        left = budget.cost - spent.cost - (terms.search_cost or 0.0)
        left -= terms.input_tokens * terms.input_price / _PRICED_TOKENS
        if terms.output_price > 0:
            affordable = left * _PRICED_TOKENS / terms.output_price
            bounds.append(int(min(max(affordable, 0.0), _MOST_REPLY)))
        elif left < 0:
            bounds.append(0)
    return min(bounds, default=None)


def _exhausted(name: str, budget: Budget, spent: Spent, terms: Terms) -> str:
    least = worst_of(terms, LEAST_REPLY)
    if budget.tokens is not None and budget.tokens - spent.tokens < least.tokens:
        return (
            f"the {name}'s budget of {budget.tokens:,} tokens: {_tokens(spent)} are used, "
            f"and the next call can take {least.tokens:,}"
        )
    return (
        f"the {name}'s budget of {money(budget.cost or 0.0)}: {_paid(spent)} is spent, "
        f"and the next call can cost {_paid(least)}"
    )
