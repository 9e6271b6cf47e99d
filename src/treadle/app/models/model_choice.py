"""Which model: from the settings to a provider with its key, and what is known of the model."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from treadle.app.config.addresses import bind_base_url, checked_url, require_bound
from treadle.app.config.sections import ModelSettings, ProviderSettings, Settings
from treadle.app.models.ahead import load_ahead
from treadle.app.models.known import (
    LOCAL,
    USUAL_PROVIDERS,
    LearningProvider,
    data_notice,
    is_mistyped,
    known_models,
    known_spec,
    learn_window,
    learned_windows,
    not_found_fix,
    retirement_notice,
    unknown_notice,
    usual_ref,
    with_bounds,
    written_name,
)
from treadle.app.models.model_notes import (
    UNHOSTED,
    SelectedModel,
    as_found,
    as_spoken_elsewhere,
    clip_thinking,
    in_profile,
    limits_for,
    own_row,
    plain_ref,
    profile_row,
    profile_said,
    with_settings,
)
from treadle.app.models.provider_keys import ApiKey, OpenProviders, find_key, require_key_host
from treadle.engine.ports import Provider
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelChoice, ModelSpec, Searches, ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.providers.breaker import Circuits, GuardedProvider
from treadle.providers.catalogue import BY_NAME, fill_base_url, find_provider
from treadle.providers.connect import provider_for
from treadle.providers.endpoint import LOOPBACK, Endpoint, split_url
from treadle.providers.provider_rows import ROWS, Proof, ProviderRow
from treadle.providers.web_search import searches_of

if TYPE_CHECKING:
    from treadle.providers.local import LocalModel


class OwnModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a program brings along, and what is known of it; its name is that of the `spec`, `provider/name`."""

    spec: ModelSpec
    provider: Provider


