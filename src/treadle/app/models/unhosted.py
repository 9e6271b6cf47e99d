"""Models without a provider: scripts, which are played, and models that Treadle runs by itself."""

from pathlib import Path

from treadle.app.models.embedded_model import embedded_provider, embedded_spec
from treadle.app.models.known import EMBEDDED
from treadle.engine.ports import Provider
from treadle.protocol.models import ModelSpec, Prices

SCRIPTED = "scripted"
"""The provider whose models are scripts: `scripted/path/to/script.toml` plays that file in process."""


def unhosted_spec(ref: str) -> ModelSpec:
    """Tell what is known of such a model; raises `ConfigError`."""
    provider, _, name = ref.strip().partition("/")
    if provider == EMBEDDED:
        return embedded_spec(name)
    return ModelSpec(provider=SCRIPTED, name=name, prices=Prices(input=0.0, output=0.0))


def open_unhosted(ref: str) -> Provider:
    """Open such a model; raises `ConfigError`, and `ModuleNotFoundError` where an extra is missing."""
    provider, _, name = ref.strip().partition("/")
    if provider == EMBEDDED:
        return embedded_provider(name)
    from treadle.providers.scripted.provider import ScriptedProvider
    from treadle.providers.scripted.script import load_script

    return ScriptedProvider(load_script(Path(name).expanduser()))
