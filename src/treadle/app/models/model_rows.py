"""Lists for a person or a script: providers, models of the catalogue, models of local servers."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from treadle.app.models.known import (
    LOCAL,
    USUAL_PROVIDERS,
    is_over,
    known_models,
    learned_windows,
    successor_ref,
    usual_ref,
)
from treadle.app.models.model_choice import Models
from treadle.app.models.model_order import newest_first
from treadle.app.models.offered import OfferedModel
from treadle.app.models.provider_keys import require_key_host
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec
from treadle.providers.local import LocalServer, find_servers
from treadle.providers.local_advice import window_fix, window_problem
from treadle.providers.provider_rows import ROWS, ProviderRow

_ALIKE = 80.0
"""How alike a name and a query must be, of 100, where no name holds the query's words."""


class ProviderLine(Record, frozen=True, kw_only=True):
    """One provider. `key_origin` names where its key comes from, empty for none; `problem` why it cannot be called."""

    name: str
    title: str
    base_url: str
    wire: str
    key_variables: tuple[str, ...]
    key_origin: str
    configured: bool
    problem: str


class LocalLine(Record, frozen=True, kw_only=True):
    """One model of a local server; `problem` and `fix` tell of a window that is too small."""

    ref: str
    base_url: str
    window: int | None
    largest: int | None
    loaded: bool
    problem: str
    fix: str


def provider_lines(models: Models) -> Iterator[ProviderLine]:
    """List every provider, and whether it can be called with what is set."""
    for row in models.rows():
        proof = ""
        try:
            proof, problem = models.proof(row), ""
            base_url = models.base_url(row)
        except ConfigError as error:
            base_url, problem = row.base_url, error.what
        if not problem and not proof and row.keys and not row.key_optional:
            problem = "no key"
        yield ProviderLine(
            name=row.name,
            title=row.title,
            base_url=without_secrets(base_url),
            wire=row.wire.value,
            key_variables=row.keys,
            key_origin=proof,
            configured=not problem and (bool(proof) or not row.key_optional),
            problem=problem,
        )


def without_secrets(url: str) -> str:
    """Take a user name, password and query out of a URL that is shown."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "(not a URL)"
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}" if host else url.partition("?")[0]


def data_words() -> str:
    """Say how new the catalogue is: the day of its newest source, and the newest model whose release has a day."""
    data = known_models().data
    newest = (
        f"; the newest model with a known release date is {data.newest} ({data.newest_date})" if data.newest else ""
    )
    return f"Data of {data.date}{newest}."


def models_of_provider(row: ProviderRow) -> Iterator[ModelSpec]:
    """List the known models of a provider that are not retired, the newest first."""
    return (spec for spec in newest_first(_catalogue([row])) if not is_over(spec))


def replacement(models: Models, spec: ModelSpec) -> str:
    """Name the model, `provider/model`, to use in place of a retired one; empty for others."""
    return successor_ref(models.row(spec.provider), spec) if spec.retires else ""


def usable_providers(models: Models) -> frozenset[str]:
    """Name the providers that can be called with what is set."""
    return frozenset(line.name for line in provider_lines(models) if line.configured)


def usable_models(models: Models) -> Sequence[ModelSpec]:
    """List the known models of the providers that can be called, without those that are over."""
    usable = usable_providers(models)
    return [spec for spec in catalogue_models(models, "") if spec.provider in usable and not is_over(spec)]


def catalogue_models(models: Models, query: str) -> Sequence[ModelSpec]:
    """List the known models that a query means, those of usable providers first, of each the newest first.

    They are the names with all its words, else names that are like it.
    """
    usable = usable_providers(models)
    ordered = [*newest_first(_catalogue(models.rows())), *_learned()]
    found = sorted(ordered, key=lambda spec: spec.provider not in usable)
    words = query.lower().split()
    holding = [spec for spec in found if all(word in spec.ref.lower() for word in words)]
    if holding or not words:
        return holding
    from rapidfuzz import fuzz, process

    names = [spec.ref.lower() for spec in found]
    alike = process.extract(" ".join(words), names, scorer=fuzz.WRatio, score_cutoff=_ALIKE, limit=20)
    return [found[index] for _, _, index in alike]


def _catalogue(rows: Iterable[ProviderRow]) -> Iterator[ModelSpec]:
    catalogue = known_models()
    for row in rows:
        yield from (catalogue.spec(row, name) for name in catalogue.names(row))


def _learned() -> Iterator[ModelSpec]:
    """Models outside the catalogue whose window a refusal named."""
    known = {row.name: known_models().section(row.section) for row in ROWS}
    for ref, window in learned_windows().items():
        provider, _, name = ref.partition("/")
        if name not in known.get(provider, ()):
            yield ModelSpec(provider=provider, name=name, context_window=window)


async def local_servers(models: Models) -> tuple[LocalServer, ...]:
    """Find the servers on this machine, at their usual places or where the settings say."""
    rows = [models.row(name) for name in LOCAL]
    keys: dict[str, str] = {}
    for row in rows:
        key = models.key(row)
        with suppress(ConfigError):  # it is looked for without its key where that may not go there
            require_key_host(row, models.said(row), key)
            keys |= {} if key is None else {row.name: key.value}
    return await find_servers({row.name: models.base_url(row) for row in rows}, keys)


def local_lines(servers: Iterable[LocalServer]) -> Iterator[LocalLine]:
    """List the models of local servers."""
    for server in servers:
        for model in server.models:
            problem = window_problem(server.provider, model)
            yield LocalLine(
                ref=f"{server.provider}/{model.name}",
                base_url=without_secrets(server.base_url),
                window=model.window,
                largest=model.largest,
                loaded=model.loaded,
                problem=problem,
                fix=window_fix(server.provider, model) if problem else "",
            )


def offered_models(models: Models) -> Sequence[OfferedModel]:
    """List the known models, those of usable providers first, and of these the usual one of each.

    Reads the stored keys and the catalogue: to be called in a thread.
    """
    providers = {line.name: line for line in provider_lines(models)}
    usual = {usual_ref(models.row(name)) for name in USUAL_PROVIDERS if providers[name].configured}
    offered = [
        _offered(spec, providers[spec.provider])
        for spec in catalogue_models(models, "")
        if spec.provider in providers and not is_over(spec)
    ]
    return sorted(offered, key=lambda model: model.ref not in usual)


def _offered(spec: ModelSpec, provider: ProviderLine) -> OfferedModel:
    return OfferedModel(
        ref=spec.ref,
        title=provider.title,
        window=spec.context_window,
        price_in=None if spec.prices is None else spec.prices.input,
        price_out=None if spec.prices is None else spec.prices.output,
        usable=provider.configured,
        key=provider.key_origin,
        thinks=spec.thinking,
    )
