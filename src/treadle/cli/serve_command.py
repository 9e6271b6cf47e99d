"""Serve several users: a page for each, with a folder, keys, limits and a log of their own.

`add NAME` lets a user in and prints their token; for one who is there the token is another one, and what no flag names
stays. `remove NAME` shuts one out, `list` names them. `metrics` prints a
token that may read /metrics, `proxy` a secret for a proxy that names users.
"""

import argparse
import os
import sys
from pathlib import Path

from treadle.cli.command_line import flags
from treadle.cli.work import add_settings
from treadle.protocol.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from treadle.web.service.service_users import ServiceUser

_GRACE = 60.0
_ACTIONS = ("add", "remove", "list", "metrics", "proxy")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument("action", nargs="?", choices=_ACTIONS, help="look after the users instead of serving them")
    parser.add_argument("name", nargs="?", default="", help="with add and remove: the user")
    parser.add_argument("--user-page", default="", help=argparse.SUPPRESS)
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="the folder of the service (default: in Treadle's own)"
    )
    serving = parser.add_argument_group("serving")
    serving.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="the address (default: 127.0.0.1)")
    serving.add_argument("--port", type=int, default=8765, help="the port (default: 8765; 0: a free one)")
    serving.add_argument("--address", default="", metavar="URL", help="how browsers reach it, through a proxy with TLS")
    serving.add_argument("--user-header", default="", metavar="NAME", help="the header in which a proxy names the user")
    serving.add_argument("--all-turns", type=int, metavar="N", help="turns at the same time (default: 2 for each core)")
    serving.add_argument(
        "--grace", type=float, default=_GRACE, metavar="SECONDS", help=f"for turns after SIGTERM (default: {_GRACE})"
    )
    serving.add_argument(
        "--pass-env", action="append", default=[], metavar="NAME", help="a variable that users' processes get, too"
    )
    serving.add_argument(
        "--traces", default="", metavar="URL", help="send traces there: OTLP over HTTP, off by default"
    )
    users = parser.add_argument_group("with add")
    users.add_argument("--turns", type=int, metavar="N", help="turns of the user at a time (default: 2)")
    users.add_argument("--day-cost", type=float, metavar="USD", help="the most US dollars a day")
    users.add_argument("--disk-gb", type=float, metavar="GB", help="how large the user's folder may be")
    users.add_argument("--account", metavar="NAME", help="the system's account of their process (as root)")
    add_settings(parser, directory=False)


def execute(arguments: argparse.Namespace) -> int:
    """Do it; returns the exit code."""
    import asyncio

    if arguments.user_page:
        from treadle.web.service.user_page import serve_user_page

        listening, control = map(int, arguments.user_page.split(","))
        return asyncio.run(serve_user_page(listening, control))
    from treadle.door.settings import data_directory

    data = (arguments.data or data_directory() / "service").expanduser().absolute()
    if arguments.action is not None:
        return _look_after(arguments, data)
    for name, value, least in (("--all-turns", arguments.all_turns, 1), ("--grace", arguments.grace, 0)):
        if value is not None and not value >= least:
            raise _wrong(f"{name} {value} is too little.", f"It is at least {least}.")
    from treadle.web.service.serving_users import ServiceWishes, serve_users
    from treadle.web.service.user_pages import PageTerms

    wishes = ServiceWishes(
        data=data,
        host=arguments.host,
        port=arguments.port,
        address=arguments.address,
        user_header=arguments.user_header,
        turns=arguments.all_turns or 2 * (os.cpu_count() or 1),
        grace=arguments.grace,
    )
    terms = PageTerms(
        flags=flags(arguments),
        hosts=(),
        scheme="",
        trust=arguments.trust,
        passed=tuple(arguments.pass_env),
        traces=arguments.traces,
    )
    return asyncio.run(serve_users(wishes, terms))


def _look_after(arguments: argparse.Namespace, data: Path) -> int:
    from treadle.web.service.service_users import UserBook

    book = UserBook(data)
    match arguments.action:
        case "add" | "remove" if not arguments.name:
            raise _wrong(f"`treadle serve {arguments.action}` needs a name.", "It says whom.")
        case "add":
            if arguments.turns is not None and arguments.turns < 1:
                raise _wrong(f"--turns {arguments.turns} is too little.", "It is at least 1.")
            named = {field: getattr(arguments, field) for field in ("account", "turns", "day_cost", "disk_gb")}
            user, token = book.add(
                arguments.name, **{field: value for field, value in named.items() if value is not None}
            )
            sys.stdout.write(f"{token}\n")
            sys.stdout.flush()
            sys.stderr.write(f"{_user_line(user)}\n")
        case "remove":
            book.remove(arguments.name)
            sys.stderr.write(f"{arguments.name} is shut out. Their folder stays: {data / 'users' / arguments.name}\n")
        case "list":
            for user in book.all().values():
                sys.stdout.write(f"{_user_line(user)}\n")
        case secret:
            sys.stdout.write(f"{book.new_secret(secret)}\n")
    return 0


def _user_line(user: "ServiceUser") -> str:
    from treadle.present.words import counted

    limits = [f"{counted(user.turns, 'turn')} at a time"]
    limits += [] if user.day_cost is None else [f"${user.day_cost:.2f} a day"]
    limits += [] if user.disk_gb is None else [f"{user.disk_gb:g} GB"]
    limits += [f"account {user.account}"] if user.account else []
    return f"{user.name}  {', '.join(limits)}"


def _wrong(what: str, why: str) -> ConfigError:
    return ConfigError("service-option", what, why=why, fix="`treadle serve --help` shows the options.")
