"""What killed processes had reserved for model calls: in the budgets, estimates of the calls take its place."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from treadle.app.config.layers import load_settings
from treadle.app.models.model_choice import Models
from treadle.engine.core.past_history import calls_under_way, conversation, last_state
from treadle.engine.runtime.lost import lost_calls
from treadle.protocol.errors import ConfigError, TreadleError
from treadle.protocol.events import EventData
from treadle.protocol.models import ModelSpec
from treadle.store.spent import left_reservations, settle_left
from treadle.store.sqlite import Store

SpecOf = Callable[[str], ModelSpec]
"""Tells what is known of a model by its reference; raises `ConfigError`."""


def of_settings(ref: str) -> ModelSpec:
    """Tell what the user's settings and the catalogue know of a model. Raises `ConfigError`."""
    return Models(load_settings({})).spec(ref)


def settle_left_calls(store: Store, spec_of: SpecOf = of_settings) -> None:
    """Lower what killed processes have reserved to what it cost by the logs of their sessions. Raises `StoreError`.

    Each of their sessions is read once. What cannot be read, or be written, stays reserved.
    """
    for session_id in left_reservations(store):
        with suppress(TreadleError):
            lost = [*_lost_in(store, session_id, spec_of)]
            store.write_now(partial(settle_left, session_id=session_id, lost=lost))


def _lost_in(store: Store, session_id: str, spec_of: SpecOf) -> Iterator[EventData]:
    state = last_state(log := store.read(session_id, whole=False))
    if log.damage is not None:
        raise log.damage.error()
    if not calls_under_way(state):
        return
    try:
        spec = spec_of(state.choice.model)
    except ConfigError:
        spec = None
    yield from lost_calls(state, conversation(store.read(session_id, whole=False)), spec)
