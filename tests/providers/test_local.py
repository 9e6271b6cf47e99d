import asyncio
from contextlib import AsyncExitStack

import pytest
from tests.app.local_servers import LLAMA_CPP, LM_STUDIO, VLLM, Answer, Asked, from_table, http_server, ollama

from treadle.providers.local import LocalModel, LocalServer, find_model, find_servers
from treadle.providers.local_advice import window_fix, window_problem

SERVERS: dict[str, Answer] = {"ollama": ollama, "lmstudio": LM_STUDIO, "llama.cpp": LLAMA_CPP, "vllm": VLLM}
MODELS = {
    "ollama": (
        LocalModel(name="qwen3:8b", window=32768, largest=40960, native_tools=True, images=False, thinking=True),
        LocalModel(
            name="gemma3:4b", window=4096, largest=131072, loaded=True, native_tools=False, images=True, thinking=False
        ),
        LocalModel(name="phi4:latest", largest=16384, native_tools=True, images=False, thinking=False),
    ),
    "lmstudio": (
        LocalModel(name="qwen2.5-coder-7b", window=4096, largest=32768, loaded=True, native_tools=True, images=False),
        LocalModel(name="llava-7b", largest=8192, images=True),
    ),
    "llama.cpp": (LocalModel(name="model.gguf", window=8192, largest=131072, loaded=True),),
    "vllm": (LocalModel(name="Qwen/Qwen3-8B", window=40960, loaded=True),),
}


async def test_every_kind_of_server_is_found_with_its_models() -> None:
    async with AsyncExitStack() as stack:
        places = {
            name: await stack.enter_async_context(http_server(answer)) + "/v1" for name, answer in SERVERS.items()
        }
        found = await find_servers(places, {}, limit=10)
    assert found == tuple(LocalServer(provider=name, base_url=places[name], models=MODELS[name]) for name in SERVERS)


async def test_a_model_is_found_by_its_name_without_the_tag() -> None:
    async with http_server(ollama) as url:
        assert await find_model("ollama", url + "/v1", "", "phi4") == MODELS["ollama"][2]
        assert await find_model("ollama", url + "/v1", "", "phi5") is None


async def test_the_key_goes_along_where_there_is_one() -> None:
    seen: list[str] = []

    def answer(asked: Asked) -> tuple[int, object]:
        seen.append(asked.headers.get("authorization", ""))
        return LLAMA_CPP(asked)

    async with http_server(answer) as url:
        await find_model("llama.cpp", url, "local-key", "model.gguf")
    assert seen == ["Bearer local-key"] * 2


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize(
    "answer",
    [
        from_table({}),
        lambda asked: (200, "<html>"),
        lambda asked: (200, {"data": [{"id": "a-web-application"}]}),
        lambda asked: (200, {"models": 5, "data": {}}),
        lambda asked: (302, {}),
    ],
)
async def test_another_program_on_the_port_is_no_server(name: str, answer: Answer) -> None:
    async with http_server(answer) as url:
        assert await find_servers({name: url}, {}, limit=10) == ()


async def test_nothing_there_and_nothing_said_are_no_servers() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    places = {"ollama": f"http://127.0.0.1:{port}/v1", "vllm": "http://127.0.0.1:1/v1"}
    try:
        assert await find_servers(places, {}, limit=0.1) == ()
    finally:
        server.close()


@pytest.mark.parametrize(
    ("provider", "model", "problem", "fix"),
    [
        ("ollama", MODELS["ollama"][0], "", ""),
        ("ollama", MODELS["ollama"][1], "gemma3:4b holds 4,096", "OLLAMA_CONTEXT_LENGTH=32768 ollama serve"),
        ("ollama", MODELS["ollama"][2], "phi4:latest is not loaded", "OLLAMA_CONTEXT_LENGTH=16384 ollama serve"),
        ("lmstudio", MODELS["lmstudio"][0], "4,096 tokens", "lms load qwen2.5-coder-7b --context-length 32768"),
        ("lmstudio", MODELS["lmstudio"][1], "", ""),
        ("llama.cpp", MODELS["llama.cpp"][0], "8,192 tokens", "llama-server -c 32768"),
        ("vllm", LocalModel(name="m", window=2048), "2,048 tokens", "vllm serve m --max-model-len 32768"),
        ("vllm", LocalModel(name="m", window=2048, largest=2048), "2,048 tokens", "Choose another model"),
    ],
)
def test_a_small_window_is_told_with_the_fix_of_its_server(
    provider: str, model: LocalModel, problem: str, fix: str
) -> None:
    said = window_problem(provider, model)
    assert problem in said
    assert bool(said) == bool(problem)
    assert not said or fix in window_fix(provider, model)


@pytest.mark.parametrize("window", ["many", "-1", "9" * 5000, "²", ""])
async def test_a_window_that_is_no_number_is_unknown(window: str) -> None:
    details = {"parameters": f"num_ctx {window}\nstop x", "capabilities": ["completion"]}
    table = {"/api/tags": {"models": [{"name": "m"}]}, "/api/ps": {"models": []}, "/api/show": details}
    async with http_server(from_table(table)) as url:
        found = await find_model("ollama", url, "", "m")
    assert found is not None
    assert found.window is None
