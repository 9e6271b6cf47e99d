"""Trust a folder: list what of it would act, and let it act after a yes; a change asks again."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.store.trust import Trust


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="the folder")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--yes", action="store_true", help="trust it without asking")
    what.add_argument("--revoke", action="store_true", help="take trust back")
    parser.add_argument("--json", action="store_true", help="write one JSON object; without --yes nothing is asked")


def execute(arguments: argparse.Namespace) -> int:
    """List, and trust or take trust back."""
    from treadle.app.compose import check_workspace
    from treadle.app.places import data_directory
    from treadle.store.trust import TrustState, TrustStore

    store = TrustStore(data_directory() / "trust")
    folder = check_workspace(arguments.directory)
    if arguments.revoke:
        store.revoke(folder)
    trust = store.read(folder)
    if not arguments.json:
        _show(trust)
    open_question = trust.state is not TrustState.TRUSTED and not arguments.revoke
    if open_question and (arguments.yes or (not arguments.json and _confirmed())):
        trust = store.grant(trust)
        if not arguments.json:
            sys.stdout.write("Trusted.\n")
    if arguments.json:
        _write(trust)
    return 0


def _show(trust: "Trust") -> None:
    from treadle.workspace.text import visible

    sys.stdout.write(f"{visible(str(trust.workspace))}: {trust.state}\n")
    width = max((len(item.kind) for item in trust.items), default=0)
    for item in trust.items:
        mark = "  (new or changed)" if item.path in trust.changed else ""
        sys.stdout.write(f"  {item.kind:<{width}}  {item.digest[:16]}  {visible(item.path)}{mark}\n")
    for path in sorted(set(trust.changed) - {item.path for item in trust.items}):
        sys.stdout.write(f"  gone: {visible(path)}\n")
    if not trust.items:
        sys.stdout.write("  Nothing in it acts by itself.\n")


def _confirmed() -> bool:
    """Ask the person at the terminal; what was typed before the question does not count, and no answer is no."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        sys.stderr.write("Nothing was changed: --yes trusts it without asking.\n")
        return False
    import termios

    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    sys.stdout.write("Let these act? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")


def _write(trust: "Trust") -> None:
    from treadle.protocol.codec import encode

    items = [{"path": item.path, "kind": item.kind, "digest": item.digest} for item in trust.items]
    told = {"workspace": str(trust.workspace), "state": trust.state, "items": items, "changed": trust.changed}
    sys.stdout.write(f"{encode(told).decode(errors='replace')}\n")
