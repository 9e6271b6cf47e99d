"""Storing a provider's key after one call showed that it works."""

import os

from treadle.app.config.sections import Settings
from treadle.app.models.call_check import CallCheck, CheckOutcome, check_call
from treadle.app.models.known import USUAL_PROVIDERS
from treadle.app.models.model_choice import Models
from treadle.app.models.profiles import checked_profile
from treadle.app.models.provider_keys import forget_key, store_key
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.providers.provider_rows import Proof, ProviderRow

KEY_PAGES = {
    "anthropic": "https://console.anthropic.com/settings/keys",
    "openai": "https://platform.openai.com/api-keys",
    "gemini": "https://aistudio.google.com/apikey",
    "openrouter": "https://openrouter.ai/settings/keys",
    "deepseek": "https://platform.deepseek.com/api_keys",
    "xai": "https://console.x.ai",
    "mistral": "https://console.mistral.ai/api-keys",
    "groq": "https://console.groq.com/keys",
}
"""Where a person gets a key, of the usual providers."""

_ORDER = {name: place for place, name in enumerate(USUAL_PROVIDERS)}


def key_providers(models: Models) -> list[ProviderRow]:
    """Give the providers that need a key and nothing else, and of which models are known; the usual ones first."""
    rows = [
        row
        for row in models.rows()
        if row.keys and not row.key_optional and row.proof is Proof.KEY and row.base_url and "{" not in row.base_url
    ]
    usable = [row for row in rows if models.usual_model(row)]
    return sorted(usable, key=lambda row: _ORDER.get(row.name, len(_ORDER)))


class KeyOwner(Record, frozen=True, kw_only=True):
    """Whose key is stored: the `name` under which it is kept, the `provider`, and what people call both."""

    name: str
    provider: str
    title: str


def key_owners(settings: Settings) -> list[KeyOwner]:
    """Give those of the providers that `key_providers` gives."""
    return [KeyOwner(name=row.name, provider=row.name, title=row.title) for row in key_providers(Models(settings))]


def key_owner(settings: Settings, named: str) -> KeyOwner | None:
    """Find whose key a person means by `anthropic` or `anthropic@work`; None where that is nobody's."""
    try:
        name = checked_name(settings, named)
        row = Models(settings).row(name.partition("@")[0])
    except ConfigError:
        return None
    profile = name.partition("@")[2]
    title = f"{row.title} for the profile {profile}" if profile else row.title
    return KeyOwner(name=name, provider=row.name, title=title)


def where_to_get(provider: str) -> str:
    """Say where a person gets a key of a provider."""
    page = KEY_PAGES.get(provider)
    return f"Get a key at {page}." if page else "Get a key on the provider's page."


def checked_name(settings: Settings, provider: str, profile: str = "") -> str:
    """Give the name under which a provider's key is kept, with its profile: `anthropic`, `anthropic@work`.

    Raises `ConfigError` for an unknown provider, and for what no profile can be called.
    """
    name = Models(settings).row(provider.partition("@")[0]).name
    profile = profile or provider.partition("@")[2]
    return f"{name}@{checked_profile(profile)}" if profile else name


def clean_key(text: str) -> str:
    """Take the spaces around a key away; raises `ConfigError`, without the key, for what cannot be one."""
    key = text.strip()
    if key and key.isascii() and key.isprintable() and " " not in key:
        return key
    why = "It has spaces, line ends or characters that a header cannot carry." if key else "It is empty."
    raise ConfigError("key-invalid", "This is not a key.", why=why, fix="Copy it again from the provider's page.")


async def try_key(settings: Settings, provider: str, key: str, model: str = "") -> CallCheck:
    """Call the provider with a key that is not stored."""
    models = Models(settings, keys={provider: key})
    row = models.row(provider)
    ref = f"{row.name}/{model}" if model else models.usual_model(row)
    if not ref:
        text = f"No model of {row.title} is known to try the key with. Name one with --model NAME."
        return CallCheck(ref=row.name, outcome=CheckOutcome.UNCLEAR, text=text)
    try:
        return await check_call(models, ref)
    finally:
        await models.close()


def keep_key(provider: str, key: str, check: CallCheck | None) -> str:
    """Store a key and tell where; raises `ConfigError` without storing one that the provider refused."""
    if check is None or check.outcome not in (CheckOutcome.REFUSED, CheckOutcome.FORBIDDEN):
        return store_key(provider, key)
    fix = f"Check that the key is complete. {where_to_get(provider)}"
    if check.outcome is CheckOutcome.FORBIDDEN:
        fix += " If it is for other models only, try it with --model NAME, or store it with --no-check."
    raise ConfigError(
        "key-refused", "The key was refused and is not stored.", why=f"{check.ref}: {check.text}", fix=fix
    )


def key_stored(whose: str, place: str, check: CallCheck | None) -> str:
    """Say where the key of a provider is, and what is known of it."""
    stored = f"Your key for {whose} is stored in {place}"
    if check is None:
        return f"{stored} (untried)."
    text = check.text.removesuffix(".")
    if check.outcome in (CheckOutcome.WORKS, CheckOutcome.LIMITED):
        return f"{stored} ({check.ref}: {text})."
    return f"{stored}, but it was not checked with {check.ref}. {text[:1].upper()}{text[1:]}."


def stored_words(settings: Settings, provider: str, place: str, check: CallCheck | None) -> str:
    """Say where a key is, what is known of it, and how a session that runs uses it."""
    name, _, profile = provider.partition("@")
    whose = f"{name} for the profile {profile}" if profile else name
    text = key_stored(whose, place, check)
    if profile:
        return f"{text} /profile {profile} uses it."
    models = Models(settings)
    row = models.row(name)
    key = models.key(row)
    if key is not None and key.origin in os.environ:
        return f"{text} {key.origin} is set in the environment and overrides it."
    usual = models.usual_model(row)
    return f"{text} Requests to {row.title} use it from now on.{f' To change to it: /model {usual}' if usual else ''}"


def remove_key(settings: Settings, provider: str) -> bool:
    """Forget a stored key; says whether there was one."""
    return forget_key(checked_name(settings, provider))


def winning_origin(settings: Settings, provider: str) -> str:
    """Name where the key of a provider comes from now; empty where there is none."""
    models = Models(settings)
    key = models.key(models.row(provider))
    return "" if key is None else key.origin
