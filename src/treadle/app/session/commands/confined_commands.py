"""How the commands of one session are set up; what that takes is loaded with the first command."""

import asyncio
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from treadle.app.config.places import data_directory
from treadle.app.config.sections import NetworkSettings
from treadle.app.security.trusting import SessionTrust
from treadle.app.session.files.roots import Roots
from treadle.engine.ports import Judge
from treadle.protocol.permissions import Mode, Standing
from treadle.protocol.tools import CallResult, Confinement, CopyChanges, Right, Rights
from treadle.workspace.commands.variables import find_outside
from treadle.workspace.searching.search import find_ripgrep

_PROGRAMS = "/tmp/.treadle-programs"  # noqa: S108 - the session's own

if TYPE_CHECKING:
    from treadle.app.security.command_folders import CommandFolders
    from treadle.app.security.trial_copies import Copies
    from treadle.app.session.commands.callers import Callers, GitCallRisks
    from treadle.app.session.commands.host_decisions import HostDecisions
    from treadle.app.session.commands.own_ports import OwnPorts
    from treadle.policy.decision_context import PolicyContext
    from treadle.policy.rules import Ruleset
    from treadle.workspace.commands.confinement import Setup
    from treadle.workspace.namespaces.git_broker import GitBroker, RunGit
    from treadle.workspace.namespaces.listeners import CommandServers
    from treadle.workspace.namespaces.network_broker import NetworkBroker
    from treadle.workspace.namespaces.session_space import SessionNamespaces


