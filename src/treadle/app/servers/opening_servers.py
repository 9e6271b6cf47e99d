"""Opens the servers of a session, or of a command: what is configured becomes what is started, and how."""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from treadle import __version__
from treadle.app.config.places import data_directory
from treadle.app.security.trusting import SessionTrust
from treadle.app.servers.configured import Configured, ConfiguredServer, ServerOrigin
from treadle.app.servers.identity import identity_of, pin_book
from treadle.app.servers.server_prompts import keep_prompts
from treadle.mcp.declaring import slug_of
from treadle.mcp.hub import McpHub
from treadle.mcp.hub_ports import AskServerModel, HubPorts
from treadle.mcp.server_program import ProgramStart
from treadle.mcp.states import Exchange, ServerPlan
from treadle.protocol.errors import ConfigError
from treadle.protocol.servers import ServerTransport
from treadle.tools.images import served_image_of
from treadle.workspace.commands.confinement import Setup
from treadle.workspace.commands.variables import child_variables, path_outside
from treadle.workspace.files.private_file import make_private_folder
from treadle.workspace.installed import install_command

if TYPE_CHECKING:
    import httpx2

    from treadle.policy.secrets import Redactor


class ServersPlace(Struct, frozen=True, kw_only=True):
    """Where servers run: in which folder, how the user stands to it, and `private`, a folder for what they need."""

    trust: SessionTrust
    roots: tuple[str, ...] = ()
    private: Path
    redactor: "Callable[[], Redactor]"
    pass_on: Sequence[str] = ()


class ServersSurface(Struct, frozen=True, kw_only=True):
    """What servers tell and ask: `tell` shows a sentence, `sample` asks the model; `taken` are names in use."""

    tell: Callable[[str], object]
    taken: Mapping[str, Any] = {}
    sample: AskServerModel | None = None
    sign_in: "Callable[[ServerPlan], httpx2.Auth | None] | None" = None


def log_folder(name: str) -> Path:
    """Say where what a server says and logs is kept."""
    return data_directory() / "mcp" / "logs" / slug_of(name, {})


def open_hub(
    configured: Configured,
    place: ServersPlace,
    surface: ServersSurface,
    exchanges: Mapping[str, Exchange] | None = None,
) -> McpHub:
    """Make the hub of all servers; nothing is started yet. Raises `ConfigError` where the SDK is missing."""
    if find_spec("mcp") is None:
        raise ConfigError(
            "extra-missing",
            "MCP servers cannot be used: the extra 'mcp' is not installed.",
            fix=f"Run: {install_command('mcp')}",
        )
    plans: dict[str, ServerPlan] = {}
    for one in configured.servers:
        slug = slug_of(one.server.name, plans)
        plans[slug] = _plan(one, slug, place, (exchanges or {}).get(one.server.name))
    ports = HubPorts(
        pins=pin_book(),
        version=__version__,
        tell=surface.tell,
        read_image=served_image_of,
        redact=lambda text: place.redactor().redact(text),
        roots=(str(place.trust.workspace), *place.roots),
        taken=surface.taken,
        sample=surface.sample,
        keep_prompts=lambda plan, prompts: keep_prompts(plan.identity, prompts),
        sign_in=surface.sign_in or _sign_in,
    )
    return McpHub(tuple(plans.values()), ports)


def _plan(one: ConfiguredServer, slug: str, place: ServersPlace, exchange: Exchange | None) -> ServerPlan:
    server = one.server
    inside = server.transport is ServerTransport.INSIDE
    runs = server.transport is ServerTransport.STDIO
    problem = one.problem or ("its host does not offer it" if inside and exchange is None else "")
    return ServerPlan(
        server=server,
        slug=slug,
        identity=identity_of(server, one.origin, place.trust.workspace),
        origin=one.origin,
        log=log_folder(server.name) / "messages.log",
        vouched=one.origin is ServerOrigin.CLIENT,
        kept=not inside,
        problem=problem,
        program=partial(_program, one, place) if runs and not problem else None,
        exchange=exchange,
    )


def _program(one: ConfiguredServer, place: ServersPlace) -> ProgramStart:
    """Say how the program of a server is started; in a folder that is not trusted nothing of that is picked up."""
    from treadle.app.security.command_folders import CommandFolders
    from treadle.app.servers.server_confining import confined_server, kept_from

    server, own = one.server, one.origin is not ServerOrigin.FOLDER
    workspace, trusted = str(place.trust.workspace), place.trust.lets_code_run
    variables = {**child_variables(os.environ, place.pass_on), **server.env}
    home = os.path.expanduser  # which takes a user that there is not as it is written
    directory = home(server.cwd) if server.cwd else workspace if trusted else "/"
    if not trusted:
        variables["PATH"] = path_outside(variables.get("PATH", os.defpath), workspace, *place.roots)
    make_private_folder(place.private)
    folders = CommandFolders(
        root=workspace,
        roots=place.roots,
        data=data_directory(),
        private=place.private,
        hook_files=place.trust.hook_files,
    )

    def set_up(line: str) -> Setup:
        return confined_server(line, server, folders, trusted=trusted, own=own)

    def stopped(setup: Setup, said: str) -> str:
        return kept_from(setup, said, server, own=own)

    return ProgramStart(
        argv=(home(server.command), *server.args),
        variables=variables,
        directory=directory,
        shell=shutil.which("bash", path=path_outside(os.environ.get("PATH", os.defpath), workspace)) or "/bin/sh",
        spool=log_folder(server.name),
        set_up=set_up,
        stopped=stopped,
        hide=lambda: place.redactor().stream(),
    )


def _sign_in(plan: ServerPlan) -> "httpx2.Auth | None":
    """Give what signs in to a server that the person has signed in to; None for any other."""
    from treadle.app.servers.signing_in import signed_in

    return signed_in(plan.server)
