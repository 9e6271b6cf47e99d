"""Which hosts the commands of a session reach: by settings and rules, by what was answered before, or by a question."""

import asyncio
import os
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from urllib.parse import unquote, urlsplit

from msgspec import Struct, structs

from treadle.app.config.sections import NetworkSettings
from treadle.app.session.commands.callers import Caller, Callers
from treadle.app.session.commands.network_settings import CurrentNetwork
from treadle.engine.ports import Judge
from treadle.policy.allowances import rule_id, rule_of
from treadle.policy.urls import matches_host
from treadle.protocol.errors import ConfigError, ToolError
from treadle.protocol.permissions import COMMAND_HOSTS, Allowance, AllowScope, Decision, Mode, Standing, Verdict
from treadle.protocol.reasons import words_of_decision
from treadle.protocol.tools import FetchUrl, Right, SandboxDenial
from treadle.tools.declarations import EXECUTE_COMMAND
from treadle.workspace.commands.confinement import Remark, Setup
from treadle.workspace.files.text import visible
from treadle.workspace.namespaces.dns_names import SECONDS, registered
from treadle.workspace.namespaces.listeners import CommandServers
from treadle.workspace.namespaces.network_broker import CarriedConnection
from treadle.workspace.network.checked_addresses import HostPort, connect_checked, resolve_host

RESOLVER = "/etc/resolv.conf"
RESOLVED_BY_TREADLE = "nameserver 127.0.0.1\noptions timeout:30 attempts:2\n"
"""The answer to a look-up may take as long as a person takes to answer: Treadle's own patience is shorter."""

_MOST_NAMED = 3
_MOST_REMARKS = 10
_LONG = 8.0  # seconds after which some programs have given up
_DIAL_SECONDS = 10.0
_LONGEST_LINE = 80
_TOGETHER = (
    frozenset({"pypi.org", "files.pythonhosted.org"}),
    frozenset({"crates.io", "index.crates.io", "static.crates.io"}),
    frozenset({"proxy.golang.org", "sum.golang.org"}),
    frozenset({"rubygems.org", "index.rubygems.org"}),
    frozenset({"deb.debian.org", "security.debian.org"}),
    frozenset({"archive.ubuntu.com", "security.ubuntu.com"}),
    frozenset({"github.com", "codeload.github.com", "objects.githubusercontent.com", "raw.githubusercontent.com"}),
)
"""Hosts of one service, which no one of them works without (November 2026)."""

_ONE_RETRY = {
    "PIP_RETRIES": "1",
    "UV_HTTP_RETRIES": "1",
    "CARGO_NET_RETRY": "1",
    "npm_config_fetch_retries": "1",
    "npm_config_fetch_retry_mintimeout": "1000",
}
"""A refusal is final: what tries again and again only takes time."""

