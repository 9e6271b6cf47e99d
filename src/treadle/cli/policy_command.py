"""Show what would be allowed and why, which rules apply, and what other rules would change. Nothing is run."""

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from treadle.cli.parser import session_operand
from treadle.protocol.errors import ConfigError
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import FetchUrl, RunCommand

if TYPE_CHECKING:
    from treadle.door.policy import Suggestion
    from treadle.policy.decision_context import PolicyContext
    from treadle.policy.rules import Rule

_MODES = [mode.value for mode in Mode]


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="test|explain|show|recheck|suggest|revoke")
    _configure_asking(verbs)
    recheck = verbs.add_parser(
        "recheck", help="check the calls of past sessions again, with other rules or in another mode"
    )
    session_operand(recheck, nargs="*", otherwise="default: all")
    recheck.add_argument("--all", action="store_true", help="all sessions")
    recheck.add_argument("--policy", type=Path, metavar="FILE", help="use this rule file instead of those in force")
    recheck.add_argument("--mode", choices=_MODES, help="use this mode instead of the session's")
    recheck.add_argument("--workspace", "-C", type=Path, metavar="DIR", help="as if the sessions had run here")
    recheck.add_argument("--untrusted", action="store_true", help="as in an untrusted folder")
    suggest = verbs.add_parser("suggest", help="suggest rules from what you approved in past sessions")
    suggest.add_argument("--add", nargs="*", metavar="ID", help="add these to your rules, or all without an ID")
    suggest.add_argument("--least", type=int, default=1, metavar="N", help="only what was approved N times or more")
    revoke = verbs.add_parser("revoke", help="remove one of your rules")
    revoke.add_argument("id", help="the rule's id (`treadle policy show` lists them)")
    for verb in (recheck, suggest):
        verb.add_argument("--json", action="store_true", help="one JSON object a line")


def _configure_asking(verbs: Any) -> None:
    test = verbs.add_parser("test", help="classify commands and paths given as JSON lines")
    test.add_argument(
        "--jsonl", action="store_true", help="rows {id, command} or {id, path, op, cwd} on standard input"
    )
    explain = verbs.add_parser("explain", help="show what would be decided, why, and what would change it")
    explain.add_argument("command", nargs="?", help="the shell line")
    explain.add_argument("--path", metavar="PATH", help="explain a file instead of a shell line")
    explain.add_argument("--url", metavar="URL", help="explain a URL instead of a shell line")
    explain.add_argument("--method", default="GET", metavar="NAME", help="the HTTP method (default: GET)")
    explain.add_argument("--tainted", action="store_true", help="as if text from outside was read in the turn")
    explain.add_argument("--op", choices=["list", "read", "write"], default="read", help="what is done with the file")
    show = verbs.add_parser("show", help="show the rules in force, and the files they come from")
    for verb in (test, explain, show):
        verb.add_argument("--workspace", "-C", type=Path, default=Path(), metavar="DIR", help="the folder to work in")
        verb.add_argument("--untrusted", action="store_true", help="as in an untrusted folder")
    for verb in (explain, show):
        verb.add_argument("--trusted", action="store_true", help="as in a trusted folder")
        verb.add_argument("--json", action="store_true", help="write one JSON object")
    for verb in (test, explain):
        verb.add_argument("--mode", choices=_MODES, default="ask", help="the mode (default: ask)")
        verb.add_argument("--home", type=Path, metavar="DIR", help="another home directory")
        verb.add_argument(
            "--backend",
            choices=["auto", "none"],
            default="auto",
            help="what confines commands: what is here, or nothing",
        )


def execute(arguments: argparse.Namespace) -> int:
    """Do what the verb says."""
    verbs: Mapping[str, Callable[[argparse.Namespace], int]] = {
        "test": _test,
        "explain": _explain,
        "show": _show,
        "recheck": _recheck,
        "suggest": _suggest,
        "revoke": _revoke,
    }
    return verbs[arguments.verb](arguments)


def _test(arguments: argparse.Namespace) -> int:
    """Answer each row; a row that cannot be read is answered with its error, and the exit code tells of it."""
    from treadle.policy.policy_rows import answer_row

    context = _context(arguments, trusted=not arguments.untrusted)
    code = 0
    for number, line in enumerate(sys.stdin.buffer, start=1):
        if not line.strip():
            continue
        answer: Mapping[str, Any]
        row: Any = None
        try:
            row = msgspec.json.decode(line)
            answer = answer_row(row, context)
        except (ValueError, RecursionError) as error:
            named = {"id": row["id"]} if isinstance(row, dict) and "id" in row else {}
            answer = {**named, "error": f"line {number}: {error}"}
            sys.stderr.write(f"treadle: line {number} of the input is not a valid row: {error}\n")
            code = 1
        _write(answer)
        sys.stdout.flush()
    return code


