"""What servers say of their own models, asked where nothing else is known: those of this machine, and any list."""

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING

from treadle.app.models.known import LOCAL, day, known_models
from treadle.app.models.provider_keys import require_key_host
from treadle.protocol.errors import ConfigError
from treadle.providers.local import LocalModel, find_model
from treadle.providers.local_advice import window_fix, window_problem
from treadle.providers.model_data import TOOLS, ModelFigures
from treadle.providers.provider_rows import ProviderRow
from treadle.providers.usual_models import usual_of

if TYPE_CHECKING:
    from treadle.app.models.model_choice import Models


async def ask_local(models: "Models", ref: str, row: ProviderRow) -> None:
    """Ask a server of this machine what its model holds and can do."""
    key = models.key(row)
    require_key_host(row, models.said(row), key)
    found = await find_model(row.name, models.base_url(row), key.value if key else "", ref.partition("/")[2])
    if found is None:
        return
    problem = "" if models.window_is_set(ref) else window_problem(row.name, found)
    models.learn_found(ref, found, f"{problem} {window_fix(row.name, found)}" if problem else "")


async def ask_list(models: "Models", row: ProviderRow, name: str) -> None:
    """Ask a provider for its list where nothing else says what a model holds, and take what it says of that."""
    ref = f"{row.name}/{name}"
    if row.name in LOCAL or models.window_is_set(ref) or name in known_models().section(row.section):
        return
    listed = await _listed(models, row)
    found = next((one for one in listed if one.name == name), None)
    if found is not None:
        models.learn_found(ref, found, "")


async def ask_any(models: "Models") -> None:
    """Where no model of the first provider with a key is known, ask its server which it has."""
    row = models.first_with_key()
    if row is None or models.usual_model(row):
        return
    listed = await _listed(models, row)
    figures = [ModelFigures(name=one.name, can=TOOLS, context_window=one.window) for one in listed]
    name = usual_of(figures, row.name, day())
    found = next((one for one in listed if one.name == name), None)
    if found is not None:
        models.learn_found(f"{row.name}/{name}", found, "", usual=True)


async def _listed(models: "Models", row: ProviderRow) -> "tuple[LocalModel, ...]":
    """Give a provider's list; its call says what is wrong where it cannot be called. What asks is loaded aside."""
    try:
        endpoint = models.endpoint(row)
    except ConfigError:
        return ()
    lists = await asyncio.to_thread(import_module, "treadle.providers.model_list")
    found: tuple[LocalModel, ...] = await lists.list_models(models.spoken(row).wire, endpoint)
    return found
