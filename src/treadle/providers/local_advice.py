"""What to do about a local model whose window is too small to work in, in the words of its server."""

from treadle.providers.local import LocalModel

SMALLEST = 16_384
"""Tokens. Below it the instructions, a file and its edit do not fit together."""
_WANTED = 32_768


_STARTED_BY = {
    "ollama": "ollama serve",
    "lmstudio": "lms server start",
    "llama.cpp": "llama-server -m MODEL.gguf",
    "vllm": "vllm serve MODEL",
}
_AT_PORT = {11434: "ollama", 1234: "lmstudio", 8080: "llama.cpp", 8000: "vllm"}


def start_advice(provider: str, port: int | None) -> str:
    """Say how to start the server of this machine that does not run: by its provider, or by the port that it has."""
    if provider in _STARTED_BY:
        return f"Start it: {_STARTED_BY[provider]}."
    usual = _STARTED_BY.get(_AT_PORT.get(port or 0, ""))
    return f"Start the server, such as: {usual}." if usual else "Start the server."


def window_problem(provider: str, model: LocalModel) -> str:
    """Say what is wrong with a model's window; empty where nothing is known to be."""
    if model.window is not None:
        small = model.window < SMALLEST
        return f"{model.name} holds {model.window:,} tokens; {SMALLEST:,} are needed to work." if small else ""
    if provider == "ollama":
        return f"{model.name} is not loaded: Ollama gives it 4,096 tokens on many machines; {SMALLEST:,} are needed."
    return ""


def window_fix(provider: str, model: LocalModel) -> str:
    """Say how to give a model a window that is large enough."""
    if model.largest is not None and model.largest < SMALLEST:
        return f"Choose another model: {model.name} can hold {model.largest:,} tokens at most."
    wanted = min(_WANTED, model.largest or _WANTED)
    match provider:
        case "ollama":
            return f"Stop Ollama and start it with: OLLAMA_CONTEXT_LENGTH={wanted} ollama serve"
        case "lmstudio":
            return f"Load it again with: lms load {model.name} --context-length {wanted}"
        case "llama.cpp":
            return f"Start it with: llama-server -c {wanted} (times the number of slots, -np)"
        case _:
            return f"Start it with: vllm serve {model.name} --max-model-len {wanted}"
