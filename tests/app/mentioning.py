"""A message with mentions, posted to a real session: what went to the model, and what was said about the rest."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.security.trusting import session_trust
from treadle.app.session.live import LiveSession
from treadle.protocol.events import Prompt, Source
from treadle.protocol.messages import Text
from treadle.protocol.notifications import Notice, PromptDelivered, TurnEnded
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import SayText, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

MODEL = "anthropic-compatible/scripted"
ME = Source(kind="test")


@dataclass
class Told:
    """The texts of the last user message, its images, what was enclosed, the notices, and the requests' bodies."""

    texts: list[str] = field(default_factory=list)
    images: int = 0
    enclosed: tuple[str, ...] = ()
    notices: list[str] = field(default_factory=list)
    bodies: list[Any] = field(default_factory=list)
    session: str = ""

    @property
    def along(self) -> str:
        """What went along with the words."""
        return "\n".join(text for text in self.texts if text.startswith("<enclosed"))


async def tell(
    workspace: Path,
    text: str,
    *,
    mode: Mode = Mode.ASK,
    trusted: bool = True,
    turns: tuple[Turn, ...] = (Turn(items=(SayText(text="Fine."),)),),
    before: Callable[[LiveSession], Awaitable[None]] | None = None,
    model: str = MODEL,
    path: str = "",
    resume: str = "",
    **settings: Any,
) -> Told:
    """Send one message; gives what came of it."""
    told = Told()
    async with ScriptedServer(Script(turns=turns)) as server:
        known = ModelSettings(context_window=200_000, input_price=1.0, output_price=1.0)
        chosen = Settings(model=model, base_url=server.base_url + path, models={model: known}, mode=mode, **settings)
        trust = session_trust(workspace, once=trusted)
        opening = Opening(workspace=workspace, settings=chosen, user_present=False, trust=trust, resume=resume)
        async with await open_session(opening) as live:
            told.session = live.id
            if before is not None:
                await before(live)
            feed = live.follow()
            await live.post(Prompt(id="told", content=(Text(text=text),)), ME)
            async for notification in feed:
                match notification:
                    case Notice(text=said):
                        told.notices.append(said)
                    case PromptDelivered(prompt_id="told", enclosed=enclosed):
                        told.enclosed = enclosed
                    case TurnEnded() if not live.status.turn_active:
                        break
                    case _:
                        pass
        told.bodies = [request.body for request in server.requests]
    content = next(message["content"] for message in reversed(told.bodies[0]["messages"]) if message["role"] == "user")
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    told.texts = [block["text"] for block in content if block["type"] == "text"]
    told.images = sum(block["type"] == "image" for block in content)
    return told
