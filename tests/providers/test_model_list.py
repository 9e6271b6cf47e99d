import json
from typing import Any

import pytest
from tests.app.local_servers import Asked, http_server

from treadle.providers.endpoint import Endpoint
from treadle.providers.local import LocalModel
from treadle.providers.model_list import list_models
from treadle.providers.provider_rows import Wire


def of_openai(**more: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": "m", "object": "model", **more}]}


@pytest.mark.parametrize(
    ("wire", "base", "path", "headers", "answer", "found"),
    [
        (Wire.OPENAI_CHAT, "/v1", "/v1/models", {"authorization": "Bearer k"}, of_openai(), LocalModel(name="m")),
        (
            Wire.OPENAI_CHAT,
            "/openai/v1",
            "/openai/v1/models",
            {"authorization": "Bearer k"},
            of_openai(context_window=131_072, max_completion_tokens=65_536),
            LocalModel(name="m", window=131_072, max_output=65_536),
        ),
        (
            Wire.OPENAI_CHAT,
            "/v1",
            "/v1/models",
            {},
            of_openai(max_model_len=40_960),
            LocalModel(name="m", window=40_960),
        ),
        (
            Wire.OPENAI_RESPONSES,
            "/api/v1",
            "/api/v1/models",
            {},
            of_openai(
                context_length=200_000,
                top_provider={"context_length": 100_000, "max_completion_tokens": 64_000},
                supported_parameters=["tools", "max_tokens"],
            ),
            LocalModel(name="m", window=200_000, max_output=64_000, native_tools=True),
        ),
        (
            Wire.GEMINI,
            "/v1beta",
            "/v1beta/models?pageSize=1000",
            {"x-goog-api-key": "k"},
            {"models": [{"name": "models/m", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}]},
            LocalModel(name="m", window=1_048_576, max_output=65_536),
        ),
        (
            Wire.ANTHROPIC_MESSAGES,
            "",
            "/v1/models?limit=1000",
            {"x-api-key": "k", "anthropic-version": "2023-06-01"},
            {"data": [{"type": "model", "id": "m", "display_name": "M", "max_input_tokens": 200_000}]},
            LocalModel(name="m", window=200_000),
        ),
    ],
)
async def test_the_lists_of_all_wire_apis_are_read(
    wire: Wire, base: str, path: str, headers: dict[str, str], answer: object, found: LocalModel
) -> None:
    seen: list[Asked] = []

    def serve(asked: Asked) -> tuple[int, object]:
        seen.append(asked)
        return 200, answer

    async with http_server(serve) as url:
        listed = await list_models(wire, Endpoint(name="acme", base_url=url + base, api_key="k"))
    assert listed == (found,)
    assert [asked.path for asked in seen] == [path]
    assert headers.items() <= seen[0].headers.items()


@pytest.mark.parametrize(
    "model",
    [
        {"id": "m", "context_length": 0},
        {"id": "m", "context_length": -1},
        {"id": "m", "context_length": "large"},
        {"id": "m", "context_length": 10**12},
        {"id": "m", "context_length": True},
        {"id": "m", "context_length": 1.5},
    ],
)
async def test_a_window_that_is_none_is_unknown(model: dict[str, Any]) -> None:
    async with http_server(lambda _: (200, {"data": [model]})) as url:
        listed = await list_models(Wire.OPENAI_CHAT, Endpoint(name="acme", base_url=url))
    assert listed == (LocalModel(name="m"),)


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, {}),
        (401, {}),
        (200, []),
        (200, {"data": 3}),
        (200, {"data": [{}, {"id": 3}]}),
        (200, b"<html>"),
        (200, b'{"data":' + b"[" * 100_000),
        (200, {"data": [{"id": "m\x1b[2J"}]}),
        (302, {}),
    ],
)
async def test_a_provider_without_such_a_list_has_none(status: int, answer: object) -> None:
    async with http_server(lambda _: (status, answer)) as url:
        assert await list_models(Wire.OPENAI_CHAT, Endpoint(name="acme", base_url=url)) == ()


@pytest.mark.parametrize("url", ["", "nothing", "http://127.0.0.1:9/v1", "http://[::1", "https://127.0.0.1:9/v1"])
async def test_what_is_not_there_has_no_list(url: str) -> None:
    assert await list_models(Wire.OPENAI_CHAT, Endpoint(name="acme", base_url=url)) == ()


async def test_a_list_that_does_not_end_is_not_read() -> None:
    endless = json.dumps({"data": [{"id": "x" * 1024}] * 5 * 1024}).encode()
    async with http_server(lambda _: (200, endless)) as url:
        assert await list_models(Wire.OPENAI_CHAT, Endpoint(name="acme", base_url=url)) == ()
