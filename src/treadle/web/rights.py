"""What a browser may do: the class of the effect decides, whatever the route, the command or the op that has it."""

from collections.abc import Awaitable, Callable, Sequence

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from treadle.door.open_session import FROM_AFAR, Reach
from treadle.web.page_keys import Visitor


def may(visitor: Visitor | None, effect: Reach) -> bool:
    """Whether a browser may do something; None is one that was not let in."""
    if visitor is None:
        return effect is Reach.ENTER
    return effect not in visitor.lacks and (visitor.here or effect in FROM_AFAR)


def require(visitor: Visitor | None, effect: Reach) -> None:
    """Raise `HTTPException` for what a browser may not do."""
    if visitor is not None and effect in visitor.lacks:
        raise HTTPException(403, f"This {effect}, which this service lets nobody do.")
    if not may(visitor, effect):
        raise HTTPException(
            403, f"This {effect}: it can be done only on the computer that runs Treadle, in a terminal or a browser."
        )


class PageRoute(Route):
    """A route that says what it does. What is refused does not reach its handler."""

    def __init__(
        self,
        path: str,
        endpoint: Callable[[Request], Awaitable[Response]],
        effect: Reach,
        *,
        methods: Sequence[str] = ("GET",),
    ) -> None:
        super().__init__(path, endpoint, methods=list(methods))
        self.effect = effect

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request of who may have this effect."""
        require(scope["state"]["visitor"], self.effect)
        await super().handle(scope, receive, send)
