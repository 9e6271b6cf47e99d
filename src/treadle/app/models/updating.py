"""Replacing the list of models by the public one, when a person asks for it: nothing is fetched by itself."""

import os
from collections.abc import Iterator, Mapping
from typing import Literal

from treadle.app.models.known import LARGEST_DATA, day, fetched_file, known_models
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.failures import sentence, without_query
from treadle.providers.model_data import DataSource, ModelCatalogue, ModelFigures, decode_models
from treadle.providers.model_fetch import LARGEST_LIST, ListNotFetchedError, fetch_list
from treadle.providers.model_sources import Sections, encode_data, merged_lists, read_list
from treadle.providers.provider_rows import ROWS
from treadle.providers.wire import decode_json
from treadle.workspace.files.private_file import write_private
from treadle.workspace.files.text import visible, visible_name

PUBLIC_LIST = "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json"
"""A list that is changed every day and has prices, limits and the days on which models end; under the MIT licence."""

URL_VARIABLE = "TREADLE_MODELS_URL"

_MOST_SOURCES = 3
"""Sources of the list before that are still named."""

_MOST_SHOWN = 300
"""Characters of an address that are shown."""

_LEAST_KEPT = 0.5
"""A list with less than this part of the models that it replaces is taken for a broken one."""

_WAYS = (
    f"Try again later, or name another list: `treadle models --update URL`, or {URL_VARIABLE}. Treadle reads the lists "
    "of models.dev (api.json) and LiteLLM (model_prices_and_context_window.json)."
)


class ListChange(Record, frozen=True, kw_only=True):
    """What a new list says of one model, `provider/name`, that the one before did not."""

    ref: str
    kind: Literal["new", "retirement", "price", "window"]
    text: str


async def update_models(url: str = "") -> tuple[ListChange, ...]:
    """Fetch the public list, put it over what is known, and keep it; gives what changed for the providers there are.

    `url` is another address than the usual one. Raises `ConfigError`, and then nothing is changed.
    """
    url = (url or os.environ.get(URL_VARIABLE, "")).strip() or PUBLIC_LIST
    try:
        found = read_list(decode_json(await fetch_list(url, most=LARGEST_LIST)))
    except ListNotFetchedError as error:
        raise _failed(url, "fetched", str(error)) from error
    except ValueError as error:  # damaged JSON is one, too
        raise _failed(url, "used", str(error)) from error
    before = known_models()
    wanted = {row.section for row in ROWS}
    old = {name: before.section(name) for name in before.data.providers}
    newer = {name: models for name, models in found.items() if name in wanted}
    _check_size(url, old, newer)
    sections = merged_lists(old, newer)
    today = day()
    fetched = DataSource(name=without_query(url), version=f"of {today}", licence="see its address", date=today)
    data = encode_data(sections, (*before.data.sources[-_MOST_SOURCES:], fetched))
    if len(data) > LARGEST_DATA:
        raise _failed(url, "used", f"it has more than {LARGEST_DATA // MEBIBYTE} MiB of models")
    write_private(fetched_file(), data)
    return tuple(_changes(before, decode_models(data)))


def _check_size(url: str, old: Sections, newer: Sections) -> None:
    """Raise `ConfigError` for a list of no known provider, or with less than half of its providers' known models."""
    known = sum(len(old[name]) for name in newer if name in old)
    if not newer or sum(map(len, newer.values())) < known * _LEAST_KEPT:
        raise _failed(url, "used", "it has far fewer models than the list in use")


def _failed(url: str, done: Literal["fetched", "used"], why: str) -> ConfigError:
    shown = visible_name(without_query(url)[:_MOST_SHOWN])
    what = f"The list of models at {shown} cannot be {done}."
    return ConfigError("models-update", what, why=visible(sentence(why[:1].upper() + why[1:])), fix=_WAYS)


def _changes(before: ModelCatalogue, after: ModelCatalogue) -> Iterator[ListChange]:
    seen = set()
    for row in ROWS:
        if row.section in seen:
            continue
        seen.add(row.section)
        yield from _section_changes(row.name, before.section(row.section), after.section(row.section))


def _section_changes(
    provider: str, old: Mapping[str, ModelFigures], new: Mapping[str, ModelFigures]
) -> Iterator[ListChange]:
    for name, model in new.items():
        ref, known = f"{provider}/{name}", old.get(name)
        if known is None:
            yield ListChange(ref=ref, kind="new", text="is new")
            continue
        if model.retires != known.retires and model.retires:
            yield ListChange(ref=ref, kind="retirement", text=f"retires on {model.retires}")
        if (model.input, model.output) != (known.input, known.output):
            old_price, new_price = (_prices(one) for one in (known, model))
            yield ListChange(ref=ref, kind="price", text=f"costs {new_price}, was {old_price}")
        if model.context_window != known.context_window:
            text = f"holds {_tokens(model.context_window)}, was {_tokens(known.context_window)}"
            yield ListChange(ref=ref, kind="window", text=text)


def _prices(model: ModelFigures) -> str:
    return "unknown" if model.input is None or model.output is None else f"${model.input:g} in, ${model.output:g} out"


def _tokens(number: int | None) -> str:
    return "an unknown number of tokens" if number is None else f"{number:,} tokens"
