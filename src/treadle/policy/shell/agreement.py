"""Whether two parsers read a line alike: the own one and the grammar."""

import re

from treadle.policy.shell.grammar import grammar_commands, here_documents
from treadle.policy.shell.outline import command_names
from treadle.policy.shell.parse import parse
from treadle.policy.shell.syntax import ShellSyntaxError

_LITERAL_DOCUMENT = re.compile(r"""<<-?[ \t]*(?:'(\w+)'|"(\w+)"|\\(\w+))""")


def parsers_agree(text: str) -> bool:
    """Whether both parsers see the same commands in the same order."""
    own = _own(text)
    if own is None:
        return False
    if grammar_commands(text) == own:
        return True
    # The grammar stumbles over what follows a here-document on its line. Text that is no command need not be there.
    plain, count = _without_documents(text)
    return count > 0 and here_documents(text) == count and _own(plain) == own and grammar_commands(plain) == own


def _own(text: str) -> list[str] | None:
    try:
        return command_names(parse(text)[0])
    except ShellSyntaxError:
        return None


def _without_documents(text: str) -> tuple[str, int]:
    """Take out here-documents whose text is taken as it stands; gives the rest, and how many there were."""
    kept: list[str] = []
    open_until: list[tuple[str, bool]] = []
    count = 0
    for line in text.split("\n"):
        if open_until:
            delimiter, strips_tabs = open_until[0]
            if (line.lstrip("\t") if strips_tabs else line) == delimiter:
                open_until.pop(0)
            continue
        found = list(_LITERAL_DOCUMENT.finditer(line))
        open_until = [("".join(filter(None, match.groups())), match.group().startswith("<<-")) for match in found]
        count += len(found)
        kept.append(_LITERAL_DOCUMENT.sub("", line))
    return "\n".join(kept), count
