"""What the settings say, put over rows of providers, their limits, and what is known of a model."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from treadle.app.config.sections import ModelSettings, ProfileSettings, ProviderSettings, Settings
from treadle.app.models.provider_keys import stored_names
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelChoice, ModelSpec, Prices, ToolProtocol
from treadle.providers.catalogue import find_provider
from treadle.providers.endpoint import CONNECT_HERE, StreamLimits
from treadle.providers.provider_rows import ProviderRow, Wire

if TYPE_CHECKING:
    from treadle.app.models.model_choice import Models
    from treadle.providers.local import LocalModel


UNHOSTED = ("scripted", "local")
"""What stands in place of a provider before scripts, and before the models that Treadle runs by itself."""


PROGRAM_REF = "treadle/program"
"""Stands in place of a model in the session of a program of code mode."""
RECORDED, FINDING = "recorded", "finding"
"""What is scripted: the calls of a session that are run again, and the change of a finding."""
NO_MODELS = frozenset({PROGRAM_REF, f"scripted/{RECORDED}", f"scripted/{FINDING}"})
"""What is called and is no model: it takes no tokens and no money."""


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


def as_spoken_elsewhere(row: ProviderRow) -> ProviderRow:
    """Give the row for another address: servers that follow OpenAI's API speak its chat completions, few the rest."""
    return msgspec.structs.replace(row, wire=Wire.OPENAI_CHAT) if row.wire is Wire.OPENAI_RESPONSES else row


def own_row(name: str, said: ProviderSettings, known: ProviderRow | None) -> ProviderRow:
    """Make the row of a provider that the settings describe; raises `ConfigError`."""
    try:
        wire = Wire(said.wire_api or Wire.OPENAI_CHAT)
    except ValueError as error:
        raise ConfigError(
            "wire-api",
            f"{said.wire_api!r} of [providers.{name}] is not a wire API.",
            fix=f"Choose one of {', '.join(one.value for one in Wire)}.",
        ) from error
    if known is not None:
        return msgspec.structs.replace(known, wire=wire)
    return ProviderRow(name=name, title=name, base_url="", wire=wire, key_optional=True)  # which the settings say


def profile_row(row: ProviderRow, profile: str) -> ProviderRow:
    """Give the row of a provider that is called with the key of a profile: its name says so wherever it stands."""
    return msgspec.structs.replace(
        row, name=f"{row.name}@{profile}", aliases=(row.name, *row.aliases), models=row.section, profile=profile
    )


def plain_ref(ref: str) -> str:
    """Give a model's name, `provider@profile/name`, without the profile."""
    provider, slash, name = ref.partition("/")
    return f"{provider.partition('@')[0]}{slash}{name}"


def named_profile(ref: str) -> str:
    """Name the profile in a model's name; empty for the usual keys."""
    return ref.partition("/")[0].partition("@")[2]


def with_profile(ref: str, profile: str) -> str:
    """Name a model with a profile, if that has a key of its provider; one that names a profile itself stays.

    `provider@/name` is the usual key, whatever the profile.
    """
    provider, slash, name = ref.strip().partition("/")
    if "@" in provider or not profile or not slash:
        return f"{provider.removesuffix('@')}{slash}{name}"
    try:
        own = f"{find_provider(provider).name}@{profile}"
    except ConfigError:
        own = f"{provider}@{profile}"
    return f"{own}/{name}" if own in stored_names() else ref


def in_profile(ref: str, settings: Settings) -> tuple[str, str]:
    """Name a model with the profile of the settings, and say where the usual key is used as that has none.

    Raises `ConfigError` for a profile that has neither a key nor settings.
    """
    profile = settings.profile
    own = settings.profiles.get(profile)
    if profile and own is None and not any(one.endswith(f"@{profile}") for one in stored_names()):
        from treadle.app.models.model_refusals import no_profile

        raise no_profile(profile)
    named = with_profile(ref, profile)
    provider, _, name = ref.partition("/")
    if not profile or "@" in provider or named_profile(named) or provider in UNHOSTED:
        return named, ""
    if own is not None and own.model.partition("/")[0] == provider:
        return f"{provider}@{profile}/{name}", ""
    return named, f"The profile {profile} has no key of {provider}: the usual one is used."


