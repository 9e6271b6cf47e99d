"""Show each setting and where it comes from; get, set or unset one in your own file."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from treadle.cli import work
from treadle.cli.command_line import flags
from treadle.protocol.errors import ConfigError

if TYPE_CHECKING:
    from treadle.door.settings import Saved, SettingLine
    from treadle.door.trust import SessionTrust

_KEY = 'such as model, modes.plan.model or models."a/b".context_window'


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    work.add_settings(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    verbs = parser.add_subparsers(dest="verb", metavar="get|set|unset")
    getter = verbs.add_parser("get", help="print a value, or all of a table")
    getter.add_argument("key", help=_KEY)
    setter = verbs.add_parser("set", help="set a value in your own settings file; comments stay")
    setter.add_argument("key", help=_KEY)
    setter.add_argument("value", help="the value")
    unsetter = verbs.add_parser("unset", help="remove a value or a table from your own settings file")
    unsetter.add_argument("key", help=_KEY)


def execute(arguments: argparse.Namespace) -> int:
    """Print the settings, or change one."""
    match arguments.verb:
        case "set":
            from treadle.door.known_models import check_setting
            from treadle.door.settings import set_value

            return _saved(arguments.key, set_value(arguments.key, arguments.value, check_setting))
        case "unset":
            from treadle.door.known_models import check_setting
            from treadle.door.settings import unset_value

            return _saved(arguments.key, unset_value(arguments.key, check_setting), removed=True)
        case "get":
            return _get(arguments)
        case _:
            return _list(arguments)


def _saved(key: str, saved: "Saved", *, removed: bool = False) -> int:
    """Say where it was saved, and what a person would otherwise wonder about at the next start."""
    from treadle.door.known_models import said_elsewhere
    from treadle.door.program import describe_error

    sys.stdout.write(f"Saved in {saved.file}.\n")
    if over := said_elsewhere(key):
        sys.stderr.write(f"{over.strip()}\n")
    if saved.left is not None:
        sys.stderr.write(f"{describe_error(saved.left)}\n")
    elif key == "model" and not removed:
        _say_if_missing()
    return 0


def _say_if_missing() -> None:
    """Say what the model that was set still needs."""
    from treadle.door.known_models import Models
    from treadle.door.settings import load_settings

    try:
        Models(load_settings({})).choose()
    except ConfigError as error:
        sys.stderr.write(f"{error.what} {error.fix}\n")


def _read(arguments: argparse.Namespace) -> "tuple[Sequence[SettingLine], SessionTrust]":
    from treadle.door.settings import read_layers, setting_lines
    from treadle.door.trust import session_trust, trusted_by_variable

    folder = arguments.directory.expanduser().resolve()
    trust = session_trust(folder, once=arguments.trust or trusted_by_variable())
    layers = read_layers(flags(arguments), workspace=trust.workspace, trusted=trust.trusted)
    return list(setting_lines(layers)), trust


def _get(arguments: argparse.Namespace) -> int:
    """Print a value alone, or each line of a table; 1 where nothing is set."""
    from treadle.door.settings import Settings, dotted, key_path, require_key

    path = key_path(arguments.key)
    require_key(path, Settings)
    key = dotted(path)
    lines, _ = _read(arguments)
    found = [line for line in lines if line.key == key or line.key.startswith(f"{key}.")]
    found = [line for line in found if line.value is not None]
    if not found:
        sys.stderr.write(f"{key} is not set.\n")
        return 1
    if arguments.json or found[0].key != key:
        _print(found, as_json=arguments.json)
        return 0
    value = found[0].value
    sys.stdout.write(f"{value if isinstance(value, str) else msgspec.json.encode(value).decode()}\n")
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from treadle.door.settings import WORKSPACE_FILE, config_file
    from treadle.door.trust import shown_path, trust_command

    lines, trust = _read(arguments)
    _print(lines, as_json=arguments.json)
    own, workspace = config_file(), trust.workspace / WORKSPACE_FILE
    if not arguments.json:
        sys.stderr.write(f"Your own file: {own}{'' if own.exists() else ' (does not exist yet)'}\n")
        if workspace.exists() and not trust.trusted:
            how = f"`{trust_command(trust.workspace)}`"
            sys.stderr.write(f"Not used: {shown_path(str(workspace))}. It applies only in a trusted workspace: {how}\n")
    return 0


def _print(lines: "Sequence[SettingLine]", *, as_json: bool) -> None:

    for line in lines:
        if as_json:
            sys.stdout.write(f"{msgspec.json.encode(line).decode()}\n")
        else:
            sys.stdout.write(f"{line.key} = {msgspec.json.encode(line.value).decode()}  ({line.origin})\n")
