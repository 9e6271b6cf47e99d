"""From a row of the catalogue to a provider: the one place here that loads a wire API only when it is used."""

from typing import assert_never

from treadle.engine.ports import Provider
from treadle.providers.endpoint import Endpoint
from treadle.providers.http_connections import Sent, nothing
from treadle.providers.provider_rows import ProviderRow, Wire
from treadle.providers.wire import Authorizer, ReportLimits, WireApi


def provider_for(
    row: ProviderRow,
    endpoint: Endpoint,
    authorizer: Authorizer | None = None,
    *,
    meanwhile: Sent = nothing,
    limits: ReportLimits | None = None,
) -> Provider:
    """Build the provider of a row; nothing is connected before the first call.

    `authorizer` proves who asks where there is no key; `meanwhile` is called when the first request has left,
    `limits` with what an answer says of them.
    """
    from treadle.providers.http_provider import HttpProvider

    return HttpProvider(endpoint, _api(row.wire, endpoint), authorizer, meanwhile=meanwhile, limits=limits)


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
        case Wire.BEDROCK_CONVERSE:
            from treadle.providers.bedrock_converse import BedrockConverse

            return BedrockConverse(endpoint)
        case _:
            assert_never(wire)
