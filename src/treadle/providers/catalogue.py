"""Providers as data: where they are and how they are spoken to."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from treadle.engine.ports import Provider
from treadle.protocol.models import ModelSpec
from treadle.providers.endpoint import Endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """One provider."""

    name: str
    wire_api: str
    base_url: str = ""
    key_variables: tuple[str, ...] = ()
    needs_key: bool = True
    default_model: str = ""


_ROWS = (
    ProviderRow(
        name="anthropic",
        wire_api="anthropic",
        base_url="https://api.anthropic.com",
        key_variables=("ANTHROPIC_API_KEY",),
        default_model="claude-sonnet-4-5",
    ),
    ProviderRow(
        name="openai",
        wire_api="openai-chat",
        base_url="https://api.openai.com/v1",
        key_variables=("OPENAI_API_KEY",),
        default_model="gpt-5",
    ),
    ProviderRow(name="openai-compatible", wire_api="openai-chat", key_variables=("OPENAI_API_KEY",), needs_key=False),
    ProviderRow(
        name="anthropic-compatible", wire_api="anthropic", key_variables=("ANTHROPIC_API_KEY",), needs_key=False
    ),
)


def providers() -> tuple[ProviderRow, ...]:
    """Give all rows."""
    return _ROWS


def provider_row(name: str) -> ProviderRow | None:
    """Find a provider by its name."""
    return next((row for row in _ROWS if row.name == name), None)


def known_models(provider: str) -> Mapping[str, ModelSpec]:
    """Give what is known of a provider's models, by name."""
    return {}


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """Find names like the given one."""
    return difflib.get_close_matches(name, list(names), n=3, cutoff=0.5)


def open_provider(row: ProviderRow, *, api_key: str, base_url: str, headers: Mapping[str, str]) -> Provider:
    """Open a provider; the module of its wire API is imported only now."""
    from treadle.providers.anthropic_messages import AnthropicMessages
    from treadle.providers.http_provider import HttpProvider
    from treadle.providers.openai_chat import OpenAIChat

    endpoint = Endpoint(name=row.name, base_url=base_url, api_key=api_key, headers=headers)
    return HttpProvider(endpoint, AnthropicMessages(endpoint) if row.wire_api == "anthropic" else OpenAIChat(endpoint))
