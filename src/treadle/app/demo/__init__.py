"""The demo: a sample project with a failing test, and the script of the model that fixes it."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from treadle.app.compose import Opening, open_session
from treadle.app.config.sections import ModelSettings, Settings
from treadle.app.session.live import LiveSession
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.providers.scripted.script import load_script
from treadle.providers.scripted.scripted_server import ScriptedServer

TASK = "A test of this project fails. Find out why and fix it."
MODEL = "anthropic-compatible/demo"

_FOLDER = Path(__file__).parent


def what_next(session_id: str, *, configured: bool) -> str:
    """Say what to do after the demo; `configured` is whether there is a model to work with."""
    key = "" if configured else "  treadle login anthropic         store a key; `treadle providers` lists the others\n"
    return (
        "What next:\n"
        f"{key}"
        '  treadle "make the tests pass"   in the folder of your project\n'
        f"  treadle show {session_id}\n"
        "                                  see what the demo did, step by step"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A running demo: the session, and what the scripted model found wrong with what it was sent."""

    live: LiveSession
    violations: list[str]


@asynccontextmanager
async def open_demo(folder: Path, *, tool_protocol: ToolProtocol = ToolProtocol.NATIVE) -> AsyncIterator[Demo]:
    """Copy the sample project into `folder`, serve the scripted model over HTTP, and open a session on both."""
    shutil.copytree(_FOLDER / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    async with ScriptedServer(load_script(_FOLDER / "script.toml")) as server:
        settings = Settings(
            model=MODEL,
            base_url=server.base_url,
            mode=Mode.ASK,
            tool_protocol=tool_protocol,
            models={MODEL: ModelSettings(context_window=200_000, input_price=0.0, output_price=0.0)},
        )
        opening = Opening(workspace=folder, settings=settings, user_present=True)
        live = await open_session(opening)
        async with live:
            yield Demo(live=live, violations=server.violations)
