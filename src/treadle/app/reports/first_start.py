"""What a person reads who starts Treadle before a model is configured."""

from collections.abc import Iterator, Sequence

from treadle.app.config.settings import Settings
from treadle.app.models.choosing import Models
from treadle.app.models.listing import local_servers
from treadle.protocol.errors import ConfigError
from treadle.providers.local import LocalServer
from treadle.providers.local_advice import window_fix, window_problem

_SHOWN = 3
"""Models of a local server that are named."""


async def first_start_text(settings: Settings, missing: ConfigError) -> str:
    """Say what is missing, and the three ways on: a key, a local server, the demo."""
    servers = await local_servers(Models(settings))
    return "\n".join(_lines(missing, servers))


def _lines(missing: ConfigError, servers: Sequence[LocalServer]) -> Iterator[str]:
    yield f"{missing.what} You have three options:"
    yield ""
    yield "1. A key of a provider:  treadle login anthropic"
    yield "   (or openai, gemini, openrouter, …: `treadle providers` lists them; one call checks the key)"
    yield "2. A server on this machine:"
    yield from _local(servers)
    yield "3. No key at all:  treadle demo"
    yield "   (real files and commands on a sample project, and a scripted model)"


def _local(servers: Sequence[LocalServer]) -> Iterator[str]:
    if not servers:
        yield "   none was found (Ollama, LM Studio, llama.cpp and vLLM at their usual ports)"
    for server in servers:
        for model in server.models[:_SHOWN]:
            yield f"   treadle --model {server.provider}/{model.name}"
            problem = window_problem(server.provider, model)
            if problem:
                yield f"      {problem} {window_fix(server.provider, model)}"
        if len(server.models) > _SHOWN:
            yield f"   and {len(server.models) - _SHOWN} more: treadle models --local"
