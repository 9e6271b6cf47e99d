"""What a session may spend and how long it may go on, and what its next step can cost at worst."""

from msgspec import UNSET, UnsetType

from treadle.protocol.base import Record
from treadle.protocol.models import Spent

RUN_BUDGET = "the run's budget of"
"""How the reason begins for which a turn ends when the budget of its run is used up."""

USUAL_REPLY = 8_192
"""Tokens; the longest reply of a model whose limit is not known, wherever one has to be sent or counted with."""


class Budget(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What may be spent: US dollars, and tokens of every kind; None is unbounded."""

    cost: float | None = None
    tokens: int | None = None


class Limits(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Bounds of a session; None is unbounded. Steps are model calls of one turn, seconds the wall time of one,
    with `counts_work`, which older logs do not have, without that for which the turn waited for a person's answer. With
    `turns_together`, which they do not have either, both bound all turns since the session was opened.
    With `counts_refused`, which they do not have either, the outcome of a turn counts the calls that got a no.

    `soft` is the part of a budget after which the user is asked once whether to go on. `max_auto_approved` bounds the
    calls that may run in a row without asking. `max_mistakes` bounds replies in a row of which no call could be
    made, `max_repeats` the replies in a row with the same calls and results; at `warn_repeats` the model is warned.
    `reminders` is how often in a turn the model is reminded to finish before a plain answer ends work in progress. With
    `plain_answer_ends`, which older logs do not have, that is an open checklist, or a next step that the answer
    announces; without it any work. With `joins_cut`, which they do not have either, an answer that the output limit cut
    off and what follows are one. With `sizes_images`, which they do not have either, an image is estimated by its
    pixels, and what is left of a conversation of which a part has left by its share of the provider's count.
    `raisable`: when the budget of a turn or the session is used up, the user is asked whether to raise it. With
    `wait_for_reset`, which older logs do not have, a turn waits until a provider's limit resets; without it a user who
    is there is asked. With `asks_end`, which older logs do not have, hooks are asked before a turn ends with an answer.
    `tree` is what a subagent and all other sessions of its tree may spend together, which older logs do not have; in a
    session of a person that is the budget of the session. `run` bounds what all sessions of a run of many tasks spend;
    sessions of no run do not have it.
    """

    max_steps: int | None = None
    max_seconds: float | None = None
    turn: Budget = Budget()
    session: Budget = Budget()
    day: Budget = Budget()
    soft: float = 0.8
    max_auto_approved: int | None = None
    max_mistakes: int = 3
    max_retries: int = 6
    warn_repeats: int = 3
    max_repeats: int = 5
    reminders: int = 0
    plain_answer_ends: bool | UnsetType = UNSET
    joins_cut: bool | UnsetType = UNSET
    asks_end: bool | UnsetType = UNSET
    counts_work: bool | UnsetType = UNSET
    turns_together: bool | UnsetType = UNSET
    counts_refused: bool | UnsetType = UNSET
    sizes_images: bool | UnsetType = UNSET
    raisable: bool = False
    wait_for_reset: bool | UnsetType = UNSET
    tree: Budget | UnsetType = UNSET
    run: Budget | UnsetType = UNSET


OF_NEW_SESSIONS = Limits(
    reminders=1,
    plain_answer_ends=True,
    joins_cut=True,
    counts_work=True,
    sizes_images=True,
    raisable=True,
    counts_refused=True,
)
"""The bounds of a session that begins now, before settings change them."""


class Terms(Record, frozen=True, kw_only=True):
    """What the next model call can cost at worst. Prices are US dollars for a million tokens, None if unknown.

    `input_tokens` is an upper bound; `max_output` is the model's limit. `search_cost` is what searches of the web by
    the provider can cost in all, None if that is unknown. `day` is what was spent, and reserved by other sessions,
    since midnight (UTC), `tree` what the other sessions of its tree have spent and reserved, `run` what all of its run
    have. `estimated`: the prices are those of the model's nearest relative.
    """

    input_tokens: int
    max_output: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    search_cost: float | None = 0.0
    day: Spent = Spent()
    tree: Spent = Spent()
    run: Spent = Spent()
    estimated: bool = False
