"""The scripted model in process."""

import asyncio
import time
from collections.abc import AsyncGenerator

from treadle.protocol.models import ErrorKind, ModelRequest, StreamEvent, StreamFailure, StreamStop
from treadle.providers.endpoint import Endpoint
from treadle.providers.failures import failure, from_response
from treadle.providers.scripted.player import Disconnect, Pause, Player, Plays
from treadle.providers.scripted.script import Refuse, Script
from treadle.providers.scripted.seen_requests import see_request
from treadle.providers.wire import dump

ENDPOINT = Endpoint(name="scripted", base_url="")


class ScriptedProvider:
    """The `Provider` port, answered by a script or by what plays in its place.

    `requests` is what it was sent, `violations` what was unexpected.
    """

    def __init__(self, script: Script | Plays) -> None:
        self.requests: list[ModelRequest] = []
        self.violations: list[str] = []
        self._player: Plays = Player(script) if isinstance(script, Script) else script

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Answer a request."""
        self.requests.append(request)
        performance = self._player.play(see_request(request))
        if performance.problem:
            self.violations.append(performance.problem)
        for step in performance.steps:
            match step:
                case Pause():
                    await asyncio.sleep(step.seconds)
                case Disconnect():
                    yield StreamFailure(error=failure(ENDPOINT, ErrorKind.NETWORK, "the connection was cut"))
                    return
                case StreamStop() | StreamFailure():
                    yield step
                    return
                case _:
                    yield step
        if performance.refusal is not None:
            yield _failure(performance.refusal)

    async def close(self) -> None:
        """Nothing is held."""


def _failure(refusal: Refuse) -> StreamFailure:
    body = refusal.body or dump({"error": {"message": refusal.message, "code": refusal.code}}).decode()
    headers = {name.lower(): value for name, value in refusal.headers.items()}
    return StreamFailure(error=from_response(ENDPOINT, refusal.status, headers, body.encode(), now=time.time()))
