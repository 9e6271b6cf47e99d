"""Models that may search the web by themselves, as the user's settings say."""

from collections.abc import AsyncGenerator, Callable

from msgspec import Struct
from msgspec.structs import replace

from treadle.engine.ports import Provider
from treadle.protocol.models import ModelRequest, StreamEvent


class SearchingProvider(Struct, frozen=True):
    """Lets the provider search the web with each request; one that cannot sends the request as it is."""

    provider: Provider

    def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model."""
        return self.provider.stream(replace(request, web_search=True))

    async def close(self) -> None:
        """Give back connections."""
        await self.provider.close()


def searching(find: Callable[[str], Provider]) -> Callable[[str], Provider]:
    """Let every provider that is found search."""
    return lambda ref: SearchingProvider(find(ref))
