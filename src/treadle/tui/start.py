"""An interactive session, drawn or as plain lines."""

from collections.abc import Callable

from treadle.app.session.live import LiveSession
from treadle.protocol.messages import UserContent
from treadle.tui.look import Look
from treadle.tui.main import run_interactive
from treadle.tui.reader.main import run_reader


async def run_surface(
    live: LiveSession,
    look: Look,
    *,
    first_prompt: tuple[UserContent, ...] = (),
    kept: bool = True,
    switch: Callable[[str], None] | None = None,
) -> int:
    """Work with a person in the terminal until they quit; `live` is entered. Returns the exit code.

    `kept` says that the session can be resumed later. `switch` takes the session that they want to be opened instead.
    """
    if look.plain:
        return await run_reader(live, first_prompt=first_prompt, kept=kept, switch=switch)
    return await run_interactive(live, look, first_prompt=first_prompt, kept=kept, switch=switch)