def _explain(arguments: argparse.Namespace) -> int:
    from treadle.door.policy import explain_access, explanation_lines, path_access

    if [arguments.command, arguments.path, arguments.url].count(None) != 2:
        raise ConfigError(
            "policy-question",
            "There is nothing to explain.",
            fix="Give a shell line in quotes, --path PATH with --op, or --url URL.",
        )
    context = _context(arguments, trusted=_lets_code_run(arguments))
    if arguments.url is not None:
        explained = explain_access(FetchUrl(url=arguments.url, method=arguments.method), context)
    elif arguments.path is not None:
        explained = explain_access(path_access(arguments.path, arguments.op), context)
    else:
        explained = explain_access(RunCommand(command=arguments.command, cwd=context.roots[0]), context)
    _show_either(arguments, explained, explanation_lines(explained))
    return 0


def _show(arguments: argparse.Namespace) -> int:
    """Show the rules; the exit code is 1 when a file cannot be used."""
    from treadle.door.policy import policy_lines, read_policy

    policy = read_policy(arguments.workspace.resolve(), trusted=_trusted(arguments))
    _show_either(arguments, policy, policy_lines(policy))
    return 1 if policy.problems else 0


def _show_either(arguments: argparse.Namespace, value: object, lines: Iterable[str]) -> None:
    if arguments.json:
        _write(value)
    else:
        sys.stdout.writelines(f"{line}\n" for line in lines)


def _write(value: object) -> None:
    sys.stdout.write(f"{msgspec.json.encode(value).decode()}\n")


def _trusted(arguments: argparse.Namespace) -> bool:
    """Go by what the user said of the folder, unless the command line says to suppose something."""
    from treadle.door.settings import data_directory
    from treadle.store.trusted_folders import TrustState, TrustStore

    if arguments.trusted or arguments.untrusted:
        return bool(arguments.trusted)
    found = TrustStore(data_directory() / "trust").read(arguments.workspace.resolve())
    return found.state is TrustState.TRUSTED


def _lets_code_run(arguments: argparse.Namespace) -> bool:
    """Go by what a session here would, unless the command line says to suppose something."""
    from treadle.door.trust import session_trust

    if arguments.trusted or arguments.untrusted:
        return bool(arguments.trusted)
    return session_trust(arguments.workspace.resolve()).lets_code_run


def _context(arguments: argparse.Namespace, *, trusted: bool) -> "PolicyContext":
    from treadle.door.policy import asked_context

    return asked_context(
        arguments.workspace,
        Mode(arguments.mode),
        trusted=trusted,
        home=arguments.home,
        tainted=getattr(arguments, "tainted", False),
        confined=arguments.backend != "none",
    )


def _recheck(arguments: argparse.Namespace) -> int:
    from treadle.door.policy import Alternative, Replay, judged_calls, past_calls, read_policy_file
    from treadle.door.settings import load_settings
    from treadle.workspace.files.text import visible

    replay = Replay(
        Alternative(
            rules=None if arguments.policy is None else read_policy_file(arguments.policy),
            mode=None if arguments.mode is None else Mode(arguments.mode),
            workspace=None if arguments.workspace is None else arguments.workspace.resolve(),
            trusted=not arguments.untrusted,
            try_first=load_settings({}).try_first,
        )
    )
    changed = 0
    for past in past_calls(() if arguments.all else arguments.session, judged_calls):
        change = replay.judge(past)
        if change is None:
            continue
        changed += 1
        if arguments.json:
            _write(change)
            continue
        rules = ", ".join(
            dict.fromkeys(f"{one.rule}{f' [{one.source}]' if one.source else ''}" for one in change.reasons)
        )
        sys.stdout.write(
            visible(
                f"{change.before} -> {change.after}  {change.what}: {change.why}  ({rules})"
                f"  {change.session}:{change.seq}"
            )
        )
        sys.stdout.write("\n")
    summed = replay.sum(changed)
    if arguments.json:
        _write(summed)
        return 0
    sys.stdout.write(f"{summed.changed:,} of {summed.calls:,} calls in {summed.sessions:,} sessions would change.\n")
    for folder in summed.gone:
        sys.stderr.write(
            visible(f"treadle: {folder} does not exist any more; its calls were checked by their names alone\n")
        )
    return 0


def _suggest(arguments: argparse.Namespace) -> int:
    from treadle.door.policy import found_suggestions
    from treadle.policy.rulefile import HEAD

    found = found_suggestions(arguments.least)
    if arguments.add is not None:
        return _add(arguments, found)
    if arguments.json:
        for _, one in found:
            _write(one)
    elif found:
        sys.stdout.write(HEAD + "".join(f"\n{one.toml}" for _, one in found))
    else:
        sys.stderr.write("Nothing to suggest. What you approved is already allowed, or no rule should allow it.\n")
    return 0


def _add(arguments: argparse.Namespace, offered: "Sequence[tuple[Rule, Suggestion]]") -> int:
    from treadle.door.policy import add_suggestions

    added, file = add_suggestions(offered, arguments.add)
    for one in added:
        _write({"added": one, "file": str(file)}) if arguments.json else sys.stdout.write(f"added {one} to {file}\n")
    if not added:
        sys.stderr.write("Nothing was added.\n")
    return 0


def _revoke(arguments: argparse.Namespace) -> int:
    from treadle.door.policy import revoke_rule

    for file in revoke_rule(arguments.id):
        sys.stdout.write(f"removed {arguments.id} from {file}\n")
    return 0