def as_now(ref: str, present: str, begun: str = "") -> str:
    """Name a model with the profile of the present one; where that has no key of its provider, with the usual key.

    The name says so only where there is another key that the settings could mean. Where the profile with which the
    session has `begun` has no key of the present model's provider, that one says nothing of it, and it still applies.
    """
    profile = named_profile(present)
    if begun and not profile and not named_profile(with_profile(present, begun)):
        profile = begun
    named = with_profile(ref, profile)
    provider, slash, name = named.partition("/")
    others = any(one.startswith(f"{provider}@") for one in stored_names())
    return f"{provider}@{slash}{name}" if others and "@" not in provider else named


def profile_said(said: ProviderSettings, row: ProviderRow, own: ProfileSettings | None) -> ProviderSettings:
    """Put what the settings say of a profile over what they say of its provider: its key is no variable's."""
    provider = "" if own is None else own.model.partition("/")[0].partition("@")[0]
    base_url = own.base_url if own is not None and provider in row.aliases and own.base_url else said.base_url
    return msgspec.structs.replace(said, base_url=base_url, api_key_env="", token_command=())


def limits_for(row: ProviderRow, said: ProviderSettings, *, here: bool) -> StreamLimits:
    """The time limits of a provider, where the user says others; more patience in one is more in the wider ones.

    `here` says that its server is on this machine.
    """
    limits = row.limits
    first_byte = said.first_byte_timeout or limits.first_byte
    idle = said.idle_timeout or limits.idle
    progress = said.progress_timeout or max(limits.progress, idle, first_byte)
    return StreamLimits(
        connect=said.connect_timeout or (CONNECT_HERE if here else limits.connect),
        first_byte=first_byte,
        idle=idle,
        progress=progress,
        reply=said.reply_timeout or max(limits.reply, progress),
        body=limits.body,
        event=limits.event,
    )


def as_found(spec: ModelSpec, found: "LocalModel") -> ModelSpec:
    """Put what a server says of its model over what the catalogue knows of it."""
    return msgspec.structs.replace(
        spec,
        context_window=found.window or spec.context_window,
        max_output=found.max_output or spec.max_output,
        native_tools=spec.native_tools if found.native_tools is None else found.native_tools,
        images=spec.images if found.images is None else found.images,
        thinking=spec.thinking if found.thinking is None else found.thinking,
    )


def with_settings(spec: ModelSpec, said: ModelSettings) -> ModelSpec:
    """Put what the user says of a model over what is known of it."""
    prices = spec.prices
    if said.input_price is not None and said.output_price is not None:
        prices = Prices(input=said.input_price, output=said.output_price)
    return msgspec.structs.replace(
        spec,
        context_window=said.context_window or spec.context_window,
        max_output=said.max_output or spec.max_output,
        prices=prices,
    )


def clip_thinking(spec: ModelSpec, wanted: int | None, *, known: bool) -> tuple[int | None, str]:
    """Bring a thinking budget to what the model can, and say so; a quarter of its output is left to the reply.

    `known` says that it is known whether the model thinks.
    """
    if not wanted:
        return None, ""
    if not spec.thinking and known:
        return None, f"{spec.ref} cannot think. Its thinking budget of {wanted:,} tokens is not used."
    limit = wanted if spec.max_output is None else spec.max_output - spec.max_output // 4
    if wanted <= limit:
        return wanted, ""
    return limit, f"{spec.ref} can think {limit:,} tokens at most. Its budget of {wanted:,} is cut to that."


def with_searches(models: "Models") -> Callable[[str], ModelSpec]:
    """Say with each model what searches of its provider may cost, which lets it search; what the user says counts."""

    def find(ref: str) -> ModelSpec:
        spec = models.spec(ref)
        searches = models.searches(ref)
        return spec if searches is None else msgspec.structs.replace(spec, searches=searches)

    return find
