"""Which model: from the settings to a provider with its key, and what is known of the model."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from treadle.app.settings import ModelSettings, ProviderSettings, Settings
from treadle.engine.ports import Provider
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec, Prices, ToolProtocol
from treadle.providers.catalogue import ProviderRow, known_models, nearest, open_provider, provider_row, providers

SCRIPTED = "scripted"
"""The provider whose models are scripts: `scripted/path/to/script.toml` plays that file in process."""

_KEY_HELP = "Put your key into the environment ({names}), or try Treadle without one: `treadle demo`."


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A model to work with, and how its calls are written."""

    spec: ModelSpec
    tool_protocol: ToolProtocol


class Models:
    """Models by the name a user types, `provider/model`; providers are opened once and shared."""

    def __init__(self, settings: Settings, environment: Mapping[str, str] | None = None) -> None:
        self._settings = settings
        self._environment = os.environ if environment is None else environment
        self._open: dict[str, Provider] = {}

    def choose(self) -> Choice:
        """Find the model of the settings, or that of the first provider with a key; raises `ConfigError`."""
        ref = self._settings.model or self._first_with_key()
        spec = self.spec(ref)
        self.provider(ref)
        override = self._override(ref)
        protocol = self._settings.tool_protocol or override.tool_protocol
        if protocol is None:
            protocol = ToolProtocol.NATIVE if spec.native_tools else ToolProtocol.XML
        return Choice(spec=spec, tool_protocol=protocol)

    def configured(self) -> bool:
        """Whether a model can be called with what is set."""
        try:
            self.choose()
        except ConfigError:
            return False
        return True

    def spec(self, ref: str) -> ModelSpec:
        """Tell what is known of a model: the catalogue, under what the user says. Raises `ConfigError`."""
        provider, name = _split(ref)
        if provider == SCRIPTED:
            return ModelSpec(provider=provider, name=name, prices=Prices(input=0.0, output=0.0))
        row = _row(provider)
        known = known_models(row.name)
        spec = known.get(name)
        if spec is None:
            self._refuse_unknown(ref, row, known)
            spec = ModelSpec(provider=provider, name=name)
        return _merge(spec, self._override(ref))

    def provider(self, ref: str) -> Provider:
        """Open the provider of a model, or give the open one; raises `ConfigError`."""
        provider, name = _split(ref)
        key = ref if provider == SCRIPTED else provider
        if key not in self._open:
            self._open[key] = self._open_script(name) if provider == SCRIPTED else self._open_row(_row(provider))
        return self._open[key]

    async def close(self) -> None:
        """Give back connections."""
        for provider in self._open.values():
            await provider.close()

    def _open_script(self, path: str) -> Provider:
        from treadle.providers.scripted.provider import ScriptedProvider
        from treadle.providers.scripted.script import load_script

        return ScriptedProvider(load_script(Path(path).expanduser()))

    def _open_row(self, row: ProviderRow) -> Provider:
        said = self._settings.providers.get(row.name, ProviderSettings())
        base_url = self._settings.base_url or said.base_url or row.base_url
        if not base_url:
            raise ConfigError(
                "base-url-missing",
                f"The provider {row.name} has no address of its own.",
                fix=f"Give one with --base-url, or as base_url in [providers.{row.name}] of the settings.",
            )
        if not base_url.startswith(("http://", "https://")):
            raise ConfigError(
                "base-url-invalid",
                f"{base_url!r} is not a base URL.",
                why="It must begin with http:// or https://.",
                fix="Give it like --base-url http://localhost:8000/v1.",
            )
        names = (said.api_key_env,) if said.api_key_env else row.key_variables
        key = next((self._environment[name] for name in names if self._environment.get(name)), "")
        if not key and row.needs_key and base_url == row.base_url:
            raise ConfigError(
                "key-missing",
                f"No key for {row.name} was found.",
                why=f"None of these variables is set: {', '.join(names)}.",
                fix=_KEY_HELP.format(names=", ".join(names)),
            )
        return open_provider(row, api_key=key, base_url=base_url, headers=said.headers)

    def _first_with_key(self) -> str:
        for row in providers():
            if row.default_model and any(self._environment.get(name) for name in row.key_variables):
                return f"{row.name}/{row.default_model}"
        raise ConfigError(
            "no-provider",
            "No model is configured, and no provider's key was found.",
            why="--model, TREADLE_MODEL and the settings file name no model; no key variable is set.",
            fix=_KEY_HELP.format(names="ANTHROPIC_API_KEY, OPENAI_API_KEY, …"),
        )

    def _refuse_unknown(self, ref: str, row: ProviderRow, known: Mapping[str, ModelSpec]) -> None:
        """Refuse a name that is probably mistyped; where the user names an address or facts, they know."""
        said = self._settings.providers.get(row.name, ProviderSettings())
        if not known or self._settings.base_url or said.base_url or ref in self._settings.models:
            return
        near = nearest(ref.partition("/")[2], known)
        raise ConfigError(
            "model-unknown",
            f"The model {ref} is not known.",
            why=f"The nearest names are: {', '.join(f'{row.name}/{name}' for name in near)}." if near else "",
            fix=f'If the name is right, say so in the settings: [models."{ref}"] with context_window = …',
        )

    def _override(self, ref: str) -> ModelSettings:
        return self._settings.models.get(ref, ModelSettings())


def _split(ref: str) -> tuple[str, str]:
    provider, slash, name = ref.partition("/")
    if not slash or not name:
        near = nearest(provider, {row.name: row for row in providers()})
        raise ConfigError(
            "model-name",
            f"{ref!r} is not a model's name.",
            why="It has the form provider/model."
            + (f" Providers of a similar name: {', '.join(near)}." if near else ""),
            fix="For example --model anthropic/claude-sonnet-4-5.",
        )
    return provider, name


def _row(name: str) -> ProviderRow:
    row = provider_row(name)
    if row is None:
        near = nearest(name, {known.name: known for known in providers()})
        raise ConfigError(
            "provider-unknown",
            f"The provider {name!r} is not known.",
            why=f"The nearest names are: {', '.join(near)}." if near else "",
            fix="For another server that speaks the OpenAI API use openai-compatible/MODEL with --base-url.",
        )
    return row


def _merge(spec: ModelSpec, said: ModelSettings) -> ModelSpec:
    prices = spec.prices
    if said.input_price is not None and said.output_price is not None:
        prices = Prices(input=said.input_price, output=said.output_price)
    return ModelSpec(
        provider=spec.provider,
        name=spec.name,
        context_window=said.context_window or spec.context_window,
        max_output=said.max_output or spec.max_output,
        prices=prices,
        native_tools=spec.native_tools,
        images=spec.images,
        thinking=spec.thinking,
        documents=spec.documents,
    )
