"""Whose address a base URL is that was given without a provider: that of one provider, never of all."""

from msgspec.structs import replace

from treadle.app.config.sections import ADDRESS_RULE, ProviderSettings, Settings, is_base_url
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
    checked_url(settings.base_url)
    own = {name: replace(said, base_url=settings.base_url)} if name else {}
    return replace(settings, base_url="", providers={**settings.providers, **own})


def checked_url(url: str) -> str:
    """Give a base URL back if it is one; raises `ConfigError`."""
    if is_base_url(url):
        return url
    raise ConfigError(
        "base-url-invalid",
        f"{url!r} is not a base URL.",
        why=ADDRESS_RULE,
        fix="Write it like http://localhost:8000/v1, where it was given: --base-url, TREADLE_BASE_URL, or base_url at "
        "the top of your settings file.",
    )


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
