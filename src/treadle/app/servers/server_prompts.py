"""Prompts of servers, which a person enters as `/server:prompt`: which there are is kept from when they were listed."""

import shlex
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from treadle.app.config.places import data_directory
from treadle.app.security.trusting import SessionTrust
from treadle.app.servers.configured import configured_servers
from treadle.app.servers.identity import identity_of
from treadle.mcp.states import DeclaredPrompt
from treadle.protocol.errors import ToolError
from treadle.workspace.files.private_file import write_private


def prompts_folder() -> Path:
    """Where the prompts of servers are kept."""
    return data_directory() / "mcp" / "prompts"


def keep_prompts(identity: str, prompts: Sequence[DeclaredPrompt]) -> None:
    """Keep which prompts a server has. Raises `OSError`."""
    if prompts or _file(identity).exists():
        write_private(_file(identity), msgspec.json.encode(list(prompts)), follow=False)


def kept_prompts(trust: SessionTrust) -> Iterator[tuple[str, DeclaredPrompt]]:
    """Give the prompts of the servers that are configured for a folder, each with the name of its server."""
    if not prompts_folder().is_dir():
        return
    for one in configured_servers(trust).servers:
        if one.problem or not one.server.enabled:
            continue
        try:
            content = _file(identity_of(one.server, one.origin, trust.workspace)).read_bytes()
            prompts = msgspec.json.decode(content, type=list[DeclaredPrompt])
        except (OSError, msgspec.MsgspecError):
            continue
        yield from ((one.server.name, prompt) for prompt in prompts)


def wanted_argument(prompt: DeclaredPrompt, said: str) -> tuple[str, str, dict[str, str]] | None:
    """Say which argument the last word belongs to: its name, what is written of it, and the arguments before it.

    None where there is none.
    """
    before, _, word = said.rpartition(" ")
    names = [name for name, _ in prompt.arguments]
    try:
        given = filled_arguments(prompt, before, partly=True)
    except ToolError:
        return None
    name, mark, value = word.partition("=")
    if not (mark and name in names):
        free = [one for one in names if one not in given]
        if not free:
            return None
        name, value = free[0], word
    return name, value.strip("'\""), {one: text for one, text in given.items() if one != name}


def filled_arguments(prompt: DeclaredPrompt, said: str, *, partly: bool = False) -> dict[str, str]:
    """Give a prompt its arguments: words in its order, the last one all that is left, or `name=value`.

    Raises `ToolError` where one is missing, but for those that are `partly` written.
    """
    names = [name for name, _ in prompt.arguments]
    try:
        words = shlex.split(said)
    except ValueError:
        words = said.split()
    named = {name: value for name, mark, value in (word.partition("=") for word in words) if mark and name in names}
    plain = [word for word in words if word.partition("=")[0] not in named]
    free = [name for name in names if name not in named]
    given = dict(zip(free, plain, strict=False))
    if len(plain) > len(free) > 0:
        given[free[-1]] = " ".join(plain[len(free) - 1 :])
    missing = [name for name, needed in prompt.arguments if needed and name not in {**named, **given}]
    if missing and not partly:
        raise ToolError(f"It needs {', '.join(missing)}. Write them after its name.")
    return {**given, **named}


def _file(identity: str) -> Path:
    return prompts_folder() / f"{sha256(identity.encode()).hexdigest()[:32]}.json"
