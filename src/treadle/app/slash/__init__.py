"""The slash commands as surfaces do them; what they do is loaded with the first one."""

from typing import TYPE_CHECKING

from treadle.app.session.own_commands.command_answers import wrong
from treadle.app.session.own_commands.slash_commands import find_slash

if TYPE_CHECKING:
    from treadle.app.security.trusting import SessionTrust
    from treadle.app.session.own_commands.command_answers import CommandAnswer, Handler
    from treadle.app.session.own_commands.command_files import NamedText
    from treadle.app.session.shared.access import SessionAccess


def do_command(name: str, argument: str, session: "SessionAccess") -> "CommandAnswer":
    """Do a command of the table; one that takes time is to be done in a thread. Raises `TreadleError`."""
    row = find_slash(name)
    if row is not None and (refusal := row.refusal(argument)):
        return wrong(refusal)
    handler = None if row is None else handler_of(row.name)
    return wrong(f"/{name} does not work here.") if handler is None else handler(session, argument)


def handler_of(name: str) -> "Handler | None":
    """Find what does a command; what takes its time is loaded with the first one that does."""
    from treadle.app.slash.slash_answers import QUICK

    if name in QUICK:
        return QUICK[name]
    from treadle.app.slash.reporting import REPORTS

    return REPORTS.get(name)


def named_texts(trust: "SessionTrust") -> "tuple[NamedText, ...]":
    """List what can be entered by a name besides the commands of the table; reads files."""
    from treadle.app.session.own_commands.command_files import find_texts

    return find_texts(trust)


def answer_without_session(name: str, argument: str, trust: "SessionTrust") -> str:
    """Do a command that needs neither a session nor a model; empty for one that needs them. Raises `TreadleError`."""
    match name:
        case "help" if not argument:
            from treadle.app.slash.slash_answers import help_text

            return help_text(trust)
        case "rules":
            from treadle.app.reports.rule_list import rules_command

            return rules_command(trust, argument)
        case "skills" if not argument:
            from treadle.app.reports.rule_list import skills_text

            return skills_text(trust)
        case "memory" if not argument:
            from treadle.app.reports.memory_list import memory_text

            return memory_text(trust)
        case "usage":
            from treadle.app.reports.usage_report import usage_text

            return usage_text(argument)
        case _:
            return ""
