"""The hosts that settings name, as they are now: a session follows the user's file, and writes answers there."""

from collections.abc import Sequence
from contextlib import suppress

import msgspec

from treadle.app.config.layers import parse_file
from treadle.app.config.places import config_file
from treadle.app.config.sections import NetworkSettings
from treadle.protocol.errors import ConfigError

_ALLOW = "network.allow"


class CurrentNetwork:
    """Gives the settings as a session started with them, with what changed in the user's own file since.

    What a project, or whoever opened the session, said of hosts stays as it was. To be used in threads.
    """

    def __init__(self, started: NetworkSettings) -> None:
        self._started = started
        self._sign = _sign()
        self._first = _of_user() or NetworkSettings()
        self._now = self._with(self._first)

    def __call__(self) -> NetworkSettings:
        """Read the file where it changed; one with a mistake counts as it was before that."""
        sign = _sign()
        if sign != self._sign:
            own = _of_user()
            if own is not None:
                self._sign, self._now = sign, self._with(own)
        return self._now

    def _with(self, own: NetworkSettings) -> NetworkSettings:
        changed = {}
        for name in ("allow", "deny", "needs"):
            before = getattr(self._first, name)
            others = [host for host in getattr(self._started, name) if host not in before]
            changed[name] = tuple(dict.fromkeys((*getattr(own, name), *others)))
        return msgspec.structs.replace(self._started, **changed)

    def allow(self, hosts: Sequence[str]) -> str:
        """Write hosts into the user's `network.allow`; says what was written, and how to undo that.

        Raises `ConfigError` and `OSError`, and nothing is written then.
        """
        from treadle.app.config.edit import add_to_list
        from treadle.app.models.saving_model import check_setting

        own = _of_user()
        before = () if own is None else own.allow
        saved = add_to_list(_ALLOW, hosts, check_setting)
        listed = msgspec.json.encode(before).decode()
        back = f"treadle config set {_ALLOW} '{listed}'" if before else f"treadle config unset {_ALLOW}"
        return f"Your settings allow {', '.join(hosts)} from now on: {_ALLOW} in {saved.file}. To undo that: {back}"


def _sign() -> tuple[int, int, int]:
    try:
        found = config_file().stat()
    except OSError:
        return (0, 0, 0)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _of_user() -> NetworkSettings | None:
    """Read what the user's file says; None for one that cannot be read."""
    with suppress(ConfigError, msgspec.ValidationError):
        return msgspec.convert(parse_file(config_file()).get("network", {}), NetworkSettings)
    return None
