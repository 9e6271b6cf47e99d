"""Small HTTP servers that answer as Ollama, LM Studio, llama.cpp and vLLM do."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[["Asked"], tuple[int, object]]


@dataclass(frozen=True)
class Asked:
    """One request."""

    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@asynccontextmanager
async def http_server(answer: Answer, *, location: str = "") -> AsyncGenerator[str, None]:
    """Serve JSON, or bytes as an event stream; gives the base URL. `location` is where a redirection leads."""
    more = f"location: {location}\r\n" if location else ""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = await _read(reader)
            status, value = answer(asked)
            stream = isinstance(value, bytes)
            body = value if isinstance(value, bytes) else json.dumps(value).encode()
            kind = "text/event-stream" if stream else "application/json"
            writer.write(
                f"HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{more}".encode()
            )
            writer.write(b"connection: close\r\n\r\n" + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(serve(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(path=first.split()[1], headers=headers, body=body)


def from_table(table: Mapping[str, object]) -> Answer:
    """Answer what the table has for a path, and 404 for the rest."""
    return lambda asked: (200, table[asked.path]) if asked.path in table else (404, {"error": "not found"})


OLLAMA_SHOW: dict[str, Any] = {
    "qwen3:8b": {
        "parameters": 'stop                           "<|im_end|>"\nnum_ctx                        32768',
        "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
        "capabilities": ["completion", "tools", "thinking"],
    },
    "gemma3:4b": {
        "model_info": {"general.architecture": "gemma3", "gemma3.context_length": 131072},
        "capabilities": ["completion", "vision"],
    },
    "nomic-embed-text:latest": {"model_info": {}, "capabilities": ["embedding"]},
    "phi4:latest": {"model_info": {"phi3.context_length": 16384}, "capabilities": ["completion", "tools"]},
}


def ollama(asked: Asked) -> tuple[int, object]:
    """Four models; gemma3 is loaded with the usual small window."""
    match asked.path:
        case "/api/tags":
            models = [{"name": name, "model": name, "size": 1, "details": {"family": "x"}} for name in OLLAMA_SHOW]
            return 200, {"models": models}
        case "/api/ps":
            return 200, {"models": [{"name": "gemma3:4b", "model": "gemma3:4b", "context_length": 4096}]}
        case "/api/show":
            return 200, OLLAMA_SHOW[json.loads(asked.body)["model"]]
        case _:
            return 404, "404 page not found"


LM_STUDIO = from_table(
    {
        "/api/v0/models": {
            "object": "list",
            "data": [
                {
                    "id": "qwen2.5-coder-7b",
                    "object": "model",
                    "type": "llm",
                    "state": "loaded",
                    "max_context_length": 32768,
                    "loaded_context_length": 4096,
                    "capabilities": ["tool_use"],
                },
                {"id": "llava-7b", "type": "vlm", "state": "not-loaded", "max_context_length": 8192},
                {"id": "nomic", "type": "embeddings", "state": "not-loaded", "max_context_length": 2048},
            ],
        }
    }
)
LLAMA_CPP = from_table(
    {
        "/props": {"default_generation_settings": {"n_ctx": 8192, "params": {}}, "total_slots": 4, "model_path": "/m"},
        "/v1/models": {
            "object": "list",
            "data": [{"id": "model.gguf", "object": "model", "meta": {"n_ctx_train": 131072, "n_vocab": 1}}],
        },
    }
)
VLLM = from_table(
    {"/v1/models": {"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "object": "model", "max_model_len": 40960}]}}
)
