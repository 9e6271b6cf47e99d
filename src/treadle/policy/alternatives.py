"""Which commands of a line that may not simply run would run without asking if they were called by themselves."""

from collections.abc import Iterator, Sequence
from itertools import islice

from treadle.policy.context import PolicyContext
from treadle.policy.decide import decide
from treadle.protocol.permissions import Decision, Part, Verdict
from treadle.protocol.tools import Access, RunCommand, ToolSpec

_MOST = 3
_TRIED = 8
_LONGEST = 200
_SAYS_NOTHING = frozenset(
    {"cd", "echo", "printf", "true", "false", ":", "test", "[", "[[", "export", "set", "pwd", "&"}
)
"""Commands that nobody calls for themselves."""


def run_by_themselves(
    decision: Decision, spec: ToolSpec, accesses: Sequence[Access], context: PolicyContext
) -> tuple[str, ...]:
    """Name commands of a denied or asked line that run alone; each was judged alone, so that it is true."""
    match accesses:
        case [RunCommand(command=command, cwd=cwd)] if len(decision.parts) > 1:
            pass
        case _:
            return ()
    lines = islice(dict.fromkeys(_candidates(decision.parts, command)), _TRIED)
    allowed = (line for line in lines if _runs(line, cwd, spec, context))
    return tuple(islice(allowed, _MOST))


def _candidates(parts: Sequence[Part], command: str) -> Iterator[str]:
    """Give the allowed commands that mean the same alone: the line gives them nothing but perhaps their directory."""
    first = parts[0]
    lead = f"{first.text} && " if first.text.startswith("cd ") and first.verdict is Verdict.ALLOW else ""
    if any(part.text.startswith(("cd ", "pushd ", "popd")) for part in parts[1:]):
        return
    for part in parts:
        words = part.text.split()
        before = command.partition(part.text)[0].rstrip()
        is_fed = before.endswith("|") and not before.endswith("||")
        says_something = bool(words) and words[0] not in _SAYS_NOTHING and "$" not in part.text
        if part.verdict is Verdict.ALLOW and says_something and not is_fed:
            yield f"{lead}{part.text}"


def _runs(line: str, cwd: str, spec: ToolSpec, context: PolicyContext) -> bool:
    if len(line) > _LONGEST:
        return False
    return decide(spec, {"command": line}, (RunCommand(command=line, cwd=cwd),), context).verdict is Verdict.ALLOW
