"""List the sessions of a folder, the last used first, with the state and the cost of each."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.door.past import FoundPlace, ListedSession

_LEAST_TITLE = 20
_MOST_FOUND = 50


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("--directory", "-C", type=Path, default=Path(), metavar="DIR", help="the folder to list")
    parser.add_argument("--all", action="store_true", help="list the sessions of every folder")
    parser.add_argument(
        "--search",
        default="",
        metavar="TEXT",
        help="find TEXT, as it is written, in what was asked, answered, called and printed",
    )
    parser.add_argument("--archived", action="store_true", help="list the archived sessions, or search in them")
    parser.add_argument("--tree", action="store_true", help="list the subagents below the sessions that began them")
    parser.add_argument("--run", default="", metavar="RUN", help="list the sessions of a batch, by the name of its run")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")


def execute(arguments: argparse.Namespace) -> int:
    """Print the list."""
    from treadle.door.past import listed_runs, listed_sessions
    from treadle.door.program import harmless
    from treadle.protocol.codec import encode

    folder = None if arguments.all or arguments.run else arguments.directory.expanduser().resolve()
    if arguments.search:
        return _search(arguments.search, folder, json=arguments.json, archived=arguments.archived)
    whole = arguments.json or bool(arguments.run)
    rows = _in_trees(listed_sessions(folder, archived=arguments.archived, subagents=arguments.tree, runs=whole))
    if arguments.run:
        rows = [row for row in rows if (row.root or row.id).startswith(f"{arguments.run}.")]
    runs = {} if whole or folder is not None else listed_runs(archived=arguments.archived)
    if arguments.json:
        sys.stdout.writelines(f"{encode(row).decode()}\n" for row in rows)
    elif rows or runs:
        _print(rows, folder)
        _print_runs(runs)
    elif arguments.run:
        sys.stderr.write(f"No sessions of a batch {harmless(arguments.run)}.\n")
    else:
        sys.stderr.write("No archived sessions here.\n" if arguments.archived else "No sessions here yet.\n")
    return 0


def _print_runs(runs: dict[str, tuple[int, int]]) -> None:
    """Write a line for each batch: its sessions would hide the others."""
    from treadle.present.words import counted

    for run, (number, last) in sorted(runs.items(), key=lambda one: -one[1][1]):
        tasks = f"{counted(number, 'task')} of a batch"
        sys.stdout.write(f"{run}  {_minute(last)}  {tasks}: `treadle sessions --run {run}` lists their sessions\n")


def _in_trees(rows: "list[ListedSession]") -> "list[ListedSession]":
    """Put subagents below the sessions that began them, the first one first."""
    children = [row for row in reversed(rows) if row.root]
    return [
        one for row in rows if not row.root for one in (row, *(child for child in children if child.root == row.id))
    ]


def _search(text: str, folder: Path | None, *, json: bool, archived: bool) -> int:
    """Print the places that fit, below the session that each is in."""
    from treadle.door.past import found_places
    from treadle.protocol.codec import encode

    places = found_places(text, folder, _MOST_FOUND, archived=archived)
    if json:
        sys.stdout.writelines(f"{encode(place).decode()}\n" for place in places)
    elif places:
        _print_places(places, folders=folder is None)
    else:
        hint = "" if folder is None else " --all searches in the sessions of every folder."
        sys.stderr.write(f"Nothing found.{hint}\n")
    return 0


def _print_places(places: "list[FoundPlace]", *, folders: bool) -> None:
    from treadle.door.program import harmless, screen_width, shortened

    width = screen_width(sys.stdout)
    by_session: dict[str, list[FoundPlace]] = {}
    for place in places:
        by_session.setdefault(place.session, []).append(place)
    for session, found in by_session.items():
        first = found[0]
        lines = [
            f"{session}  {_minute(first.updated_at)}  {first.title}{' (archived)' if first.archived else ''}",
            *([f"  {first.workspace}"] if folders else []),
        ]
        lines += [f"  {place.event:>5}  {place.snippet}" for place in found if place.event]
        for line in map(harmless, lines):
            sys.stdout.write(f"{line if width is None else shortened(line, width)}\n")


def _minute(at: int) -> str:
    return f"{datetime.fromtimestamp(at / 1000, UTC).astimezone():%Y-%m-%d %H:%M}"


def _print(rows: "list[ListedSession]", folder: Path | None) -> None:
    """Write a line for each session, cut at its title to fit the screen, and below it the folder if it is another."""
    from treadle.door.past import listed_words
    from treadle.door.program import harmless, screen_width, shortened

    width = screen_width(sys.stdout)
    costs = [row.spending.words for row in rows]
    columns = [
        (listed_words(row), cost, row.mode or "-", f"+{row.added} -{row.removed}")
        for row, cost in zip(rows, costs, strict=True)
    ]
    widths = [max(map(len, column), default=0) for column in zip(*columns, strict=True)]
    for row, (state, cost, mode, size) in zip(rows, columns, strict=True):
        before = (
            f"{row.id}  {_minute(row.updated_at)}  {state:<{widths[0]}}  {cost:>{widths[1]}}  {mode:<{widths[2]}}  "
            f"{size:>{widths[3]}}  "
        )
        title = harmless(f"  └ {row.agent} ({row.outcome or 'works'}): {row.title}" if row.root else row.title)
        if width is not None:
            title = shortened(title, max(width - len(before), _LEAST_TITLE))
        sys.stdout.write(f"{before}{title}\n")
        if folder is None or (row.workspace != str(folder) and not row.root):
            sys.stdout.write(f"  {harmless(row.workspace)}\n")
