"""Which model: from the settings to a provider with its key, and what is known of the model."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from treadle.app.ahead import load_ahead
from treadle.app.config.addresses import bind_base_url, require_bound
from treadle.app.config.settings import ModelSettings, ProviderSettings, Settings
from treadle.app.models.keys import ApiKey, find_key, require_key_host
from treadle.app.models.said import as_found, as_spoken_elsewhere, checked_url, limits_for, own_row, with_settings
from treadle.app.models.windows import LearningProvider, learn_window, learned_windows
from treadle.engine.ports import Provider
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelChoice, ModelSpec, Prices, Searches, ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.providers.breaker import Circuits, GuardedProvider
from treadle.providers.catalogue import fill_base_url, find_provider
from treadle.providers.connect import provider_for
from treadle.providers.endpoint import Endpoint
from treadle.providers.model_data import model_names, model_spec
from treadle.providers.provider_rows import ROWS, Proof, ProviderRow
from treadle.providers.web_search import searches_of

if TYPE_CHECKING:
    from treadle.providers.local import LocalModel

SCRIPTED = "scripted"
"""The provider whose models are scripts: `scripted/path/to/script.toml` plays that file in process."""

EMBEDDED = "local"
"""The provider of models that Treadle runs by itself: `local/smollm2`, or `local/` and the path of a GGUF file."""

DEFAULTS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-5",
    "gemini": "gemini-2.5-pro",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "deepseek": "deepseek-chat",
    "xai": "grok-4",
    "mistral": "mistral-large-latest",
    "groq": "openai/gpt-oss-120b",
}
"""The model that is taken when only a provider's key is there, in the order of asking."""

LOCAL = ("ollama", "lmstudio", "llama.cpp", "vllm")
"""The providers on the user's own machine that can be asked what they have."""


class SelectedModel(Record, frozen=True, kw_only=True):
    """A model to work with: how its calls are written, how many tokens it may think, and what to tell the user."""

    spec: ModelSpec
    tool_protocol: ToolProtocol
    thinking_budget: int | None = None
    notices: tuple[str, ...] = ()

    @property
    def use(self) -> ModelChoice:
        """What a session keeps of it."""
        return ModelChoice(model=self.spec.ref, tool_protocol=self.tool_protocol, thinking_budget=self.thinking_budget)


class OwnModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a program brings along, and what is known of it; its name is that of the `spec`, `provider/name`."""

    spec: ModelSpec
    provider: Provider


_UNKNOWN_WINDOW = (
    "The context window of {ref} is not known. If the provider refuses the conversation as too long and names the "
    "window, Treadle remembers it. If you know it, set context_window under "
    '[models."{ref}"] in the settings.'
)
_NO_KEYS: Mapping[str, str] = MappingProxyType({})


@cache
def process_circuits() -> Circuits:
    """Give the circuits that all sessions of this process share: what one learned of a provider counts for all."""
    return Circuits(time.monotonic)


class Models:
    """Models by the name a user types, `provider/model`; providers are opened once and shared."""

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
        *,
        keys: Mapping[str, str] = _NO_KEYS,
        circuits: Circuits | None = None,
        own: Sequence[OwnModel] = (),
    ) -> None:
        """`keys` are those of providers that are tried before they are stored; `circuits` are shared by sessions.

        `own` models are found by their `provider/name`; who gives them closes them.
        """
        self._own = {one.spec.ref: one for one in own}
        self._settings = bind_base_url(settings, settings.model)
        self._circuits = Circuits(time.monotonic) if circuits is None else circuits
        self._keys = keys
        self._environment = os.environ if environment is None else environment
        self._open: dict[str, Provider] = {}
        self._local: dict[str, LocalModel] = {}
        self._notices: dict[str, str] = {}
        self._learned = learned_windows()

    def choose(self, ref: str = "", *, mode: Mode | None = None, thinking: int | None = None) -> SelectedModel:
        """Find a model: `ref`, else that of a mode (by default the settings'), else of the first provider with a key.

        `thinking` is a budget in tokens in place of the settings'. Raises `ConfigError`.
        """
        require_bound(self._settings)
        said = self._settings.in_mode(self._settings.mode if mode is None else mode)
        ref = ref or said.model or self._first_with_key()
        spec = self.spec(ref)
        self.provider(ref)
        override = self._override(ref)
        protocol = self._settings.tool_protocol or override.tool_protocol
        if protocol is None:
            protocol = ToolProtocol.NATIVE if spec.native_tools else ToolProtocol.XML
        budget, notice = self._clip(spec, said.thinking_budget if thinking is None else thinking)
        unknown = _UNKNOWN_WINDOW.format(ref=ref) if spec.context_window is None and not _is_scripted(ref) else ""
        notices = tuple(text for text in (notice, self._notices.get(ref, ""), unknown) if text)
        return SelectedModel(spec=spec, tool_protocol=protocol, thinking_budget=budget, notices=notices)

    def fallback(self) -> ModelChoice | None:
        """Find the model that takes over when the chosen one keeps failing; None without one. Raises `ConfigError`."""
        if not self._settings.fallback:
            return None
        return self.choose(self._settings.fallback).use

    @property
    def differ_by_mode(self) -> bool:
        """Whether the settings give any mode a model or a thinking budget of its own."""
        return bool(self._settings.modes)

    async def ask_local(self, ref: str = "", *, mode: Mode | None = None) -> None:
        """If a model (by default that of a mode) is on a local server, ask that what the model holds and can do."""
        ref = ref or self._settings.in_mode(self._settings.mode if mode is None else mode).model
        row, name = self._parse(ref) if ref else (None, "")
        if row is None or row.name not in LOCAL:
            return
        from treadle.providers.local import find_model
        from treadle.providers.local_advice import window_fix, window_problem

        key = self.key(row)
        require_key_host(row, self._said(row), key)
        found = await find_model(row.name, self.base_url(row), key.value if key else "", name)
        if found is None:
            return
        self._local[ref] = found
        problem = "" if self._override(ref).context_window else window_problem(row.name, found)
        self._notices[ref] = f"{problem} {window_fix(row.name, found)}" if problem else ""

    def configured(self) -> bool:
        """Whether a model can be called with what is set."""
        try:
            self.choose()
        except ConfigError:
            return False
        return True

    def spec(self, ref: str) -> ModelSpec:
        """Tell what is known of a model: the catalogue, under what the user says. Raises `ConfigError`."""
        if ref in self._own:
            return with_settings(self._own[ref].spec, self._override(ref))
        provider, name = self._parse(ref)
        if provider is None:
            own = ModelSpec(provider=SCRIPTED, name=name, prices=Prices(input=0.0, output=0.0))
            return with_settings(_embedded_spec(name), self._override(ref)) if _is_embedded(ref) else own
        if name not in model_names(provider):
            self._refuse_unknown(ref, provider, name)
        spec = model_spec(provider, name)
        if spec.context_window is None:
            spec = msgspec.structs.replace(spec, context_window=self._learned.get(spec.ref))
        local = self._local.get(ref)
        return with_settings(as_found(spec, local) if local else spec, self._override(ref))

    def searches(self, ref: str) -> Searches | None:
        """Tell what is known of the searches that a model's provider makes by itself; None where it makes none."""
        row, name = self._parse(ref)
        found = None if row is None else searches_of(self._spoken(row), name)
        price = self._override(ref).search_price
        return found if found is None or price is None else msgspec.structs.replace(found, price=price)

    def provider(self, ref: str) -> Provider:
        """Open the provider of a model, or give the open one; raises `ConfigError`."""
        require_bound(self._settings)
        if ref in self._own:
            return self._own[ref].provider
        row, name = self._parse(ref)
        key = ref if row is None else row.name
        if key not in self._open:
            open_own = _open_embedded if _is_embedded(ref) else _open_script
            self._open[key] = open_own(name) if row is None else self._open_row(row)
        return self._open[key]

    async def close(self) -> None:
        """Give back connections."""
        for provider in self._open.values():
            await provider.close()

    def rows(self) -> Iterator[ProviderRow]:
        """Give every provider: those that Treadle knows, and those that the settings add."""
        yield from (self.row(row.name) for row in ROWS)
        known = {name for row in ROWS for name in (row.name, *row.aliases)}
        yield from (self.row(name) for name in self._settings.providers if name not in known)

    def row(self, name: str) -> ProviderRow:
        """Find a provider by its name: of the settings, or of those that Treadle knows; raises `ConfigError`."""
        said = self._settings.providers.get(name)
        known = next((row for row in ROWS if name in (row.name, *row.aliases)), None)
        if said is None or (known is not None and not said.wire_api):
            return find_provider(name)
        return own_row(name, said, known)

    def usual_model(self, row: ProviderRow) -> str:
        """Name a model of a provider: that of the settings, the usual, or the cheapest one; empty for none."""
        if self._settings.model.partition("/")[0] in (row.name, *row.aliases):
            return self._settings.model
        if row.name in DEFAULTS:
            return f"{row.name}/{DEFAULTS[row.name]}"
        specs = (model_spec(row, name) for name in model_names(row))
        priced = [(spec.prices.output, spec.ref) for spec in specs if spec.prices is not None and spec.native_tools]
        return min(priced)[1] if priced else ""

    def key(self, row: ProviderRow) -> ApiKey | None:
        """Find the key of a provider: in its variables, or the one that the settings name; else the stored one.

        Raises `ConfigError` where the stored keys cannot be read.
        """
        if row.name in self._keys:
            return ApiKey(value=self._keys[row.name], origin="")
        said = self._said(row)
        return find_key(row.name, (said.api_key_env,) if said.api_key_env else row.keys, self._environment)

    def base_url(self, row: ProviderRow) -> str:
        """Find the address of a provider; raises `ConfigError`."""
        variables = self._environment
        if "{" in row.base_url:
            from treadle.app.models.cloud import address_variables

            variables = address_variables(row, variables)
        return checked_url(self._said(row).base_url or fill_base_url(row, variables))

    def _parse(self, ref: str) -> tuple[ProviderRow | None, str]:
        """Split a model's name; None stands for the models without a provider. Raises `ConfigError`."""
        provider, slash, name = ref.strip().partition("/")
        if not slash or not name:
            from treadle.app.models.refusals import not_a_name

            raise not_a_name(ref)
        if provider in (SCRIPTED, EMBEDDED) or ref in self._own:
            return None, name
        try:
            return self.row(provider), name
        except ConfigError as error:
            from treadle.app.models.names import with_place

            raise with_place(error, ref) from error

    def proof(self, row: ProviderRow) -> str:
        """Name where the proof of who asks comes from: a key, or what the provider takes in its place; else empty."""
        key = self.key(row)
        if key is not None:
            return key.origin
        if row.proof is Proof.KEY and not self._said(row).token_command:
            return ""
        from treadle.app.models.cloud import proof_origin

        return proof_origin(row, self._environment, self._said(row).token_command)

    def _open_row(self, row: ProviderRow) -> Provider:
        said = self._said(row)
        key = self.key(row)
        authorizer = None
        if key is None and (row.proof is not Proof.KEY or said.token_command):
            from treadle.app.models.cloud import find_authorizer

            authorizer = find_authorizer(row, self._environment, said.token_command)
        base_url = self.base_url(row)
        if key is None and authorizer is None and row.keys and not row.key_optional and not said.base_url:
            from treadle.app.models.refusals import key_missing

            raise key_missing(row, said.api_key_env or " or ".join(row.keys))
        require_key_host(row, said, key or authorizer)
        endpoint = Endpoint(
            name=row.name,
            base_url=base_url,
            api_key=key.value if key else "",
            key_origin=self.proof(row) if authorizer or (key and key.origin) else "",
            key_variable=key.origin if key and key.origin in self._environment else "",
            headers=said.headers,
            limits=limits_for(row, said),
            quirks=row.quirks,
            proxy=said.proxy,
            ca_file=str(Path(said.ca_file).expanduser()) if said.ca_file else "",
        )
        proof = None if authorizer is None else authorizer(endpoint)
        inner = provider_for(self._spoken(row), endpoint, proof, meanwhile=load_ahead)
        guarded = GuardedProvider(inner, self._circuits, name=row.name, place=base_url)
        return LearningProvider(guarded, lambda name, window: self._learn(f"{row.name}/{name}", window))

    def _spoken(self, row: ProviderRow) -> ProviderRow:
        """Give the row as it is spoken at the address that the user says."""
        said = self._said(row)
        return as_spoken_elsewhere(row) if said.base_url and not said.wire_api else row

    def _learn(self, ref: str, window: int) -> None:
        """Keep a window that a refusal named, if nothing else is known of it."""
        try:
            unknown = self.spec(ref).context_window is None
        except ConfigError:
            return
        if unknown:
            learn_window(ref, window)
            self._learned = learned_windows()

    def said(self, name: str) -> ProviderSettings:
        """Give what the settings say under a provider's name."""
        return self._settings.providers.get(name, ProviderSettings())

    def _said(self, row: ProviderRow) -> ProviderSettings:
        providers = self._settings.providers
        return next((providers[name] for name in (row.name, *row.aliases) if name in providers), ProviderSettings())

    def _first_with_key(self) -> str:
        for name, model in DEFAULTS.items():
            if self.key(find_provider(name)) is not None:
                return f"{name}/{model}"
        from treadle.app.models.refusals import no_provider

        raise no_provider()

    def _refuse_unknown(self, ref: str, row: ProviderRow, name: str) -> None:
        """Refuse a name that is probably mistyped; where the user names an address or facts, they know."""
        if not model_names(row) or self._said(row).base_url or ref in self._settings.models:
            return
        from treadle.app.models.refusals import unknown_model

        raise unknown_model(ref, row, name)

    def _clip(self, spec: ModelSpec, wanted: int | None) -> tuple[int | None, str]:
        """Bring a thinking budget to what the model can, and say so; a quarter of its output is left to the reply."""
        if not wanted:
            return None, ""
        if not spec.thinking and self._knows_thinking(spec.ref):
            return None, f"{spec.ref} cannot think. Its thinking budget of {wanted:,} tokens is not used."
        limit = wanted if spec.max_output is None else spec.max_output - spec.max_output // 4
        if wanted <= limit:
            return wanted, ""
        return limit, f"{spec.ref} can think {limit:,} tokens at most. Its budget of {wanted:,} is cut to that."

    def _knows_thinking(self, ref: str) -> bool:
        """Whether it is known that a model thinks, or that it does not."""
        row, name = self._parse(ref)
        local = self._local.get(ref)
        return (local is not None and local.thinking is not None) or (row is not None and name in model_names(row))

    def _override(self, ref: str) -> ModelSettings:
        return self._settings.models.get(ref, ModelSettings())


def _is_scripted(ref: str) -> bool:
    return ref.strip().startswith(f"{SCRIPTED}/")


def _is_embedded(ref: str) -> bool:
    return ref.strip().startswith(f"{EMBEDDED}/")


def _embedded_spec(name: str) -> ModelSpec:
    from treadle.app.models.embedded import embedded_spec

    return embedded_spec(name)


def _open_embedded(name: str) -> Provider:
    from treadle.app.models.embedded import embedded_provider

    return embedded_provider(name)


def _open_script(path: str) -> Provider:
    from treadle.providers.scripted.provider import ScriptedProvider
    from treadle.providers.scripted.script import load_script

    return ScriptedProvider(load_script(Path(path).expanduser()))
