"""What a folder's own rule file would let run without asking, once the folder is trusted: shown before the yes."""

from collections.abc import Iterator, Sequence

from treadle.app.security.policy_files import PROJECT_FILE
from treadle.app.security.policy_show import RuleLine, read_policy
from treadle.app.security.trusted_servers import server_lines
from treadle.policy.rules import Scope
from treadle.store.trusted_folders import Trust
from treadle.workspace.files.text import visible_name


def allow_rules(trust: Trust) -> Sequence[RuleLine]:
    """Give the folder's rules that allow; they count only after trust. Only files are read."""
    if not (trust.workspace / PROJECT_FILE).exists():
        return ()
    rules = read_policy(trust.workspace, trusted=True).rules
    return tuple(rule for rule in rules if rule.scope is Scope.PROJECT and rule.verdict == "allow" and rule.in_force)


def allow_lines(trust: Trust) -> Iterator[str]:
    """List these rules: what they match in full, and where they stand; and the servers that would be started."""
    for rule in allow_rules(trust):
        yield f"  allow  {visible_name(f'{rule.matches}  [{rule.source}]')}"
    yield from server_lines(trust)
