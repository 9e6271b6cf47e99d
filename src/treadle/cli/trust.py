"""Trust a folder: list the files that can run or configure something, and use them after a yes. A change asks again."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.app.security.trusting import SessionTrust
    from treadle.store.trust import Trust, TrustStore

_LEAST_ROWS = 10
_AROUND = 8
"""Rows of the terminal that the question itself needs."""

_MEANING = (
    "  If you trust it: rules are sent to the model, settings configure Treadle and can name programs to start,\n"
    "  servers are started, git runs hooks and the programs in its settings, and what is marked allow runs\n"
    "  without asking. None of this happens before you say yes. A change asks again."
)
_REPOSITORY = (
    "  It has no rules, settings, servers or hooks. If you trust it, git may read here without asking.\n"
    "  Rules, settings, servers or hooks that appear later ask again."
)


class _Said(Enum):
    """An answer: no is remembered, later is not."""

    YES = "yes"
    NO = "no"
    LATER = "later"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="the folder")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--yes", action="store_true", help="trust it without asking")
    what.add_argument("--revoke", action="store_true", help="stop trusting it")
    what.add_argument(
        "--list", action="store_true", help=("list the folders that were trusted, and whether they changed")
    )
    parser.add_argument("--json", action="store_true", help="write one JSON object a line; never asks")


def execute(arguments: argparse.Namespace) -> int:
    """List, and trust or take trust back."""
    from treadle.app.compose import check_workspace
    from treadle.app.security.trusting import trust_store
    from treadle.store.trust import TrustState

    store = trust_store()
    if arguments.list:
        return _list(store, as_json=arguments.json)
    folder = check_workspace(arguments.directory)
    if arguments.revoke:
        store.revoke(folder)
    trust = store.read(folder)
    if not arguments.json:
        _show(trust)
    if trust.state is not TrustState.TRUSTED and not arguments.revoke:
        trust = _decide(store, trust, yes=arguments.yes, ask=not arguments.json)
    if arguments.json:
        _write(trust)
    return 0


def _decide(store: "TrustStore", trust: "Trust", *, yes: bool, ask: bool) -> "Trust":
    said = _Said.YES if yes else _answer(trust) if ask and _at_terminal() else _Said.LATER
    match said:
        case _Said.YES:
            trust = store.grant(trust)
            if ask:
                sys.stdout.write("Trusted.\n")
        case _Said.NO:
            trust = store.refuse(trust)
        case _Said.LATER:
            pass
    return trust


def settle(trust: "SessionTrust") -> "SessionTrust":
    """Ask the person at the terminal, before a session opens, where that is needed; what they say then counts."""
    from treadle.app.security.trusting import session_trust, trust_store

    while trust.asks:
        _introduce(trust.trust)
        match _answer(trust.trust):
            case _Said.YES:
                trust_store().grant(trust.trust)
                trust = session_trust(trust.workspace)
                if not trust.trusted:
                    sys.stdout.write("It changed before you answered.\n")
            case _Said.NO:
                trust_store().refuse(trust.trust)
                return session_trust(trust.workspace)
            case _Said.LATER:
                return trust
    return trust


def _introduce(trust: "Trust") -> None:
    from treadle.app.security.trusting import shown
    from treadle.store.trust import TrustState

    what = "is in a git repository, and you have not trusted it yet."
    if trust.items:
        what = "has files that can run or configure something, and you have not trusted it yet:"
    if trust.state is TrustState.CHANGED:
        what = "changed since you trusted it:"
    sys.stdout.write(f"\n{shown(str(trust.workspace))} {what}\n")
    _list_what_acts(trust, _rows())
    sys.stdout.write(f"{_MEANING if trust.items or trust.changed else _REPOSITORY}\n")


def _answer(trust: "Trust") -> _Said:
    """Read an answer; what was typed before the question does not count, and nothing said is not yes."""
    import termios

    count = sum(map(len, _what_acts(trust)))
    view = " · v: list all" if count > _rows() else ""
    while True:
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        sys.stdout.write(f"Trust it? y: yes · n: no, and do not ask again{view} · Enter: not now [y/N] ")
        sys.stdout.flush()
        match sys.stdin.readline().strip().casefold():
            case "y" | "yes":
                return _Said.YES
            case "n" | "no":
                return _Said.NO
            case "v" if view:
                _list_what_acts(trust, count)
            case _:
                return _Said.LATER


def _what_acts(trust: "Trust") -> tuple[list[str], list[str]]:
    """Give the lines for the files that would act, and those for what the folder's rules would let run unasked."""
    from treadle.app.security.trusted_rules import allow_lines
    from treadle.app.security.trusting import item_lines

    return list(item_lines(trust)), list(allow_lines(trust))


def _list_what_acts(trust: "Trust", rows: int) -> None:
    """Write both lists; where they are too long, neither can push the other out of sight."""
    items, allowed = _what_acts(trust)
    _write_lines(items, rows - min(len(allowed), rows // 2))
    _write_lines(allowed, max(rows // 2, rows - len(items)))


def _rows() -> int:
    """Give the number of lines that leave the question in sight."""
    import shutil

    return max(_LEAST_ROWS, shutil.get_terminal_size().lines - _AROUND)


def _write_lines(lines: Sequence[str], most: int) -> None:
    kept = lines if len(lines) <= most else lines[: most - 1]
    sys.stdout.writelines(f"{line}\n" for line in kept)
    if len(kept) < len(lines):
        kinds = Counter(line.split(maxsplit=1)[0] for line in lines[len(kept) :])
        sys.stdout.write(f"  … and {', '.join(f'{count} more of {kind}' for kind, count in kinds.items())}\n")


def _show(trust: "Trust") -> None:
    from treadle.app.security.trusting import shown

    refused = " (you answered no)" if trust.refused else ""
    sys.stdout.write(f"{shown(str(trust.workspace))}: {trust.state}{refused}\n")
    items, allowed = _what_acts(trust)
    sys.stdout.writelines(f"{line}\n" for line in (*items, *allowed))
    if not trust.items:
        sys.stdout.write("  It has no rules, settings, servers or hooks.\n")


def _at_terminal() -> bool:
    if sys.stdin.isatty() and sys.stdout.isatty():
        return True
    sys.stderr.write("Nothing was changed. --yes trusts it without asking.\n")
    return False


def _list(store: "TrustStore", *, as_json: bool) -> int:
    from treadle.app.security.trusting import session_trust, shown

    folders = store.folders()
    for folder in folders:
        if as_json:
            _write(session_trust(folder).trust)
        else:
            state = session_trust(folder).trust.state if folder.is_dir() else "gone"
            sys.stdout.write(f"{state:<9}  {shown(str(folder))}\n")
    if not folders and not as_json:
        sys.stderr.write("No folder is trusted yet.\n")
    return 0


def _write(trust: "Trust") -> None:
    from treadle.app.security.trusted_rules import allow_rules
    from treadle.protocol.codec import encode

    told = {
        "workspace": str(trust.workspace),
        "state": trust.state,
        "items": [{"path": item.path, "kind": item.kind, "digest": item.digest} for item in trust.items],
        "changed": trust.changed,
        "allows": [{"id": rule.id, "matches": rule.matches, "source": rule.source} for rule in allow_rules(trust)],
    }
    sys.stdout.write(f"{encode(told).decode(errors='replace')}\n")
