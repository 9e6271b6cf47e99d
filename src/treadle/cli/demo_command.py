"""See Treadle fix a failing test in a sample project: real files, real commands, a scripted model."""

import argparse
import asyncio
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from treadle.protocol.messages import Text
from treadle.protocol.models import ToolProtocol

if TYPE_CHECKING:
    from treadle.tui.paint.look import Look


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    protocols = [protocol.value for protocol in ToolProtocol]
    parser.add_argument("--yes", action="store_true", help="answer every approval with yes, as without a terminal")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="work in DIR (which must not exist) and keep it")
    parser.add_argument("--tool-protocol", choices=protocols, default="native", help="how calls are written")


def execute(arguments: argparse.Namespace) -> int:
    """Run the demo."""
    return run_demo(ask=not arguments.yes, keep=arguments.keep, tool_protocol=ToolProtocol(arguments.tool_protocol))


def run_demo(*, ask: bool, keep: Path | None = None, tool_protocol: ToolProtocol = ToolProtocol.NATIVE) -> int:
    """Run the demo in `keep` or a temporary folder; with a terminal and `ask`, the person there approves."""
    from treadle.protocol.errors import ConfigError

    if keep is not None and keep.exists():
        raise ConfigError("demo-folder", f"{keep} already exists.", fix="Name a folder that does not exist yet.")
    with tempfile.TemporaryDirectory(prefix="treadle-demo-") as temporary:
        folder = Path(temporary) / "ledger" if keep is None else keep
        if not (ask and sys.stdin.isatty() and sys.stdout.isatty()):
            return asyncio.run(_run(folder, tool_protocol, None))
        from treadle.door.settings import load_settings
        from treadle.tui.paint.look import prepared_terminal

        with prepared_terminal(load_settings({})) as look:
            return asyncio.run(_run(folder, tool_protocol, look))


async def _run(folder: Path, tool_protocol: ToolProtocol, look: "Look | None") -> int:
    from treadle.door.known_models import Models
    from treadle.door.program import TASK, open_demo, what_next, write_wrapped
    from treadle.door.settings import load_settings

    async with open_demo(folder, tool_protocol=tool_protocol) as demo:
        if look is not None:
            from treadle.tui.terminal_main import run_interactive

            code = await run_interactive(demo.live, look, first_prompt=(Text(text=TASK),), kept=False)
        else:
            from treadle.headless.narrator import narrate

            code = await narrate(demo.live, TASK, sys.stdout)
        for violation in demo.violations:
            sys.stderr.write(f"The scripted model did not expect this: {violation}\n")
        session_id = demo.live.id
    configured = Models(load_settings({})).configured()
    with suppress(OSError):
        write_wrapped(sys.stdout, f"\n{what_next(session_id, configured=configured)}")
    return code or (1 if demo.violations else 0)
