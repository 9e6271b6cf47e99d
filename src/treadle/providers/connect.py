"""From a row of the catalogue to a provider: the one place here that loads a wire API only when it is used."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from treadle.engine.ports import Provider
from treadle.providers.endpoint import Endpoint, StreamLimits
from treadle.providers.provider_rows import ProviderRow, Wire
from treadle.providers.wire import WireApi

NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def provider_for(
    row: ProviderRow,
    *,
    api_key: str,
    base_url: str,
    headers: Mapping[str, str] = NO_HEADERS,
    limits: StreamLimits | None = None,
    proxy: str = "",
    ca_file: str = "",
) -> Provider:
    """Build the provider of a row at `base_url` (see `fill_base_url`); nothing is connected before the first call."""
    from treadle.providers.http_provider import HttpProvider

    endpoint = Endpoint(
        name=row.name,
        base_url=base_url,
        api_key=api_key,
        headers=headers,
        limits=limits or row.limits,
        quirks=row.quirks,
        proxy=proxy,
        ca_file=ca_file,
    )
    return HttpProvider(endpoint, _api(row.wire, endpoint))


def _api(wire: Wire, endpoint: Endpoint) -> WireApi:
    match wire:
        case Wire.ANTHROPIC_MESSAGES:
            from treadle.providers.anthropic_messages import AnthropicMessages

            return AnthropicMessages(endpoint)
        case Wire.OPENAI_CHAT:
            from treadle.providers.openai_chat import OpenAIChat

            return OpenAIChat(endpoint)
        case Wire.OPENAI_RESPONSES:
            from treadle.providers.openai_responses import OpenAIResponses

            return OpenAIResponses(endpoint)
        case Wire.GEMINI:
            from treadle.providers.gemini import Gemini

            return Gemini(endpoint)
        case _:
            assert_never(wire)
