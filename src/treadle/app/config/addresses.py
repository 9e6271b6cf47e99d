"""Whose address a base URL is that was given without a provider: that of one provider, never of all."""

from msgspec.structs import replace

from treadle.app.config.sections import ProviderSettings, Settings
from treadle.protocol.errors import ConfigError
from treadle.providers.catalogue import find_provider


def bind_base_url(settings: Settings, model: str) -> Settings:
    """Make the top-level base URL the address of the provider of `model` alone; without a model it stays unbound.

    A name that no provider has gets no address: choosing the model refuses it.
    """
    if not settings.base_url or not model:
        return settings
    name = _section(settings, model.strip().partition("/")[0])
    said = settings.providers.get(name, ProviderSettings())
    own = {name: replace(said, base_url=settings.base_url)} if name else {}
    return replace(settings, base_url="", providers={**settings.providers, **own})


def require_bound(settings: Settings) -> None:
    """Raise `ConfigError` where a base URL was given and nothing says whose address it is."""
    if settings.base_url:
        raise ConfigError(
            "base-url-alone",
            "A base URL was given without a model.",
            why=(
                "It is the address of one provider only, so that no key goes to the address of another provider. "
                "Neither --model nor model in your own settings names one."
            ),
            fix="Add --model PROVIDER/NAME, or write the address into your own settings file under its provider: "
            '[providers.NAME] with base_url = "URL".',
        )


def _section(settings: Settings, provider: str) -> str:
    """Name the table of the settings that speaks of a provider; empty for one that nobody knows."""
    try:
        row = find_provider(provider)
    except ConfigError:
        return provider if provider in settings.providers else ""
    return next((name for name in (row.name, *row.aliases) if name in settings.providers), row.name)
