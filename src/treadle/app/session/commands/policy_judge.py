"""What binds the policy to a session: the judge of its calls, and of git's calls in the middle of a command."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from treadle.app.config.sections import NetworkSettings
from treadle.app.security.policy_files import PolicyFiles
from treadle.app.session.commands.confined_commands import ConfinedCommands
from treadle.app.session.parts import Parts
from treadle.engine.ports import Judge
from treadle.protocol.permissions import Decision, Standing
from treadle.protocol.tools import Access, ToolSpec
from treadle.workspace.workspace import Workspace

if TYPE_CHECKING:
    from treadle.app.servers.session_servers import SessionServers
    from treadle.app.session.commands.network_settings import CurrentNetwork
    from treadle.policy.secrets import Redactor


async def answer_commands(
    commands: ConfinedCommands,
    workspace: Workspace,
    *,
    network: NetworkSettings,
    judge: Judge,
    now: Callable[[], Standing],
    tell: Callable[[str], None],
) -> None:
    """Have what commands want in the middle judged: calls of git, and connections. `tell` tells the user."""
    from treadle.app.session.commands.git_calls import GitCalls

    git = GitCalls(workspace, judge, now, commands.callers, note=commands.note)
    await commands.answer_git(git, workspace.launcher.variables)
    await commands.serve_network(network, judge, tell)


def policy_judge(
    parts: Parts,
    files: PolicyFiles,
    redactor: "Callable[[], Redactor]",
    *,
    servers: "SessionServers | None",
    own_ports: Callable[[], frozenset[int]],
) -> Judge:
    """Bind the policy to a session; it is loaded with the first call that is judged, after the first request.

    To judge starts no program, and changes nothing.
    """
    root, trusted = str(parts.trust.workspace), parts.trust.lets_code_run
    approved = frozenset(parts.settings.approve).difference(parts.trust.unapproved)
    child = parts.brought.child
    keeps = parts.settings.checkpoints.enabled if child is None else child.keeps

    @cache
    def current() -> "CurrentNetwork":
        from treadle.app.session.commands.network_settings import CurrentNetwork

        return CurrentNetwork(parts.settings.network)

    def judge(spec: ToolSpec, arguments: Mapping[str, Any], accesses: Sequence[Access], standing: Standing) -> Decision:
        from treadle.app.security.confining import confining_here
        from treadle.app.security.shell_syntax import refuse_broken_shell
        from treadle.app.session.commands.judging import policy_context
        from treadle.policy.allowances import decide_and_offer, with_allowances
        from treadle.policy.disclosure import asked_for_secrets

        allowances, unapproved = standing.allowances, frozenset[str]()
        if servers is not None:
            spec, arguments = servers.meant(spec, arguments)
            allowances, unapproved = (*allowances, *servers.allowances()), servers.unapproved()
        context = policy_context(
            root,
            standing,
            trusted=trusted,
            never_asked=parts.trust.never_asked,
            further=parts.roots,
            confining=confining_here(try_first=parts.settings.try_first, keeps=keeps),
            approved=approved,
            rules=with_allowances(files.ruleset(), allowances),
            unapproved=unapproved,
            own_ports=own_ports,
            hook_files=parts.trust.hook_files,
        )
        network = current()()
        context = replace(context, open_hosts=network.allow, denied_hosts=network.deny)
        decision = decide_and_offer(spec, arguments, accesses, context)
        refuse_broken_shell(decision, accesses)
        return asked_for_secrets(decision, spec, arguments, redactor())

    return judge
