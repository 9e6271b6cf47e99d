"""Models that may search the web by themselves, as the user's settings say."""

from collections.abc import AsyncGenerator, Callable

from msgspec import Struct
from msgspec.structs import replace

from treadle.app.models import Models
from treadle.engine.ports import Provider
from treadle.protocol.models import ModelRequest, ModelSpec, StreamEvent


class SearchingProvider(Struct, frozen=True):
    """Lets the provider search the web with each request; one that cannot sends the request as it is."""

    provider: Provider

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model."""
        return self.provider.stream(replace(request, web_search=True))

    async def close(self) -> None:
        """Give back connections."""
        await self.provider.close()


def with_searches(models: Models) -> Callable[[str], ModelSpec]:
    """Say with each model what searches of its provider may cost; what the user says of it counts."""

    def find(ref: str) -> ModelSpec:
        spec = models.spec(ref)
        searches = models.searches(ref)
        return spec if searches is None else replace(spec, searches=searches)

    return find


def searching(find: Callable[[str], Provider]) -> Callable[[str], Provider]:
    """Let every provider that is found search."""
    return lambda ref: SearchingProvider(find(ref))
