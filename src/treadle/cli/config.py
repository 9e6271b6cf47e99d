"""Show each setting that counts and where it comes from; set one in your own file."""

import argparse
import sys

from treadle.cli import work


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    work.add_settings(parser)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    verbs = parser.add_subparsers(dest="verb", metavar="set")
    setter = verbs.add_parser("set", help="set a value in your own settings file; comments stay")
    setter.add_argument("key", help='such as model, modes.plan.model or models."a/b".context_window')
    setter.add_argument("value", help="the value")


def execute(arguments: argparse.Namespace) -> int:
    """Print the settings, or set one."""
    if arguments.verb == "set":
        from treadle.app.config.edit import set_value

        sys.stdout.write(f"Saved in {set_value(arguments.key, arguments.value)}.\n")
        return 0
    return _show(arguments)


def _show(arguments: argparse.Namespace) -> int:
    import msgspec

    from treadle.app.config.settings import WORKSPACE_FILE, read_layers
    from treadle.app.places import config_file
    from treadle.app.reports.origins import setting_lines
    from treadle.app.security.trusting import session_trust, shown, trust_command, trusted_by_variable

    folder = arguments.directory.expanduser().resolve()
    trust = session_trust(folder, once=arguments.trust or trusted_by_variable())
    layers = read_layers(work.flags(arguments), workspace=trust.workspace, trusted=trust.trusted)
    for line in setting_lines(layers):
        if arguments.json:
            sys.stdout.write(f"{msgspec.json.encode(line).decode()}\n")
        else:
            sys.stdout.write(f"{line.key} = {msgspec.json.encode(line.value).decode()}  ({line.origin})\n")
    own, workspace = config_file(), trust.workspace / WORKSPACE_FILE
    if not arguments.json:
        sys.stderr.write(f"Your own file: {own}{'' if own.exists() else ' (does not exist yet)'}\n")
        if workspace.exists() and not trust.trusted:
            how = f"`{trust_command(trust.workspace)}`"
            sys.stderr.write(f"Not used: {shown(str(workspace))}, which counts only in a trusted workspace: {how}\n")
    return 0
