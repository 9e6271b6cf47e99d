"""Changing the model: the name is checked before the session hears of it."""

from treadle.app.models import Models
from treadle.app.settings import load_settings
from treadle.protocol.events import SetModel


async def to_model(name: str) -> SetModel:
    """Find the model and how its calls are written; raises `ConfigError` when it cannot be called."""
    models = Models(load_settings({"model": name}))
    try:
        choice = models.choose()
    finally:
        await models.close()
    return SetModel(model=choice.spec.ref, tool_protocol=choice.tool_protocol)
