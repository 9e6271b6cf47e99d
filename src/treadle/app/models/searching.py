"""Models whose providers may search the web by themselves, as the user's settings say."""

from collections.abc import Callable

from msgspec.structs import replace

from treadle.app.models.choosing import Models
from treadle.protocol.models import ModelSpec


def with_searches(models: Models) -> Callable[[str], ModelSpec]:
    """Say with each model what searches of its provider may cost, which lets it search; what the user says counts."""

    def find(ref: str) -> ModelSpec:
        spec = models.spec(ref)
        searches = models.searches(ref)
        return spec if searches is None else replace(spec, searches=searches)

    return find
