"""Tools of servers that need a yes which nobody is here to give: they are not offered, as each call would be denied."""

from collections.abc import Callable, Iterable, Sequence

from treadle.engine.core.state import State
from treadle.engine.ports import Judge
from treadle.present.words import counted
from treadle.protocol.permissions import Standing, Verdict
from treadle.protocol.tools import ToolSpec
from treadle.workspace.files.text import visible

_WAYS = (
    "`alwaysAllow` in mcp.json (or `treadle mcp add --allow TOOL`), --allowed-tools NAME, a rule in policy.toml, or "
    "another --mode"
)


class DeniedTools:
    """Asks the policy about a call of each tool, once for all that its answer depends on."""

    def __init__(self, judge: Judge, state: Callable[[], State], rules: Callable[[], str]) -> None:
        """`rules` gives the version of the rules that count."""
        self._judge = judge
        self._state = state
        self._rules = rules
        self._key: object = None
        self._names: frozenset[str] = frozenset()

    def nobody_is_here(self) -> bool:
        """Whether nobody can say yes now."""
        return not self._state().user_present

    def names(self, specs: Sequence[ToolSpec], changes: int) -> frozenset[str]:
        """Name those of these tools whose every call would be denied now; `changes` counts those of the tools."""
        state = self._state()
        if state.user_present:
            return frozenset()
        standing = Standing(mode=state.mode, allowances=state.allowances)
        key = (changes, standing, self._rules())
        if key != self._key:
            self._key = key
            # What a server's tool touches is not known, so its arguments change nothing.
            self._names = frozenset(
                spec.name for spec in specs if self._judge(spec, {}, (), standing).verdict is not Verdict.ALLOW
            )
        return self._names


def left_out_line(counts: Iterable[tuple[str, int, int]]) -> str:
    """Say which servers' tools are left out and how to allow them: names, how many tools, how many are new.

    Where the number of tools is 0, it is not known.
    """
    found = list(counts)
    if not found:
        return ""
    named = ", ".join(
        f"{visible(name)} ({counted(count, 'tool') if count else 'not approved'})" for name, count, _ in found
    )
    new = ", ".join(f"`treadle mcp tools {visible(name)} --approve`" for name, _, new in found if new)
    approve = f" First approve them as they are: {new}." if new else ""
    return (
        f"Tools of MCP servers that are not offered: {named}. They need a yes, and nobody is here to give it.{approve} "
        f"To allow them: {_WAYS}."
    )
