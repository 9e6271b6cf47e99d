"""What a provider says itself of its models: the list at its own address, whose fields each vendor names for itself."""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from treadle.providers.anthropic_messages import API_VERSION
from treadle.providers.certificates import system_certificates
from treadle.providers.endpoint import Endpoint, split_url
from treadle.providers.json_server import JsonServer
from treadle.providers.local import DETAIL_SECONDS, LocalModel
from treadle.providers.model_data import MOST_TOKENS
from treadle.providers.provider_rows import Wire

_WINDOWS = (
    "context_length",
    "context_window",
    "max_context_length",
    "max_model_len",
    "max_input_tokens",
    "inputTokenLimit",
)
_OUTPUTS = ("max_output_tokens", "max_completion_tokens", "outputTokenLimit")


class _Models(msgspec.Struct):
    """OpenAI and Anthropic say `data`, Google `models`."""

    data: list[dict[str, Any]] = []
    models: list[dict[str, Any]] = []


async def list_models(wire: Wire, endpoint: Endpoint, *, limit: float = DETAIL_SECONDS) -> tuple[LocalModel, ...]:
    """Ask a provider which models it has; empty where it does not say so within `limit` seconds."""
    if wire is Wire.BEDROCK_CONVERSE or not endpoint.host or endpoint.proxy:
        return ()
    verify: ssl.SSLContext | bool = False
    with suppress(TimeoutError, OSError, ValueError):
        async with asyncio.timeout(limit):
            if endpoint.scheme == "https":
                verify = (
                    ssl.create_default_context(cafile=endpoint.ca_file)
                    if endpoint.ca_file
                    else await asyncio.shield(asyncio.wrap_future(system_certificates()))
                )
            parts = split_url(_address(wire, endpoint))
            origin = f"{parts.scheme}://{parts.netloc}"
            path = parts.path + (f"?{parts.query}" if parts.query else "")
            proxies = endpoint.scheme == "https"
            async with JsonServer(origin, _headers(wire, endpoint), verify=verify, proxies=proxies) as server:
                found = await server.get(path, _Models)
                listed = () if found is None else (*found.data, *found.models)
                return tuple(model for one in listed if (model := _model(one)) is not None)
    return ()


def _address(wire: Wire, endpoint: Endpoint) -> str:
    match wire:
        case Wire.GEMINI:
            return endpoint.url("/models", query="pageSize=1000")
        case Wire.ANTHROPIC_MESSAGES:
            return endpoint.url("/models", version="/v1", query="limit=1000")
        case _:
            return endpoint.url("/models")


def _headers(wire: Wire, endpoint: Endpoint) -> Mapping[str, str]:
    usual = {Wire.GEMINI: "x-goog-api-key", Wire.ANTHROPIC_MESSAGES: "x-api-key"}.get(wire, "authorization")
    version = {"anthropic-version": API_VERSION} if wire is Wire.ANTHROPIC_MESSAGES else {}
    return {**version, **endpoint.key_headers(usual), **endpoint.headers}


def _model(value: Mapping[str, Any]) -> LocalModel | None:
    """Read one model; what a vendor says beside its own fields stands in `top_provider`, `architecture`, `meta`."""
    name = value.get("id") or value.get("name")
    if not isinstance(name, str) or not name or not name.isprintable():
        return None
    inner = [value.get(key) for key in ("top_provider", "meta", "limits")]
    places = [value, *(one for one in inner if isinstance(one, dict))]
    said = value.get("supported_parameters")
    return LocalModel(
        name=name.removeprefix("models/"),
        window=_first(places, _WINDOWS),
        max_output=_first(places, _OUTPUTS),
        native_tools=True if isinstance(said, list) and "tools" in said else None,
    )


def _first(places: list[Mapping[str, Any]], keys: tuple[str, ...]) -> int | None:
    numbers = (place.get(key) for place in places for key in keys)
    return next((one for one in numbers if type(one) is int and 0 < one <= MOST_TOKENS), None)