class ConfinedCommands:
    """The commands of a session in a folder that the user trusts or not; `private` is its place in Treadle's data."""

    def __init__(
        self,
        *,
        trust: SessionTrust,
        roots: Roots,
        private: Path,
        gpu: bool,
        standing: Callable[[], Standing],
        rules: "Callable[[], Ruleset]",
    ) -> None:
        self._root = str(trust.workspace)
        self._trust = trust
        self._roots = roots
        self._private = private
        self._gpu = gpu
        self._standing = standing
        self._rules = rules
        self._broker: GitBroker | None = None
        self._asked = False
        self._callers: Callers | None = None
        self._ports: OwnPorts | None = None
        self._hosts: HostDecisions | None = None
        self._tell: Callable[[str], None] = lambda _: None
        self._networks: dict[SessionNamespaces, NetworkBroker] = {}

    @cached_property
    def _place(self) -> "CommandFolders":
        from treadle.app.security.command_confinement import recover_control_files
        from treadle.app.security.command_folders import CommandFolders
        from treadle.workspace.commands.meter import remove_left_groups
        from treadle.workspace.gpus import gpu_devices
        from treadle.workspace.namespaces.session_space import SessionNamespaces

        found = CommandFolders(
            root=self._root,
            roots=self._roots.folders,
            data=data_directory(),
            private=self._private,
            hook_files=self._trust.hook_files,
            namespaces=SessionNamespaces(),
            plan_namespaces=SessionNamespaces(),
            devices=gpu_devices() if self._gpu else (),
        )
        found.known.notes += recover_control_files(found.data)
        found.known.tell = self._tell_user
        remove_left_groups()
        return found

    def _tell_user(self, text: str) -> None:
        self._tell(text)

    def set_up(
        self, line: str, rights: Rights, *, background: bool = False, cwd: str = "", of_git: bool = False
    ) -> "Setup":
        """Set up the run of a line under its rights, in a folder of the workspace; looks at the disk.

        In what is `of_git` no call of git comes to Treadle: it would come back as the call that it is of. Raises
        `ToolError`.
        """
        from dataclasses import replace

        from treadle.app.security.command_confinement import confine

        context = self._context()
        broker = None if of_git or context.mode is Mode.PLAN else self._broker
        rights, judged = self._by_each_call(line, rights, context, cwd) if broker else (rights, {})
        placed = self._ripgrep
        networked = self._serves(context.mode) and not _opens_network(rights)
        if networked:
            placed += self._resolver
        if broker is not None and rights.confinement is Confinement.WORK:
            placed += broker.mounts
        found = confine(line, rights, replace(self._place, placed=placed), context, background=background, cwd=cwd)
        caller = self.callers.caller(line, judged)
        if networked and self._hosts is not None and found.wrapping.joins:
            found = self._hosts.serve(found, caller)
        else:
            found = self.callers.enter(found, caller)
        if not self._ripgrep or not found.wrapping.joins:
            return found
        path = found.variables.get("PATH", os.environ.get("PATH", os.defpath))
        return structs.replace(found, variables={**found.variables, "PATH": f"{path}{os.pathsep}{_PROGRAMS}"})

    def _by_each_call(
        self, line: str, rights: Rights, context: "PolicyContext", cwd: str
    ) -> "tuple[Rights, GitCallRisks]":
        """Run a line of git where each call goes to Treadle, which writes the settings and looks at what is committed.

        So it does where the line has such calls. Gives also the calls of the line, which were allowed with it.
        """
        if rights.confinement is not Confinement.GIT:
            return rights, {}

        from treadle.policy.classify import classify_command
        from treadle.policy.findings import when_confined, worst
        from treadle.workspace.namespaces.git_settings import setting_write
        from treadle.workspace.sandbox import is_known_only_as_it_runs

        parts = [one for one in classify_command(line, cwd or self._root, context).parts if one.argv[:1] == ("git",)]
        calls = {one.argv[1:]: worst(when_confined(one.findings, brokers=True, opened=frozenset())) for one in parts}
        if not (any(map(setting_write, calls)) or is_known_only_as_it_runs([one.argv for one in parts])):
            return rights, {}
        return structs.replace(rights, confinement=Confinement.WORK), calls

    @cached_property
    def _ripgrep(self) -> tuple[tuple[str, str], ...]:
        """Say where commands find the program that searches, where the system has none; nothing else is ours there."""
        found = "" if shutil.which("rg") else find_ripgrep(os.environ)
        return ((f"{_PROGRAMS}/rg", os.path.realpath(found)),) if found else ()

    @property
    def callers(self) -> "Callers":
        """The commands that run."""
        if self._callers is None:
            from treadle.app.session.commands.callers import Callers

            self._callers = Callers(self._standing)
        return self._callers

    @cached_property
    def _resolver(self) -> tuple[tuple[str, str], ...]:
        """Say where programs read who answers look-ups; where there is no such file they ask this machine anyway."""
        from treadle.app.session.commands.host_decisions import RESOLVED_BY_TREADLE, RESOLVER
        from treadle.workspace.files.private_file import write_private

        if not Path(RESOLVER).exists():
            return ()
        file = self._private / "resolv.conf"
        write_private(file, RESOLVED_BY_TREADLE.encode(), mode=0o644)
        return ((os.path.realpath(RESOLVER), str(file)),)

    def _serves(self, mode: Mode) -> bool:
        shared = self._place.shared(mode)
        network = None if shared is None else self._networks.get(shared)
        return network is not None and network.serves

    async def serve_network(self, settings: NetworkSettings, judge: Judge, tell: Callable[[str], None]) -> None:
        """Have the look-ups of commands decided on, where they can be; before each command, as all may have ended."""
        from treadle.app.security.confining import brokers_git
        from treadle.app.session.commands.host_decisions import HostDecisions
        from treadle.app.session.commands.network_settings import CurrentNetwork
        from treadle.workspace.namespaces.network_broker import NetworkBroker

        self._tell = tell
        mode = self._standing().mode
        if mode is Mode.FULL or not await asyncio.to_thread(brokers_git):
            return
        shared = await asyncio.to_thread(lambda: self._place.shared(mode))
        if shared is None:
            return
        if self._hosts is None:
            current = await asyncio.to_thread(CurrentNetwork, settings)
            self._hosts = HostDecisions(
                current, self.callers, self.servers(), judge=judge, standing=self._standing, tell=tell
            )
        if shared not in self._networks:
            self._networks[shared] = NetworkBroker(
                shared,
                self._hosts.decide,
                self._hosts.dial,
                tell=self._hosts.tell,
                is_open=self._hosts.is_open,
                machine_ports=() if mode is Mode.PLAN else settings.loopback_ports,
            )
        await self._networks[shared].open()

    async def answer_git(self, run: "RunGit", given: Mapping[str, str]) -> None:
        """Have what commands call git for judged and run by `run`, where it can be: once, before the first command.

        `given` is the environment that they have, and git as well.
        """
        if not self._asked:
            self._asked = True
            broker = await asyncio.to_thread(self._found_broker, run, given)
            if broker is not None:
                with suppress(OSError):  # then git finds the repository read-only, as without one
                    broker.open()
                    self._broker = broker

    def note(self, text: str) -> None:
        """Have something said with the next result of a command."""
        self._place.known.notes.append(text)

    def _found_broker(self, run: "RunGit", given: Mapping[str, str]) -> "GitBroker | None":
        from treadle.app.security.confining import brokers_git
        from treadle.workspace.namespaces.git_broker import GitBroker

        git = find_outside("git", self._root, *self._roots.folders)
        if not git or not brokers_git():
            return None
        return GitBroker(self._private / "broker", os.path.realpath(git), run, given)

    def set_up_hook(self, line: str, readable: Sequence[str], writable: Sequence[str], *, aside: bool) -> "Setup":
        """Set up the run of a hook, which may change the workspace, and more that it may read and write.

        What it changes `aside` is thrown away: that is in a copy of its own, beside the one that waits for an answer.
        """
        from treadle.app.security.command_confinement import FurtherAccess, confine
        from treadle.app.security.trial_copies import Copies

        copies = Copies() if aside else None
        access = FurtherAccess(readable=tuple(readable), writable=tuple(writable), copies=copies)
        rights = Rights(confinement=Confinement.LOOK if aside else Confinement.WORK)
        found = confine(line, rights, self._place, self._context(), background=not aside, access=access)
        return found if copies is None else structs.replace(found, changes=partial(_thrown_away, copies))

    def servers(self) -> "CommandServers":
        """Give what finds the servers that the commands run: in plan mode, those of plan mode."""
        from treadle.workspace.namespaces.listeners import CommandServers

        return CommandServers(self._namespaces)

    def ports(self, loop: asyncio.AbstractEventLoop) -> "OwnPorts":
        """Give the ports on which commands listen, for a person; `loop` is that of the session."""
        if self._ports is None:
            from treadle.app.session.commands.own_ports import OwnPorts

            self._ports = OwnPorts(self.servers, loop)
        return self._ports

    def _namespaces(self) -> "SessionNamespaces | None":
        if "_place" not in self.__dict__:
            return None
        return self._place.shared(self._standing().mode)

    def _context(self) -> "PolicyContext":
        from treadle.app.session.commands.judging import policy_context

        return policy_context(
            self._root,
            self._standing(),
            trusted=self._trust.lets_code_run,
            never_asked=self._trust.never_asked,
            further=self._roots,
            rules=self._rules(),
            hook_files=self._trust.hook_files,
        )

    async def keep(self, digest: str, /) -> CallResult:
        """Apply what a command changed in its throw-away copy. Raises `ToolError`."""
        return await asyncio.to_thread(self._place.known.copies.keep, digest)

    async def close(self) -> None:
        """Throw away what waits for an answer that will not come, and end what the commands left behind."""
        for network in self._networks.values():
            await network.close()
        if self._ports is not None:
            await self._ports.close()
        if self._broker is not None:
            await self._broker.close()
        if "_place" in self.__dict__:
            await asyncio.to_thread(self._place.known.copies.throw_away)
            for shared in (self._place.namespaces, self._place.plan_namespaces):
                if shared is not None:
                    shared.close()


def _thrown_away(copies: "Copies", output: str, *, failed: bool) -> CopyChanges:  # noqa: ARG001 - as what is read
    """Throw a copy away, whatever was changed in it."""
    copies.throw_away()
    return CopyChanges()


def _opens_network(rights: Rights) -> bool:
    """Whether a command has the network of the system, or is not confined at all."""
    return rights.confinement is Confinement.OPEN or any(one.right is Right.NETWORK for one in rights.granted)


def recover_changes() -> list[str]:
    """Finish with the throw-away copies that killed processes left; gives what a person should know of it."""
    data = data_directory()
    if not (data / "copies").is_dir():
        return []
    from treadle.workspace.copies import recover_copies

    return [one.text for one in recover_copies(data)]