_HTTP = 80
_LEFT_RUNNING = "a program that its command left running cannot ask. Run it as a command in the background."
_WAYS = (
    "The user can allow it: with the setting network.allow, or by a yes to a command whose `needs` name it, as in "
    "network:HOST."
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


class HostOutcome(Struct, frozen=True):
    """What was decided of a host, after so many `seconds`; `why` is empty for a yes.

    `open`: it was refused since nobody answered, so that a person may still be asked afterwards.
    """

    why: str = ""
    open: bool = False
    seconds: float = 0.0

    @property
    def allowed(self) -> bool:
        """Whether it may be reached."""
        return not self.why


class HostNotes:
    """What came of what one command looked up."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._room = _MOST_REMARKS
        self._outcomes: dict[str, HostOutcome] = {}
        self._troubles: dict[str, str] = {}

    def note(self, host: str, outcome: HostOutcome) -> None:
        """Note what was decided of a host."""
        self._outcomes[host] = outcome

    def fail(self, host: str, why: str) -> None:
        """Note why there was no connection to a host that the command looked up."""
        if host in self._outcomes:
            self._troubles.setdefault(host, why)

    def missing(self, output: str, find_denial: Callable[[str], SandboxDenial | None]) -> SandboxDenial | None:
        """Say which right the command lacked when it failed: of what a person refused, they are not asked again."""
        found = find_denial(output)
        if found is not None and found.right is not Right.NETWORK:
            return found
        refused = {host: one for host, one in self._outcomes.items() if not one.allowed}
        unanswered = [host for host, one in refused.items() if one.open]
        if unanswered:
            return SandboxDenial(right=Right.NETWORK, target=", ".join(unanswered[:_MOST_NAMED]))
        return None if refused or self._troubles else found

    def remarks(self) -> list[Remark]:
        """Say once what was refused, what failed outside, and what was allowed late."""
        texts = {host: f"Network: {why}" for host, why in self._troubles.items()}
        for host, one in self._outcomes.items():
            if not one.allowed:
                texts[host] = f"Network: {host} was refused: {one.why}"
            elif one.seconds > _LONG:
                texts[host] = f"Network: {host} was allowed after {one.seconds:.0f} s. What did not wait can run again."
        new = [text for host, text in texts.items() if host not in self._told]
        self._told.update(texts)
        listed, self._room = new[: self._room], max(0, self._room - len(new))
        more = [f"Network: {len(new) - len(listed)} more hosts are not listed."] if len(new) > len(listed) else []
        return list(map(Remark, (*listed, *more)))


class HostDecisions:
    """Decides for one session, for the programs of its `callers`. `servers` finds who looks a name up."""

    def __init__(
        self,
        settings: CurrentNetwork,
        callers: Callers,
        servers: CommandServers,
        *,
        judge: Judge,
        standing: Callable[[], Standing],
        tell: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._callers = callers
        self._servers = servers
        self._judge = judge
        self._standing = standing
        self._tell_user = tell
        self._refused: dict[str, HostOutcome] = {}
        self._by_rules: set[str] = set()
        self._kept: set[str] = set()  # by an answer that could not be written down
        self._once: dict[Caller, frozenset[str]] = {}
        self._decided: dict[tuple[str, Mode], float] = {}
        self._apart = False
        self._notes: dict[Caller, HostNotes] = {}

    def serve(self, setup: Setup, caller: Caller) -> Setup:
        """Have a command's look-ups decided on, and told of with its result."""
        self._notes = {caller: notes for caller, notes in self._notes.items() if not caller.ended}
        notes = HostNotes()
        setup = self._callers.enter(setup, caller, notes.remarks)
        self._notes[caller] = notes
        return structs.replace(
            setup,
            variables={**_without_proxies(os.environ), **_ONE_RETRY, **setup.variables},
            find_denial=partial(notes.missing, find_denial=setup.find_denial),
        )

    async def decide(self, host: str, port: int) -> bool:
        """Decide whether a host may be reached that the program asks for which has this port of UDP."""
        clock = asyncio.get_running_loop().time
        key = host, self._standing().mode
        if clock() - self._decided.get(key, -SECONDS) < SECONDS and self.is_open(host):
            return True
        caller: Caller | None = None
        try:
            caller = await asyncio.to_thread(self._caller_of, port)
            found = await self._decide(host, caller)
        except Exception as error:  # noqa: BLE001 - a program without an answer waits for a minute, and nobody reads why
            found = HostOutcome(f"it could not be decided on ({type(error).__name__}: {error}).", open=True)
        # Where it cannot be seen whose look-up it is, each of those that run is told.
        for one in self._callers.living if caller is None else (caller,):
            if one in self._notes:
                self._notes[one].note(host, found)
        if found.allowed and self._lasts(host):
            self._decided[key] = clock()
        return found.allowed

    def is_open(self, host: str) -> bool:
        """Whether a host that was allowed still is: for the session, or for a command that runs."""
        return self._lasts(host) or any(host in hosts for one, hosts in self._once.items() if not one.ended)

    def _lasts(self, host: str) -> bool:
        settings = self._settings()
        if matches_host(host, settings.deny):
            return False
        answered = host in self._kept or self._allowed_for_session(host)
        return answered or host in self._by_rules or matches_host(host, settings.allow)

    def _allowed_for_session(self, host: str) -> bool:
        return any(one.tool == COMMAND_HOSTS and one.host == host for one in self._standing().allowances)

    async def _decide(self, host: str, caller: Caller | None) -> HostOutcome:
        """Decide: what forbids it counts whatever was answered before, as in plan mode."""
        settings = await asyncio.to_thread(self._settings)
        self._by_rules.discard(host)
        if matches_host(host, settings.deny):
            return HostOutcome("the setting network.deny names it.")
        access = FetchUrl(url=f"https://{host}/")
        line = "" if caller is None else caller.line
        decision = await asyncio.to_thread(self._judge, EXECUTE_COMMAND, {"command": line}, (access,), self._standing())
        if decision.verdict is Verdict.DENY:
            return HostOutcome(f"{words_of_decision(decision).headline}.")
        if decision.verdict is Verdict.ALLOW:
            self._by_rules.add(host)
        if self._lasts(host) or (caller is not None and host in self._once.get(caller, ())):
            return HostOutcome()
        if (refused := self._refused.get(host)) is not None:
            return refused
        if caller is None:
            return HostOutcome(f"{_LEFT_RUNNING} {_WAYS}", open=True)
        return await self._ask(host, caller, decision, settings)

    async def _ask(self, host: str, caller: Caller, decision: Decision, settings: NetworkSettings) -> HostOutcome:
        clock = asyncio.get_running_loop().time
        begun = clock()
        hosts, of_needs = self._with(host, settings)
        reply = await self._callers.ask(
            caller, _question(hosts, caller, decision, of_needs=of_needs), tuple(map(_offer, hosts))
        )
        if not reply.why:
            await self._take(reply.scope, hosts, caller)
            return HostOutcome(seconds=clock() - begun)
        found = HostOutcome(
            f"{reply.why}.{' Do not try another way.' if reply.final else f' {_WAYS}'}", open=reply.open
        )
        if reply.final and self._standing().mode is not Mode.PLAN:
            self._refused[host] = found
            self._apart = self._apart or of_needs  # whoever wants some of them only is asked about each
        return found

    async def _take(self, scope: AllowScope | None, hosts: Sequence[str], caller: Caller) -> None:
        """Take a yes: for this command, or write it down; one for the session is among what the session allows."""
        if scope is None:
            self._once = {one: known for one, known in self._once.items() if not one.ended}
            self._once[caller] = self._once.get(caller, frozenset()).union(hosts)
        elif scope is AllowScope.USER:
            try:
                said = await asyncio.to_thread(self._settings.allow, hosts)
            except (ConfigError, OSError) as error:
                self._kept.update(hosts)
                why = f"{error.what} {error.why}" if isinstance(error, ConfigError) else str(error)
                said = (
                    f"Your settings could not be written, so {', '.join(hosts)} can be reached in this session. {why}"
                )
            self._tell_user(said)

    def _with(self, host: str, settings: NetworkSettings) -> tuple[tuple[str, ...], bool]:
        """Give a host with those that it does not work without, and whether settings name these as needed."""
        of_needs = host in settings.needs and not self._apart
        group = set(settings.needs) if of_needs else set()
        group |= next((hosts for hosts in _TOGETHER if host in hosts), frozenset())
        known = self._refused.keys() | {one for one in group if self._lasts(one)}
        others = sorted(one for one in group - {host} - known if not matches_host(one, settings.deny))
        return (host, *others), of_needs and len(others) > 0

    def _caller_of(self, port: int) -> Caller | None:
        return self._callers.of(self._servers.asker(port))

    async def dial(self, host: str, port: int) -> CarriedConnection:
        """Connect to a host outside, by the person's proxy if they have one. Raises `OSError` and `ToolError`."""
        try:
            return await _dial(host, port)
        except (OSError, ToolError, TimeoutError) as error:
            self.tell(
                host, error.text if isinstance(error, ToolError) else f"{host}:{port} cannot be connected to: {error}"
            )
            raise

    def tell(self, host: str, why: str) -> None:
        """Say with the results of the commands that looked a host up why a connection to it was ended."""
        for notes in tuple(self._notes.values()):
            notes.fail(host, why)


def _question(hosts: Sequence[str], caller: Caller, decision: Decision, *, of_needs: bool) -> str:
    """Ask about a host: what somebody registered comes first, as the rest can be named to deceive."""
    host, *others = hosts
    owner = registered(host)
    named = [host if owner == host else f"{owner} ({host})", *others]
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if others else named[0]
    words = words_of_decision(decision)
    # That a host is connected to is the question itself; another reason says more.
    because = "" if words.rule == "fetch-url" else f" ({visible(words.headline)})"
    why = " The settings of this project, or yours, say that they are needed." if of_needs else ""
    return f"Let commands connect to {listed}{because}?{why} Looked up by: {caller.shown}"


def _offer(host: str) -> Allowance:
    named = Allowance(id="", tool=COMMAND_HOSTS, host=host)
    return structs.replace(named, id=rule_id(rule_of(named)))


def _without_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Unset what names a proxy of the person's, which cannot be reached from inside: Treadle uses it for them."""
    names = (*_PROXIES, *map(str.lower, _PROXIES))
    return {name: "" for name in names if environment.get(name)}


async def _dial(host: str, port: int) -> CarriedConnection:
    from urllib.request import getproxies, proxy_bypass  # which loads much

    proxy = "" if proxy_bypass(host) else getproxies().get("http" if port == _HTTP else "https", "")
    if proxy:
        return await dial_by(proxy, host, port)
    return await connect_checked(HostPort(host, port), resolve_host, private=False)


async def dial_by(proxy: str, host: str, port: int) -> CarriedConnection:
    """Connect to a host through an HTTP proxy, which resolves its name. Raises `OSError` and `ToolError`."""
    parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    secure = parts.scheme == "https"
    async with asyncio.timeout(_DIAL_SECONDS):
        reader, writer = await asyncio.open_connection(
            parts.hostname, parts.port or (443 if secure else 80), ssl=True if secure else None
        )
    try:
        who = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        proof = f"Proxy-Authorization: Basic {b64encode(who.encode()).decode()}\r\n" if parts.username else ""
        writer.write(f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{proof}\r\n".encode())
        async with asyncio.timeout(_DIAL_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise ToolError(f"your proxy does not answer for {host}:{port}. Check it, or tell the user.") from error
    except BaseException:
        writer.close()
        raise
    status = head.split(b" ", 2)[1:2]
    if status != [b"200"]:
        writer.close()
        said = visible(head.partition(b"\r\n")[0].decode("latin-1"))[:_LONGEST_LINE]
        raise ToolError(f"your proxy does not connect to {host}:{port}: {said}. Check the host, or tell the user.")
    return reader, writer
