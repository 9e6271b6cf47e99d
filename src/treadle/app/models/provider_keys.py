"""Keys of providers: from the environment, the system's keyring, or a file that only its owner may read."""

import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from treadle.app.config.places import config_file
from treadle.app.config.sections import ProviderSettings
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.providers.endpoint import LOOPBACK, split_url
from treadle.providers.provider_rows import ProviderRow

if TYPE_CHECKING:
    from treadle.engine.ports import Provider

_SERVICE = "treadle"
_KEYRING_SECONDS = 5.0
"""A keyring may wait for somebody to unlock it; longer than this it counts as not there."""


class ApiKey(Record, frozen=True, kw_only=True):
    """A provider's key, and where it came from in words. The value is never in its representation."""

    value: str
    origin: str

    def __repr__(self) -> str:
        """Show the origin alone."""
        return f"Key(origin={self.origin!r})"

    __str__ = __repr__


class _Stored(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file: keys by provider, and the providers whose key is in the keyring instead."""

    version: int = 1
    keys: dict[str, str] = {}
    keyring: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Show no key."""
        return f"_Stored(keys of {', '.join(self.keys)})"


def key_file() -> Path:
    """Where keys are kept when there is no keyring."""
    return config_file().with_name("auth.json")


def find_key(provider: str, variables: Iterable[str], environment: Mapping[str, str]) -> ApiKey | None:
    """Find the key of a provider: environment, then keyring, then file; None where there is none.

    The keyring is asked only for providers that `store_key` put there: it is slow to load and may ask for a password.
    Raises `ConfigError` where the file is damaged or open to others.
    """
    for name in variables:
        value = environment.get(name, "").strip()
        if value:
            return ApiKey(value=value, origin=name)
    stored = _read()
    if provider in stored.keyring:
        value = _ask(lambda backend: backend.get_password(_SERVICE, provider)) or ""
        if value:
            return ApiKey(value=value, origin="the system's keyring")
    value = stored.keys.get(provider, "")
    return ApiKey(value=value, origin=str(key_file())) if value else None


def require_key_host(row: ProviderRow, said: ProviderSettings, proof: object) -> None:
    """Raise `ConfigError` where a key, or another proof, may not go to the address that the user's settings give."""
    if said.base_url and proof is not None and split_url(said.base_url).hostname not in LOOPBACK:
        from treadle.app.config.key_hosts import key_name, require_host

        names = row.aliases if row.profile else (row.name, *row.aliases)
        require_host(names, said.base_url, f"@{row.profile}" if row.profile else key_name(said))


def store_key(provider: str, value: str) -> str:
    """Keep a key in the keyring if there is a real one, else in the file; gives the place in words."""
    _ = _read()  # nothing is stored where what is kept cannot be read
    in_keyring = _ask(lambda backend: _put(backend, provider, value))
    with _alone():
        stored = _without(provider)
        if in_keyring:
            _write(structs.replace(stored, keyring=(*stored.keyring, provider)))
        else:
            _write(structs.replace(stored, keys={**stored.keys, provider: value}))
    return "the system's keyring" if in_keyring else str(key_file())


def _alone() -> AbstractContextManager[None]:
    from treadle.workspace.files.folder_lock import alone

    return alone(key_file().parent)


def _without(provider: str) -> _Stored:
    """Read the file, and leave a provider out."""
    stored = _read()
    keys = {name: key for name, key in stored.keys.items() if name != provider}
    return structs.replace(stored, keys=keys, keyring=tuple(name for name in stored.keyring if name != provider))


def forget_key(provider: str) -> bool:
    """Remove a stored key; says whether there was one."""
    stored = _read()
    if provider not in stored.keys and provider not in stored.keyring:
        return False
    if provider in stored.keyring and not _ask(lambda backend: _delete(backend, provider)):
        raise ConfigError(
            "keyring-silent",
            f"The keyring did not return the key of {provider}.",
            why="It is locked, missing, or did not respond in time.",
            fix=f"Unlock it and try again, or remove the entry {_SERVICE}/{provider} with the keyring's own program.",
        )
    with _alone():
        _write(_without(provider))
    return True


def stored_values() -> list[tuple[str, str]]:
    """Give the keys of the file with their names, to be hidden; a keyring is not asked, and a bad file gives none."""
    try:
        return [(value, f"{provider} key") for provider, value in _read().keys.items()]
    except ConfigError:
        return []


def stored_names() -> frozenset[str]:
    """Name the providers, `anthropic`, and those of profiles, `anthropic@work`, of which a key is stored.

    A file that cannot be read gives none.
    """
    try:
        stored = _read()
    except ConfigError:
        return frozenset()
    return frozenset((*stored.keys, *stored.keyring))


def keys_stamp() -> tuple[int, ...]:
    """Give something that is another one once a key was stored or removed, also in the keyring."""
    try:
        state = key_file().stat()
    except OSError:
        return ()
    return state.st_ino, state.st_mtime_ns, state.st_size


class OpenProviders:
    """Open providers by name: each once, and again after a key was stored, by whichever program.

    A request that is under way goes on with what it began with.
    """

    def __init__(self) -> None:
        self._open: dict[str, tuple[Provider, object]] = {}
        self._replaced: list[Provider] = []

    def get(self, name: str, opening: Callable[[], "Provider"], *, keyed: bool = True) -> "Provider":
        """Give a provider; `keyed`: a stored key may be used. Raises `ConfigError` where it cannot be opened at all."""
        stamp = keys_stamp() if keyed else None
        if name not in self._open:
            self._open[name] = opening(), stamp
        provider, before = self._open[name]
        if before != stamp:
            again = provider
            with suppress(ConfigError):  # a key that was removed is used as long as the session
                again = opening()
                self._replaced.append(provider)
            self._open[name] = again, stamp
        return self._open[name][0]

    async def close(self) -> None:
        """Give back the connections of all."""
        for provider in (*self._replaced, *(one for one, _ in self._open.values())):
            await provider.close()


def check_stored() -> None:
    """Raise `ConfigError` where the file of keys is damaged or open to others."""
    _read()


def keyring_name() -> str:
    """Name the keyring in use; empty where there is no real one."""
    return _ask(lambda backend: type(backend).__module__) or ""


def _read() -> _Stored:
    file = key_file()
    try:
        if os.name == "posix" and stat.S_IMODE(file.stat().st_mode) & 0o077:
            raise ConfigError(
                "keys-exposed",
                f"Others on this machine can read the keys in {file}.",
                why="Treadle does not use keys that others can read. Assume that others know them.",
                fix=f"Run: chmod 600 {file}",
            )
        return msgspec.json.decode(file.read_bytes(), type=_Stored)
    except (FileNotFoundError, NotADirectoryError):
        return _Stored()
    except (OSError, msgspec.MsgspecError):
        # The text of a decoding error may quote the file.
        raise ConfigError(
            "keys-unreadable",
            f"The key file {file} cannot be read.",
            why="It is damaged, or its permissions are wrong. Its content is not shown.",
            fix="Correct its permissions, or remove it and store the keys again with `treadle login PROVIDER`.",
        ) from None


def _write(stored: _Stored) -> None:
    from treadle.workspace.files.private_file import write_private

    file = key_file()
    write_private(file, msgspec.json.format(msgspec.json.encode(stored)) + b"\n")
    file.parent.chmod(0o700)


def _put(backend: Any, provider: str, value: str) -> bool:
    backend.set_password(_SERVICE, provider, value)
    return bool(backend.get_password(_SERVICE, provider) == value)


def _delete(backend: Any, provider: str) -> bool:
    backend.delete_password(_SERVICE, provider)
    return True


def _ask(question: Callable[[Any], Any]) -> Any:
    """Ask the keyring in a thread of its own; None where there is none, it refuses, or it takes too long."""
    import threading

    answers: list[Any] = []

    def work() -> None:
        try:
            backend = _backend()
            if backend is not None:
                answers.append(question(backend))
        except Exception:  # noqa: BLE001 - each backend raises its own kinds; none may end the program or show a key
            answers.clear()

    thread = threading.Thread(target=work, daemon=True, name="treadle-keyring")
    thread.start()
    thread.join(_KEYRING_SECONDS)
    return answers[0] if answers else None


def _backend() -> Any:
    """Find a keyring that really keeps secrets: of priority 1 or more, and none of the plain-text alternatives."""
    try:
        chosen: Any = import_module("keyring").get_keyring()
    except ModuleNotFoundError:
        return None
    backends = getattr(chosen, "backends", None) or [chosen]
    return next((backend for backend in backends if _is_real(backend)), None)


def _is_real(backend: Any) -> bool:
    return float(backend.priority) >= 1 and not type(backend).__module__.startswith("keyrings.alt")
