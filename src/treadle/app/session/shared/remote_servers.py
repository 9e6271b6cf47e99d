"""The servers of a session in another process: what `/mcp` and `/ports` say of them is asked over its socket."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from treadle.protocol.attach import ServersAnswer
from treadle.protocol.errors import TreadleError

NO_SERVERS = ServersAnswer(text="No MCP servers are used here. Add one: treadle mcp add NAME -- COMMAND")

_LONGEST = 40.0
"""Seconds; the session itself waits at most half of it for servers that are starting."""

AskElsewhere = Callable[[str, tuple[str, str] | None], Awaitable[ServersAnswer]]
"""Asks with what follows `/mcp`, or a prompt (its server's name, and its own). May raise `TreadleError`."""


class RemotePorts:
    """The ports of the commands of a session in another process. Made in the loop that `ask` is to be awaited in."""

    asked = "/ports"

    def __init__(self, ask: AskElsewhere) -> None:
        self._ask = ask
        self._loop = asyncio.get_running_loop()

    def command(self, argument: str) -> ServersAnswer:
        """Do what the command says with this argument. To be called in a thread."""
        return self._wait(argument, None)

    def _wait(self, said: str, prompt: tuple[str, str] | None) -> ServersAnswer:
        return asyncio.run_coroutine_threadsafe(self._asked(said, prompt), self._loop).result()

    async def _asked(self, said: str, prompt: tuple[str, str] | None) -> ServersAnswer:
        try:
            async with asyncio.timeout(_LONGEST):
                return await self._ask(said, prompt)
        except TimeoutError:
            why = f"the session did not answer within {_LONGEST:g} s. Enter it again, or look into its own terminal"
        except TreadleError as error:
            why = " ".join(filter(None, (error.what, error.why, error.fix))).rstrip(".")
        return ServersAnswer(text=f"{self.asked} got no answer: {why}.", warning=True)


class RemoteServers(RemotePorts):
    """Its MCP servers."""

    asked = "/mcp"

    def complete(self, prompt: tuple[str, str], said: str) -> Sequence[str]:
        """Say what the last word of what follows a prompt can be. To be called in a thread."""
        return self._wait(said, prompt).values
