"""Trust a folder: list the files that can run or configure something, and use them after a yes. A change asks again."""

import argparse
import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.door.trust import SessionTrust
    from treadle.store.trusted_folders import Trust, TrustStore
    from treadle.tui.paint.look import Look


class _Said(Enum):
    """An answer, in the order of the rows: later is not remembered, no is."""

    LATER = "later"
    YES = "yes"
    NO = "no"


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
    from treadle.door.opening import check_workspace
    from treadle.door.trust import trust_store, whole_trust
    from treadle.store.trusted_folders import TrustState

    store = trust_store()
    if arguments.list:
        return _list(as_json=arguments.json)
    folder = check_workspace(arguments.directory)
    if arguments.revoke:
        store.revoke(folder)
    trust = whole_trust(folder)
    if not arguments.json:
        _show(trust)
    if trust.state is not TrustState.TRUSTED and not arguments.revoke:
        trust = _decide(store, trust, yes=arguments.yes, ask=not arguments.json)
    if arguments.json:
        _write(trust)
    return 0


def _decide(store: "TrustStore", trust: "Trust", *, yes: bool, ask: bool) -> "Trust":
    said = _Said.YES if yes else _ask_here(trust) if ask and _at_terminal() else _Said.LATER
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


def _ask_here(trust: "Trust") -> _Said:
    from treadle.door.settings import load_settings
    from treadle.tui.paint.look import prepared_terminal

    with prepared_terminal(load_settings({})) as look:
        return _answer(trust, look)


def settle_trust(trust: "SessionTrust", look: "Look") -> "SessionTrust":
    """Ask the person at the terminal, before a session opens, where that is needed; what they say applies then."""
    from treadle.cli.trust_question import said_line
    from treadle.door.trust import session_trust, trust_store, whole_trust
    from treadle.tui.before.inline import leave_line

    problem = ""
    while trust.asks:
        shown_trust = whole_trust(trust.workspace)
        said = _answer(shown_trust, look, problem)
        match said:
            case _Said.YES:
                trust_store().grant(shown_trust)
                trust = session_trust(trust.workspace)
                problem = "" if trust.trusted else "It changed before you answered."
            case _Said.NO:
                trust_store().refuse(shown_trust)
                trust = session_trust(trust.workspace)
            case _Said.LATER:
                pass
        if not problem:
            leave_line(look, said_line(trust.trust, look.theme.signs))
        if said is _Said.LATER:
            break
    return trust


def _answer(trust: "Trust", look: "Look", problem: str = "") -> _Said:
    """Ask; a person who quits ends the program."""
    import asyncio

    from treadle.cli.trust_question import trust_question
    from treadle.tui.before.ask_choice import choose
    from treadle.tui.ending import Left

    chosen = asyncio.run(choose(trust_question(trust, problem), look))
    if isinstance(chosen, Left):
        raise SystemExit(chosen.code)
    return list(_Said)[chosen.row or 0]


def _show(trust: "Trust") -> None:
    from treadle.door.trust import allow_lines, shown_path, trust_lines

    refused = " (you answered no)" if trust.refused else ""
    sys.stdout.write(f"{shown_path(str(trust.workspace))}: {trust.state}{refused}\n")
    sys.stdout.writelines(f"{line}\n" for line in (*trust_lines(trust), *allow_lines(trust)))
    if not trust.listed:
        sys.stdout.write("  It has no rules, settings, servers or hooks.\n")


def _at_terminal() -> bool:
    if sys.stdin.isatty() and sys.stdout.isatty():
        return True
    sys.stderr.write("Nothing was changed. --yes trusts it without asking.\n")
    return False


def _list(*, as_json: bool) -> int:
    from treadle.door.trust import session_trust, shown_path, trusted_folders

    folders = trusted_folders()
    for folder, state in folders:
        if as_json:
            _write(session_trust(folder).trust)
        else:
            sys.stdout.write(f"{state:<9}  {shown_path(str(folder))}\n")
    if not folders and not as_json:
        sys.stderr.write("No folder is trusted yet.\n")
    return 0


def _write(trust: "Trust") -> None:
    from treadle.door.trust import allow_rules
    from treadle.protocol.codec import encode

    facts = {
        "workspace": str(trust.workspace),
        "state": trust.state,
        "items": [{"path": item.path, "kind": item.kind, "digest": item.digest} for item in trust.listed],
        "changed": trust.changed,
        "allows": [{"id": rule.id, "matches": rule.matches, "source": rule.source} for rule in allow_rules(trust)],
    }
    sys.stdout.write(f"{encode(facts).decode(errors='replace')}\n")
