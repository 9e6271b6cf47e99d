"""Model servers on this machine: which answer, which models they have, and how much those hold as they run."""

import asyncio
import re
import ssl
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from treadle.protocol.base import Record
from treadle.providers.certificates import system_certificates
from treadle.providers.json_server import JsonServer

FIND_SECONDS = 0.3
"""How long a server may take to say that it is there; all are asked at the same time."""
DETAIL_SECONDS = 3.0
"""How long one that is there may take to tell of its models."""

_WINDOW_LINE = re.compile(r"\s*num_ctx\s+(\d{1,9})\s*")


class LocalModel(Record, frozen=True, kw_only=True):
    """A model of a local server; None is not known. `window` is what it holds as it runs, `largest` what it could."""

    name: str
    window: int | None = None
    largest: int | None = None
    loaded: bool = False
    max_output: int | None = None
    native_tools: bool | None = None
    images: bool | None = None
    thinking: bool | None = None


class LocalServer(Record, frozen=True, kw_only=True):
    """A server that answered."""

    provider: str
    base_url: str
    models: tuple[LocalModel, ...]


class _OllamaModel(msgspec.Struct):
    name: str
    context_length: int | None = None


class _OllamaModels(msgspec.Struct):
    """`/api/tags` has all models, `/api/ps` the loaded ones."""

    models: list[_OllamaModel]


class _OllamaDetails(msgspec.Struct):
    """`/api/show`. `parameters` are lines such as `num_ctx 16384`."""

    parameters: str = ""
    model_info: dict[str, Any] = {}
    capabilities: list[str] | None = None


class _StudioModel(msgspec.Struct):
    """A model in `/api/v0/models` of LM Studio."""

    id: str
    type: str
    state: str
    max_context_length: int | None = None
    loaded_context_length: int | None = None
    capabilities: list[str] | None = None


class _StudioModels(msgspec.Struct):
    data: list[_StudioModel]


class _LlamaSettings(msgspec.Struct):
    n_ctx: int


class _LlamaProps(msgspec.Struct):
    """`/props` of llama.cpp; the window is that of one slot."""

    default_generation_settings: _LlamaSettings


class _OpenModel(msgspec.Struct):
    """A model in `/v1/models`: vLLM adds `max_model_len`, llama.cpp adds `meta`."""

    id: str
    max_model_len: int | None = None
    meta: dict[str, Any] | None = None


class _OpenModels(msgspec.Struct):
    data: list[_OpenModel]


async def find_servers(
    places: Mapping[str, str], keys: Mapping[str, str], *, limit: float = FIND_SECONDS
) -> tuple[LocalServer, ...]:
    """Ask the server of each provider in `places` (base URLs) at the same time; `keys` are those of some of them."""
    found = await asyncio.gather(*(_find(name, url, keys.get(name, ""), limit) for name, url in places.items()))
    return tuple(server for server in found if server is not None)


async def find_model(provider: str, base_url: str, key: str, name: str) -> LocalModel | None:
    """Ask one server for one model; None where it does not tell."""
    server = await _find(provider, base_url, key, DETAIL_SECONDS, only=name)
    models = () if server is None else server.models
    return next((model for model in models if model.name in (name, f"{name}:latest")), None)


async def _find(provider: str, base_url: str, key: str, limit: float, *, only: str = "") -> LocalServer | None:
    verify: ssl.SSLContext | bool = False
    if base_url.lower().startswith("https:"):
        try:
            verify = await asyncio.shield(asyncio.wrap_future(system_certificates()))
        except OSError:  # the call of the model says what is wrong with the certificates
            return None
    async with JsonServer(_origin(base_url), _bearer(key), verify=verify) as server:
        with suppress(TimeoutError):
            async with asyncio.timeout(limit) as patience:
                models = await _models(provider, server, patience, only)
            return None if models is None else LocalServer(provider=provider, base_url=base_url, models=models)
    return None


def _origin(base_url: str) -> str:
    return base_url.rstrip("/").removesuffix("/v1")


def _bearer(key: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


async def _models(
    provider: str, server: JsonServer, patience: asyncio.Timeout, only: str
) -> tuple[LocalModel, ...] | None:
    match provider:
        case "ollama":
            return await _ollama(server, patience, only)
        case "lmstudio":
            return await _studio(server)
        case "llama.cpp":
            return await _llama(server)
        case _:
            return await _open(server)


async def _ollama(server: JsonServer, patience: asyncio.Timeout, only: str) -> tuple[LocalModel, ...] | None:
    known, running = await asyncio.gather(server.get("/api/tags", _OllamaModels), server.get("/api/ps", _OllamaModels))
    if known is None:
        return None
    patience.reschedule(asyncio.get_running_loop().time() + DETAIL_SECONDS)
    loaded = {model.name: model.context_length for model in (running.models if running else ())}
    names = [model.name for model in known.models if not only or model.name in (only, f"{only}:latest")]
    found = await asyncio.gather(*(server.post("/api/show", {"model": name}, _OllamaDetails) for name in names))
    pairs = zip(names, (details or _OllamaDetails() for details in found), strict=True)
    return tuple(
        _ollama_model(name, details, loaded)
        for name, details in pairs
        if details.capabilities is None or "completion" in details.capabilities
    )


def _ollama_model(name: str, details: _OllamaDetails, loaded: Mapping[str, int | None]) -> LocalModel:
    """A window is known for a model that is loaded, or whose own parameters name it."""
    lines = details.parameters.splitlines()
    own = next((int(found[1]) for line in lines if (found := _WINDOW_LINE.fullmatch(line))), None)
    lengths = [value for key, value in details.model_info.items() if key.endswith(".context_length")]
    can = details.capabilities
    return LocalModel(
        name=name,
        window=loaded.get(name) or own,
        largest=next((value for value in lengths if isinstance(value, int)), None),
        loaded=name in loaded,
        native_tools=None if can is None else "tools" in can,
        images=None if can is None else "vision" in can,
        thinking=None if can is None else "thinking" in can,
    )


async def _studio(server: JsonServer) -> tuple[LocalModel, ...] | None:
    answer = await server.get("/api/v0/models", _StudioModels)
    if answer is None:
        return None
    return tuple(
        LocalModel(
            name=model.id,
            window=model.loaded_context_length if model.state == "loaded" else None,
            largest=model.max_context_length,
            loaded=model.state == "loaded",
            native_tools=None if model.capabilities is None else "tool_use" in model.capabilities,
            images=model.type == "vlm",
        )
        for model in answer.data
        if model.type in ("llm", "vlm")
    )


async def _llama(server: JsonServer) -> tuple[LocalModel, ...] | None:
    props, answer = await asyncio.gather(server.get("/props", _LlamaProps), server.get("/v1/models", _OpenModels))
    if props is None or answer is None:
        return None
    window = props.default_generation_settings.n_ctx
    return tuple(
        LocalModel(name=model.id, window=window, largest=(model.meta or {}).get("n_ctx_train"), loaded=True)
        for model in answer.data
    )


async def _open(server: JsonServer) -> tuple[LocalModel, ...] | None:
    """VLLM, told from any other server on its port by what it adds to the list."""
    answer = await server.get("/v1/models", _OpenModels)
    if answer is None or not any(model.max_model_len for model in answer.data):
        return None
    return tuple(LocalModel(name=model.id, window=model.max_model_len, loaded=True) for model in answer.data)
