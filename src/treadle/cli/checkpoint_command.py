"""List the checkpoints of a session, show what changed since one, and restore it."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from treadle.cli.parser import LAST, named_session, session_operand

if TYPE_CHECKING:
    from treadle.door.review import ListedCheckpoint
    from treadle.store.sqlite import SessionRow, Store


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the commands."""
    commands = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, about in (
        ("list", "list the checkpoints, oldest first"),
        ("diff", "show what changed since checkpoint N"),
        ("restore", "bring files, conversation or both back to checkpoint N"),
        ("prune", "remove the oldest checkpoints of the folder beyond the limit, and compact the rest"),
    ):
        command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        if name in ("diff", "restore"):
            command.add_argument("n", type=int, metavar="N", help="the number of the checkpoint")
        if name == "restore":
            what = command.add_mutually_exclusive_group()
            what.add_argument("--files", action="store_true", help="the files only (default)")
            what.add_argument("--conversation", action="store_true", help="the conversation only")
            what.add_argument("--both", action="store_true", help="the files and the conversation")
            command.add_argument("--preview", action="store_true", help="show what would change, and change nothing")
            command.add_argument("--yes", action="store_true", help="do not ask")
        session_operand(command, nargs="?", otherwise=LAST)
        command.add_argument("--json", action="store_true", help="JSON, one object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    from treadle.door.opening import session_log

    prefix = named_session(arguments.session)
    with session_log(prefix) as (row, store):
        match arguments.action:
            case "list":
                return _list(store, row, json=arguments.json)
            case "diff":
                return _diff(store, row, arguments)
            case "prune":
                return _prune(store, row, json=arguments.json)
            case _:
                return _restore(store, row, arguments)


def _list(store: "Store", row: "SessionRow", *, json: bool) -> int:
    from treadle.door.review import listed_checkpoints
    from treadle.protocol.codec import encode

    rows = listed_checkpoints(store, row.id)
    if json:
        sys.stdout.writelines(f"{encode(one).decode()}\n" for one in rows)
    elif rows:
        from treadle.door.program import harmless

        sys.stdout.writelines(f"{harmless(_line(one))}\n" for one in rows)
    else:
        from treadle.door.past import Points

        why = Points(store, row.id).unkept() or "Nothing in it has changed files yet."
        sys.stderr.write(f"This session has no checkpoints. {why}\n")
    return 0


def _line(one: "ListedCheckpoint") -> str:
    at = f"{datetime.fromtimestamp(one.at / 1000, UTC).astimezone():%Y-%m-%d %H:%M:%S}"
    files = f"{one.files} file{'' if one.files == 1 else 's'}"
    missing = f"  not covered: {', '.join(one.not_covered)}" if one.not_covered else ""
    step = f"step {one.step}" if one.step else ""
    return f"{one.n:>4}  {at}  {step:<9} {one.why:<24} {files:<10} +{one.added} -{one.removed}{missing}"


def _diff(store: "Store", row: "SessionRow", arguments: argparse.Namespace) -> int:
    from treadle.door.program import harmless
    from treadle.door.review import changed_since
    from treadle.protocol.codec import encode

    report = changed_since(store, row, arguments.n)
    if arguments.json:
        sys.stdout.writelines(f"{encode(change).decode()}\n" for change in report.changes)
    else:
        sys.stdout.write(harmless(report.diff))
    return 0


def _prune(store: "Store", row: "SessionRow", *, json: bool) -> int:
    import msgspec

    from treadle.door.review import opened_checkpoints
    from treadle.door.settings import load_settings

    kept = opened_checkpoints(store, row)
    before = kept.size()
    kept.prune(load_settings({}).checkpoints.most_megabytes * 1_000_000)
    after = kept.size()
    if json:
        sys.stdout.write(f"{msgspec.json.encode({'before': before, 'after': after}).decode()}\n")
    else:
        sys.stdout.write(f"{before / 1e6:.1f} MB before, {after / 1e6:.1f} MB after.\n")
    return 0


def _restore(store: "Store", row: "SessionRow", arguments: argparse.Namespace) -> int:
    from treadle.cli.agreeing import agreed
    from treadle.door.history import restore_closed
    from treadle.door.program import Exit, harmless
    from treadle.door.review import opened_checkpoints, preview_lines, restore_preview
    from treadle.protocol.checkpoints import Restore
    from treadle.protocol.codec import encode

    wanted = Restore(
        checkpoint=arguments.n,
        files=not arguments.conversation,
        conversation=arguments.conversation or arguments.both,
    )
    checkpoints = opened_checkpoints(store, row)
    if arguments.preview or (not arguments.yes and sys.stdout.isatty()):
        found = restore_preview(store, row, checkpoints, wanted)
        shown = encode(found).decode() if arguments.json else harmless("\n".join(preview_lines(found, wanted)))
        sys.stdout.write(f"{shown}\n")
        sys.stdout.flush()
    if arguments.preview:
        return 0
    if not agreed(f"Restore checkpoint {arguments.n}?", yes=arguments.yes):
        return int(Exit.FAILED)
    says = partial(print, file=sys.stderr, flush=True)
    result = asyncio.run(restore_closed(store, row.id, checkpoints, wanted, says=says))
    if arguments.json:
        sys.stdout.write(f"{encode(result).decode()}\n")
    else:
        from treadle.present.restored_words import restored_words

        sys.stdout.write(harmless(restored_words(result, conversation=wanted.conversation)) + "\n")
    return int(Exit.FAILED) if result.conflicts or result.error else 0