_NO_KEYS: Mapping[str, str] = MappingProxyType({})


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
        self._open = OpenProviders()
        self._local: dict[str, LocalModel] = {}
        self._notices: dict[str, str] = {}
        self._usual: dict[str, str] = {}
        self._learned = learned_windows()

    def choose(self, ref: str = "", *, mode: Mode | None = None, thinking: int | None = None) -> SelectedModel:
        """Find a model: `ref`, else that of a mode (by default the settings'), else of the first provider with a key.

        `thinking` is a budget in tokens in place of the settings'. Raises `ConfigError`.
        """
        require_bound(self._settings)
        said = self._settings.in_mode(self._settings.mode if mode is None else mode)
        ref, usual_key = in_profile(ref or said.model or self.first_model(), self._settings)
        spec = self.spec(ref)
        self.provider(ref)
        protocol = self._settings.tool_protocol or self._override(ref).tool_protocol
        if protocol is None:
            protocol = ToolProtocol.NATIVE if spec.native_tools else ToolProtocol.XML
        wanted = said.thinking_budget if thinking is None else thinking
        budget, notice = clip_thinking(spec, wanted, known=bool(wanted) and self._knows_thinking(spec.ref))
        notices = (*filter(None, [notice, usual_key]), *self.notices(spec.ref))
        return SelectedModel(spec=spec, tool_protocol=protocol, thinking_budget=budget, notices=notices)

    def notices(self, ref: str) -> tuple[str, ...]:
        """Give what to tell the user of a model: that it is retired or unknown, that its window is too small."""
        row, name = self.parse(ref)
        if row is None:
            own = self._own.get(ref)
            return () if own is None else tuple(filter(None, [unknown_notice(own.spec, self.window_is_set(ref))]))
        told = self._notices.get(ref, "")
        known = (
            self.window_is_set(ref)
            or plain_ref(ref) in self._learned
            or bool((one := self._local.get(ref)) and one.window)
        )
        unknown = "" if told else unknown_notice(self._known(ref, row, name), known)
        return tuple(filter(None, [data_notice(), retirement_notice(row, self.spec(ref)), told, unknown]))

    def fallback(self) -> ModelChoice | None:
        """Find the model that takes over when the chosen one keeps failing; None without one. Raises `ConfigError`."""
        return self.choose(self._settings.fallback).use if self._settings.fallback else None

    @property
    def differ_by_mode(self) -> bool:
        """Whether the settings give any mode a model or a thinking budget of its own."""
        return bool(self._settings.modes)

    async def ask_server(self, ref: str = "", *, mode: Mode | None = None) -> None:
        """Ask the server of a model (by default that of a mode) what is there, if it is local, or none is named."""
        ref = ref or self._settings.in_mode(self._settings.mode if mode is None else mode).model
        row = self.parse(ref)[0] if ref else None
        if not ref or (row is not None and row.name in LOCAL):
            from treadle.app.models.server_models import ask_any, ask_local

            await (ask_any(self) if row is None else ask_local(self, ref, row))

    def learn_found(self, ref: str, found: "LocalModel", notice: str, *, usual: bool = False) -> None:
        """Take what a model's own server says of it, what to tell the user of that, and whether it is the usual one."""
        self._local[ref] = found
        self._notices[ref] = notice
        if usual:
            self._usual[ref.partition("/")[0]] = ref

    def window_is_set(self, ref: str) -> bool:
        """Whether the settings say a model's window."""
        return self._override(ref).context_window is not None

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
            return with_bounds(with_settings(self._own[ref].spec, self._override(ref)))
        row, name = self.parse(ref)
        if row is None:
            from treadle.app.models.unhosted import unhosted_spec

            return with_settings(unhosted_spec(ref), self._override(ref))
        return with_bounds(self._known(ref, row, name))

    def _known(self, ref: str, row: ProviderRow, name: str) -> ModelSpec:
        """Tell what is known of a model of a provider; its window is None where nothing says one."""
        own, local = bool(self.said(row).base_url) or row.name in LOCAL, self._local.get(ref)
        spec = known_spec(row, name, here=own and split_url(self.base_url(row)).hostname in LOOPBACK)
        if not own and local is None and plain_ref(ref) not in self._settings.models and is_mistyped(row, spec):
            from treadle.app.models.model_refusals import unknown_model

            raise unknown_model(ref, row, name)
        learned = self._learned.get(plain_ref(spec.ref))
        if learned and (spec.like or spec.context_window is None):
            spec = msgspec.structs.replace(spec, context_window=learned)
        return with_settings(as_found(spec, local) if local else spec, self._override(ref))

    def searches(self, ref: str) -> Searches | None:
        """Tell what is known of the searches that a model's provider makes by itself; None where it makes none."""
        row, name = self.parse(ref)
        found = None if row is None else searches_of(self.spoken(row), name)
        price = self._override(ref).search_price
        return found if found is None or price is None else msgspec.structs.replace(found, price=price)

    def provider(self, ref: str) -> Provider:
        """Open the provider of a model, or give the open one; raises `ConfigError`."""
        require_bound(self._settings)
        if ref in self._own:
            return self._own[ref].provider
        row, _ = self.parse(ref)
        if row is None:
            from treadle.app.models.unhosted import open_unhosted

            return self._open.get(ref, partial(open_unhosted, ref), keyed=False)
        return self._open.get(row.name, partial(self._open_row, row))

    async def close(self) -> None:
        """Give back connections."""
        await self._open.close()

    def rows(self) -> Iterator[ProviderRow]:
        """Give every provider: those that Treadle knows, and those that the settings add."""
        yield from (self.row(row.name) for row in ROWS)
        yield from (self.row(name) for name in self._settings.providers if name not in BY_NAME)

    def row(self, name: str) -> ProviderRow:
        """Find a provider by its name: of the settings, or of those that Treadle knows; raises `ConfigError`."""
        name, _, profile = name.partition("@")
        if profile:
            return profile_row(self.row(name), profile)
        said, known = self._settings.providers.get(name), BY_NAME.get(name)
        if said is None or (known is not None and not said.wire_api):
            return find_provider(name)
        return own_row(name, said, known)

    def usual_model(self, row: ProviderRow) -> str:
        """Name a model of a provider: that of the settings, else the newest general one; empty for none."""
        if self._settings.model.partition("/")[0] in (row.name, *row.aliases):
            return self._settings.model
        return usual_ref(row) or self._usual.get(row.name, "")

    def first_with_key(self) -> ProviderRow | None:
        """Find the provider that is taken where no model is named: the first with a key and an address."""
        rows, profile = (*map(self.row, USUAL_PROVIDERS), *self.rows()), self._settings.profile
        own = [profile_row(row, profile) for row in rows] if profile else []
        return next((row for row in (*own, *rows) if self._has_key(row)), None)

    def _has_key(self, row: ProviderRow) -> bool:
        if row.key_optional or not row.keys or self.key(row) is None:
            return False
        try:
            self.base_url(row)
        except ConfigError:
            return False
        return True

    def key(self, row: ProviderRow) -> ApiKey | None:
        """Find the key of a provider: in its variables, or the one that the settings name; else the stored one.

        Raises `ConfigError` where the stored keys cannot be read.
        """
        if row.name in self._keys:
            return ApiKey(value=self._keys[row.name], origin="")
        said = self.said(row)
        variables = () if row.profile else (said.api_key_env,) if said.api_key_env else row.keys
        return find_key(row.name, variables, self._environment)

    def base_url(self, row: ProviderRow) -> str:
        """Find the address of a provider; raises `ConfigError`."""
        variables = self._environment
        if "{" in row.base_url:
            from treadle.app.models.cloud import address_variables

            variables = address_variables(row, variables)
        return checked_url(self.said(row).base_url or fill_base_url(row, variables))

    def parse(self, ref: str) -> tuple[ProviderRow | None, str]:
        """Split a model's name; None stands for the models without a provider. Raises `ConfigError`."""
        provider, slash, name = ref.strip().partition("/")
        if not slash or not name:
            from treadle.app.models.model_refusals import not_a_name

            raise not_a_name(ref)
        if provider in UNHOSTED or ref in self._own:
            return None, name
        try:
            row = self.row(provider)
            return row, written_name(row, name)
        except ConfigError as error:
            from treadle.app.models.model_names import with_place

            raise with_place(error, ref) from error

    def proof(self, row: ProviderRow) -> str:
        """Name where the proof of who asks comes from: a key, or what the provider takes in its place; else empty."""
        key = self.key(row)
        if key is not None:
            return key.origin
        if row.proof is Proof.KEY and not self.said(row).token_command:
            return ""
        from treadle.app.models.cloud import proof_origin

        return proof_origin(row, self._environment, self.said(row).token_command)

    def _open_row(self, row: ProviderRow) -> Provider:
        said, key = self.said(row), self.key(row)
        authorizer = None
        if key is None and not row.profile and (row.proof is not Proof.KEY or said.token_command):
            from treadle.app.models.cloud import find_authorizer

            authorizer = find_authorizer(row, self._environment, said.token_command)
        needs = row.profile or (row.keys and not row.key_optional and not said.base_url)
        if key is None and authorizer is None and needs:
            from treadle.app.models.model_refusals import key_missing

            raise key_missing(row, said.api_key_env or " or ".join(row.keys))
        endpoint = self.endpoint(row, proved=authorizer is not None)
        proof, account = None if authorizer is None else authorizer(endpoint), (endpoint.base_url, endpoint.api_key)
        inner = provider_for(
            self.spoken(row), endpoint, proof, meanwhile=load_ahead, limits=partial(self._circuits.learn, account)
        )
        guarded = GuardedProvider(inner, self._circuits, name=row.name, account=account)
        return LearningProvider(
            guarded,
            lambda name, window: self._learn(f"{row.name}/{name}", window),
            lambda name: self._ask_provider(row, name),
            advise=lambda name: not_found_fix(row, known_spec(row, name), endpoint.base_url),
        )

    async def _ask_provider(self, row: ProviderRow, name: str) -> None:
        """Ask a provider for its own list where nothing says what a model holds."""
        from treadle.app.models.server_models import ask_list

        if f"{row.name}/{name}" not in self._local:
            await ask_list(self, row, name)

    def endpoint(self, row: ProviderRow, *, proved: bool = False) -> Endpoint:
        """Say where and how a provider is called; `proved` says that more than a key shows who asks.

        Raises `ConfigError`.
        """
        said, key = self.said(row), self.key(row)
        require_key_host(row, said, key or (proved or None))
        base_url = self.base_url(row)
        return Endpoint(
            name=row.name,
            base_url=base_url,
            api_key=key.value if key else "",
            key_origin=self.proof(row) if proved or (key and key.origin) else "",
            key_variable=key.origin if key and key.origin in self._environment else "",
            headers=said.headers,
            limits=limits_for(row, said, here=split_url(base_url).hostname in LOOPBACK and not said.proxy),
            quirks=row.quirks,
            proxy=said.proxy,
            ca_file=str(Path(said.ca_file).expanduser()) if said.ca_file else "",
        )

    def spoken(self, row: ProviderRow) -> ProviderRow:
        """Give the row as it is spoken at the address that the user says."""
        said = self.said(row)
        return as_spoken_elsewhere(row) if said.base_url and not said.wire_api else row

    def _learn(self, ref: str, window: int) -> None:
        """Keep a window that a refusal named, if nothing says another of this very model."""
        try:
            row, name = self.parse(ref)
            spec = None if row is None else self._known(ref, row, name)
        except ConfigError:
            return
        if spec is not None and (spec.like or spec.context_window is None):
            learn_window(plain_ref(ref), window)
            self._learned = learned_windows()

    def said(self, row: ProviderRow) -> ProviderSettings:
        """Give what the settings say of a provider, under whichever of its names."""
        providers = self._settings.providers
        said = next((providers[name] for name in (row.name, *row.aliases) if name in providers), ProviderSettings())
        return profile_said(said, row, self._settings.profiles.get(row.profile)) if row.profile else said

    def first_model(self) -> str:
        """Name the model that is taken where none is named; raises `ConfigError`."""
        from treadle.app.models.model_refusals import no_model, no_provider

        row = self.first_with_key()
        if row is None:
            raise no_provider()
        if ref := usual_ref(row) or self._usual.get(row.name, ""):
            return ref
        raise no_model(row)

    def _knows_thinking(self, ref: str) -> bool:
        """Whether it is known that a model thinks, or that it does not."""
        local = self._local.get(ref)
        if local is not None and local.thinking is not None:
            return True
        row, name = self.parse(ref)
        return row is not None and name in known_models().section(row.section)

    def _override(self, ref: str) -> ModelSettings:
        return self._settings.models.get(ref) or self._settings.models.get(plain_ref(ref), ModelSettings())
