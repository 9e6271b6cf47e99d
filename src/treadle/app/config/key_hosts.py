"""Which hosts a key may go to: those of addresses that somebody set for it on this computer, one by one."""

from collections.abc import Collection, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from treadle.app.config.layers import parse_file
from treadle.app.config.places import config_file, read_regular
from treadle.app.config.sections import ProviderSettings
from treadle.protocol.errors import ConfigError
from treadle.workspace.files.folder_lock import alone
from treadle.workspace.files.private_file import write_private

_MOST_BYTES = 1_000_000


class _Hosts(msgspec.Struct, frozen=True, kw_only=True):
    """The file: by provider, and the name of its key where that is another, the origins that this key may go to.

    An origin is `https://host:8443`. The provider's own keys have no other name.
    """

    version: int = 1
    providers: dict[str, tuple[str, ...]] = {}


def key_name(said: ProviderSettings) -> str:
    """Name the key that the settings choose for a provider: its variable, and the program that prints one; or empty."""
    return " ".join((said.api_key_env, *said.token_command)).strip()


def confirm_host(provider: str, url: str, key: str = "") -> None:
    """Note that somebody on this computer wants a key of a provider to go to the host of an address.

    Raises `ConfigError` where the file cannot be read or written; what was confirmed before stays in it.
    """
    file, whose = _file(), _whose(provider, key)
    try:
        with alone(file.parent):
            known = _read().providers
            origins = tuple(dict.fromkeys((*known.get(whose, ()), _origin(url))))
            data = msgspec.json.encode(_Hosts(providers={**known, whose: origins}))
            write_private(file, msgspec.json.format(data) + b"\n")
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            "config-unreadable",
            f"The address is set, but not confirmed: {file} cannot be read or written.",
            why=str(error),
            fix="Correct the file or remove it, and set the address again.",
        ) from error


def is_known_host(provider: str, url: str) -> bool:
    """Whether the host of an address was confirmed for any key of a provider."""
    known = _confirmed().items()
    return any(_origin(url) in origins for whose, origins in known if whose.partition(" ")[0] == provider)


def require_host(names: Collection[str], url: str, key: str = "") -> None:
    """Raise `ConfigError` where a key would go where nobody on this computer has said it may.

    `names` are those of the provider, `key` that of its key as `key_name` gives it. An address of the command line, of
    a variable or of a program is said with the run; one in the settings file may have come there in any way. This
    computer itself needs no word.
    """
    if _is_here(url):
        return
    provider = next(iter(names))
    confirmed = _is_confirmed([_whose(name, key) for name in names], url)
    shown = f"The key {key} of {provider}" if key else f"The key of {provider}"
    way = _command(f"profiles.{key[1:]}" if key.startswith("@") else f"providers.{provider}", url)
    if urlsplit(url).scheme.lower() == "http" and not confirmed:
        raise ConfigError(
            "key-in-clear",
            f"{shown} would go to {_origin(url)} in clear text.",
            why="Whoever is on the way could read the key and everything else: the address begins with http://.",
            fix=f"Use https://. If the network is your own, confirm it: {way}",
        )
    if _in_file(names, url) and not confirmed:
        raise ConfigError(
            "host-unconfirmed",
            f"{shown} would go to {_origin(url)}, which nobody has confirmed for it.",
            why="The settings file names this address. Whoever runs the server there gets the key and your text.",
            fix=f"If it is the address that you want, confirm it: {way}",
        )


def _whose(provider: str, key: str) -> str:
    return f"{provider} {key}".rstrip()


def _command(table: str, url: str) -> str:
    return f"treadle config set {table}.base_url {url}"


def _is_confirmed(names: Collection[str], url: str) -> bool:
    known = _confirmed()
    return any(_origin(url) in known.get(name, ()) for name in names)


def _in_file(names: Collection[str], url: str) -> bool:
    values = parse_file(config_file())
    providers = values.get("providers", {})
    said: list[Any] = [values.get("base_url")]
    if isinstance(profiles := values.get("profiles"), Mapping):
        said += [one.get("base_url") for one in profiles.values() if isinstance(one, Mapping)]
    if isinstance(providers, Mapping):
        said += [one.get("base_url") for name in names if isinstance(one := providers.get(name), Mapping)]
    return url in said


def _file() -> Path:
    return config_file().with_name("hosts.json")


def _confirmed() -> Mapping[str, tuple[str, ...]]:
    """Give what was confirmed; what cannot be read confirms nothing."""
    try:
        return _read().providers
    except (OSError, msgspec.MsgspecError):
        return {}


def _read() -> _Hosts:
    """Read the file; nothing was confirmed where there is none. Raises `OSError` or `MsgspecError`."""
    try:
        return msgspec.json.decode(read_regular(_file(), _MOST_BYTES) or b"", type=_Hosts)
    except (FileNotFoundError, NotADirectoryError):
        return _Hosts()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    shown = f"[{host}]" if ":" in host else host
    try:
        port = parts.port
    except ValueError:
        port = None
    usual = {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{shown}:{usual if port is None else port}"


def _is_here(url: str) -> bool:
    host = (urlsplit(url).hostname or "").lower()
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
