"""The users of a service: their names, the digests of their tokens, and what each may use. Kept in one file."""

import hashlib
import hmac
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from treadle.door.program import alone, write_private
from treadle.protocol.base import Record
from treadle.protocol.errors import ConfigError
from treadle.protocol.patterns import regex

USUAL_TURNS = 2
"""How many turns of a user work at the same time, unless it is said otherwise."""

_NAME = regex(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")


class ServiceUser(Record, frozen=True, kw_only=True, omit_defaults=True):
    """A user. `token` is a SHA-256 digest; `account` is the one of the system that their process has, if any.

    `turns` work at the same time; `day_cost` is US dollars a day, `disk_gb` gigabytes of their folder, None is
    unbounded.
    """

    name: str
    token: str
    account: str = ""
    turns: int = USUAL_TURNS
    day_cost: float | None = None
    disk_gb: float | None = None


class _Kept(Record, frozen=True, kw_only=True, omit_defaults=True):
    users: tuple[ServiceUser, ...] = ()
    metrics: str = ""
    proxy: str = ""


def token_digest(token: str) -> str:
    """Give what is kept of a token: it is too long to be guessed, so its digest needs no salt."""
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


class UserBook:
    """The users in `users.json` of a folder, read again when another process has changed it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._file = data / "users.json"
        self._kept = _Kept()
        self._seen: object = None

    def all(self) -> Mapping[str, ServiceUser]:
        """Give the users by name. Raises `ConfigError` for a file that cannot be read."""
        return {one.name: one for one in self._read().users}

    def by_token(self, token: str) -> ServiceUser | None:
        """Find whose token it is."""
        digest = token_digest(token)
        found = [one for one in self._read().users if hmac.compare_digest(one.token, digest)]
        return found[0] if found else None

    def is_metrics(self, token: str) -> bool:
        """Whether it is the token of who may read the metrics."""
        return hmac.compare_digest(self._read().metrics, token_digest(token))

    def is_proxy(self, token: str) -> bool:
        """Whether it is the secret of the proxy that names users."""
        return hmac.compare_digest(self._read().proxy, token_digest(token))

    @property
    def has_proxy(self) -> bool:
        """Whether there is a secret for a proxy."""
        return bool(self._read().proxy)

    def add(self, name: str, **named: str | float) -> tuple[ServiceUser, str]:
        """Add a user, or change one, whose fields stay that are not `named`; gives the user, and a new token.

        Raises `ConfigError`.
        """
        if not _NAME.fullmatch(name):
            raise ConfigError(
                "service-user",
                f"{name!r} cannot be the name of a user.",
                why="It is up to 64 letters, digits, and . _ @ + -, and begins with a letter or a digit.",
                fix="Choose another name.",
            )
        token = secrets.token_urlsafe(32)
        with self._changing():
            known = self.all()
            user = replace(known.get(name) or ServiceUser(name=name, token=""), token=token_digest(token), **named)
            self._write(replace(self._kept, users=tuple({**known, name: user}.values())))
        return user, token

    def remove(self, name: str) -> None:
        """Shut a user out; their folder stays. Raises `ConfigError`."""
        with self._changing():
            users = dict(self.all())
            if users.pop(name, None) is None:
                raise ConfigError("service-user", f"There is no user {name!r}.", fix="`treadle serve list` names them.")
            self._write(replace(self._kept, users=tuple(users.values())))

    def new_secret(self, what: str) -> str:
        """Make a new secret for `metrics` or for a `proxy`; the one before is not valid any more."""
        token = secrets.token_urlsafe(32)
        with self._changing():
            self._write(replace(self._read(), **{what: token_digest(token)}))
        return token

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Let nobody else change the file meanwhile. Raises `ConfigError`."""
        try:
            with alone(self.data):
                yield
        except OSError as error:
            raise ConfigError(
                "service-users", f"{self._file} cannot be written.", why=f"{error}.", fix="Name another --data."
            ) from error

    def _read(self) -> _Kept:
        try:
            stat = self._file.stat()
            seen = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
            if seen != self._seen:
                self._kept, self._seen = msgspec.json.decode(self._file.read_bytes(), type=_Kept), seen
        except FileNotFoundError:
            self._kept, self._seen = _Kept(), None
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(
                "service-users", f"{self._file} cannot be read.", why=f"{error}.", fix="Correct it, or restore a copy."
            ) from error
        return self._kept

    def _write(self, kept: _Kept) -> None:
        write_private(self._file, msgspec.json.format(msgspec.json.encode(kept), indent=1))
