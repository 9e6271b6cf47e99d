"""Which model: from the settings to a provider with its key, and what is known of the model."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from treadle.app.settings import ModelSettings, ProviderSettings, Settings
from treadle.engine.ports import Provider
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec, Prices, ToolProtocol
from treadle.providers.catalogue import fill_base_url, resolve
from treadle.providers.connect import provider_for
from treadle.providers.model_data import model_names, model_spec, nearest_models
from treadle.providers.provider_rows import ROWS, ProviderRow, Wire

SCRIPTED = "scripted"
"""The provider whose models are scripts: `scripted/path/to/script.toml` plays that file in process."""

_DEFAULTS = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A model to work with, and how its calls are written."""

    spec: ModelSpec
    tool_protocol: ToolProtocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A provider's key, and the name of what it came from."""

    value: str
    origin: str


_KEY_HELP = "Put your key into the environment ({names}), or try Treadle without one: `treadle demo`."


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
        provider, name = self._parse(ref)
        if provider is None:
            return ModelSpec(provider=SCRIPTED, name=name, prices=Prices(input=0.0, output=0.0))
        if name not in model_names(provider):
            self._refuse_unknown(ref, provider, name)
        return _merge(model_spec(provider, name), self._override(ref))

    def provider(self, ref: str) -> Provider:
        """Open the provider of a model, or give the open one; raises `ConfigError`."""
        row, name = self._parse(ref)
        key = ref if row is None else row.name
        if key not in self._open:
            self._open[key] = _open_script(name) if row is None else self._open_row(row)
        return self._open[key]

    async def close(self) -> None:
        """Give back connections."""
        for provider in self._open.values():
            await provider.close()

    def rows(self) -> Iterator[ProviderRow]:
        """Give every provider: those that Treadle knows, and those that the settings add."""
        yield from ROWS
        known = {name for row in ROWS for name in (row.name, *row.aliases)}
        yield from (_own_row(name, said) for name, said in self._settings.providers.items() if name not in known)

    def key(self, row: ProviderRow) -> Key | None:
        """Find the key of a provider: the variable that the settings name, else the provider's own variables."""
        said = self._said(row)
        names = (said.api_key_env,) if said.api_key_env else row.keys
        found = next((name for name in names if self._environment.get(name, "").strip()), None)
        return None if found is None else Key(value=self._environment[found].strip(), origin=found)

    def base_url(self, row: ProviderRow) -> str:
        """Find the address of a provider; raises `ConfigError`."""
        said = self._settings.base_url or self._said(row).base_url
        url = said or fill_base_url(row, self._environment)
        if not url.startswith(("http://", "https://")):
            raise ConfigError(
                "base-url-invalid",
                f"{url!r} is not a base URL.",
                why="It must begin with http:// or https://.",
                fix="Give it like --base-url http://localhost:8000/v1.",
            )
        return url

    def _parse(self, ref: str) -> tuple[ProviderRow | None, str]:
        """Split a model's name; None stands for the scripted model. Raises `ConfigError`."""
        provider, slash, name = ref.strip().partition("/")
        if not slash or not name:
            raise ConfigError(
                "model-name",
                f"{ref!r} is not a model's name.",
                why="A model is named by its provider, a slash and its own name there.",
                fix="For example --model anthropic/claude-sonnet-4-5; `treadle models` lists them.",
            )
        if provider == SCRIPTED:
            return None, name
        said = self._settings.providers.get(provider)
        if said is not None and said.wire_api:
            return _own_row(provider, said), name
        return resolve(provider), name

    def _open_row(self, row: ProviderRow) -> Provider:
        own_address = self._settings.base_url or self._said(row).base_url
        base_url, key = self.base_url(row), self.key(row)
        if key is None and row.keys and not row.key_optional and not own_address:
            names = self._said(row).api_key_env or " or ".join(row.keys)
            raise ConfigError(
                "key-missing",
                f"No key for {row.title} was found.",
                why=f"{names} is not set.",
                fix=_KEY_HELP.format(names=names),
            )
        return provider_for(row, api_key=key.value if key else "", base_url=base_url, headers=self._said(row).headers)

    def _said(self, row: ProviderRow) -> ProviderSettings:
        return self._settings.providers.get(row.name, ProviderSettings())

    def _first_with_key(self) -> str:
        for name, model in _DEFAULTS.items():
            if self.key(resolve(name)) is not None:
                return f"{name}/{model}"
        raise ConfigError(
            "no-provider",
            "No model is configured, and no provider's key was found.",
            why="--model, TREADLE_MODEL and the settings file name no model; no key variable is set.",
            fix=_KEY_HELP.format(names="ANTHROPIC_API_KEY, OPENAI_API_KEY, …"),
        )

    def _refuse_unknown(self, ref: str, row: ProviderRow, name: str) -> None:
        """Refuse a name that is probably mistyped; where the user names an address or facts, they know."""
        if not model_names(row) or self._settings.base_url or self._said(row).base_url or ref in self._settings.models:
            return
        near = ", ".join(f"{row.name}/{one}" for one in nearest_models(row, name))
        raise ConfigError(
            "model-unknown",
            f"The model {ref} is not known.",
            why=f"The nearest names are: {near}." if near else "No known name is like it.",
            fix=f'If the name is right, say so in the settings: [models."{ref}"] with context_window = …',
        )

    def _override(self, ref: str) -> ModelSettings:
        return self._settings.models.get(ref, ModelSettings())


def _open_script(path: str) -> Provider:
    from treadle.providers.scripted.provider import ScriptedProvider
    from treadle.providers.scripted.script import load_script

    return ScriptedProvider(load_script(Path(path).expanduser()))


def _own_row(name: str, said: ProviderSettings) -> ProviderRow:
    """Make the row of a provider that the settings describe; raises `ConfigError`."""
    try:
        wire = Wire(said.wire_api or Wire.OPENAI_CHAT)
    except ValueError as error:
        raise ConfigError(
            "wire-api",
            f"{said.wire_api!r} of [providers.{name}] is not a wire API.",
            fix=f"Take one of {', '.join(one.value for one in Wire)}.",
        ) from error
    return ProviderRow(name=name, title=name, base_url=said.base_url, wire=wire, key_optional=True)


def _merge(spec: ModelSpec, said: ModelSettings) -> ModelSpec:
    prices = spec.prices
    if said.input_price is not None and said.output_price is not None:
        prices = Prices(input=said.input_price, output=said.output_price)
    return msgspec.structs.replace(
        spec,
        context_window=said.context_window or spec.context_window,
        max_output=said.max_output or spec.max_output,
        prices=prices,
    )
