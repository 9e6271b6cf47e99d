"""The slash commands as surfaces do them; what they do is loaded with the first one."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from treadle.app.security.trusting import SessionTrust
    from treadle.app.session.access import SessionAccess
    from treadle.app.session.command_files import NamedText
    from treadle.app.slash.answers import CommandAnswer


def do_command(name: str, argument: str, session: "SessionAccess") -> "CommandAnswer":
    """Do a command of the table; one that takes time is to be done in a thread. Raises `TreadleError`."""
    from treadle.app.slash.answers import answer_command

    return answer_command(name, argument, session)


def named_texts(trust: "SessionTrust") -> "tuple[NamedText, ...]":
    """List what can be entered by a name besides the commands of the table; reads files."""
    from treadle.app.session.command_files import find_texts

    return find_texts(trust)
