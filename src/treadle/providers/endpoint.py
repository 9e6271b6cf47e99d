"""Where a wire API is reached: address, key, limits and the ways a vendor differs from the API's own."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec import Struct, field

MEBIBYTE = 1 << 20


LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

CONNECT_HERE = 2.5
"""Seconds for a connection to this machine, which takes one at once or not at all."""


class StreamLimits(Struct, frozen=True, kw_only=True):
    """Bounds of one call: seconds to connect, to the first byte of the body and between two reads; bytes.

    Within `progress` seconds a reply has to grow (`pace.py`), and within
    `reply` seconds to be whole, however many signs of life it gives. `body` bounds its bytes, `event` one event of it.
    """

    connect: float = 8.0
    first_byte: float = 60.0
    idle: float = 90.0
    progress: float = 900.0
    reply: float = 7_200.0
    body: int = 64 * MEBIBYTE
    event: int = 16 * MEBIBYTE


class CallIds(StrEnum):
    """What a vendor takes as the id of a call: anything, up to forty characters, or exactly nine letters and digits."""

    ANY = "any"
    FORTY = "forty"
    NINE = "nine"


class ThinkingField(StrEnum):
    """How a vendor of the chat API is asked to think: not at all, or in which field of the request."""

    NONE = "none"
    EFFORT = "reasoning_effort"
    BUDGET = "reasoning"
    SWITCH = "thinking"
    ENABLE = "enable_thinking"


class Quirks(Struct, frozen=True, kw_only=True):
    """How a vendor differs from the wire API it speaks.

    `key_header` carries the key instead of the API's own header (as a bearer token in `authorization`).
    `max_tokens_field` names the output limit in the chat API. `stream_usage` asks for usage in the stream; some servers
    refuse the question. Where `user_after_tool` is false, text after results goes into the last result.
    `model_in_path` names the model of the Messages API in the path, as Vertex wants it. With `web_search` the vendor
    can search the web by itself, with the tool of its API or, in the chat API, with that named by `search_tool`;
    `search_bound` says that the Responses API takes a bound for its searches there.
    """

    key_header: str = ""
    max_tokens_field: str = "max_tokens"
    stream_usage: bool = True
    call_ids: CallIds = CallIds.ANY
    user_after_tool: bool = True
    thinking: ThinkingField = ThinkingField.NONE
    model_in_path: bool = False
    web_search: bool = False
    search_tool: str = ""
    search_bound: bool = True


class Endpoint(Struct, frozen=True, kw_only=True):
    """One place to call. `name` is the provider's name; signatures of reasoning go back only where they came from.

    `key_origin` says in words where the key, or what proves who asks in its place, comes from; `key_variable` names the
    variable of the environment if it is one.
    """

    name: str
    base_url: str
    api_key: str = ""
    key_origin: str = ""
    key_variable: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    limits: StreamLimits = StreamLimits()
    quirks: Quirks = Quirks()
    proxy: str = ""
    ca_file: str = ""

    def __repr__(self) -> str:
        """Show neither the key nor what else may hold one."""
        return f"Endpoint(name={self.name!r}, host={self.host!r})"

    @property
    def section(self) -> str:
        """The provider's name in the settings: without the profile with whose key it is called."""
        return self.name.partition("@")[0]

    @property
    def scheme(self) -> str:
        """The scheme of the base URL in lower case."""
        return split_url(self.base_url).scheme

    @property
    def host(self) -> str:
        """The host of the base URL, empty where there is none."""
        return split_url(self.base_url).hostname or ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Texts that must not appear in a message: the key, and header values long enough to be one."""
        parts = split_url(self.base_url)
        found = [self.api_key.strip(), parts.password or "", split_url(self.proxy).password or ""]
        found += [value for value in self.headers.values() if len(value) >= 12]
        return tuple(text for text in found if text)

    def key_headers(self, usual: str) -> dict[str, str]:
        """The header that carries the key: the vendor's own, or the `usual` one of the wire API."""
        key, name = self.api_key.strip(), self.quirks.key_header or usual
        if not key:
            return {}
        return {name: f"Bearer {key}" if name == "authorization" else key}

    def url(self, path: str, *, version: str = "", query: str = "") -> str:
        """Join `path` and `query` to the base URL and its query; says `version` only where the base does not."""
        parts = split_url(self.base_url)
        base = parts.path.rstrip("/")
        if base.endswith(path):
            joined = base
        elif version and not base.endswith(version):
            joined = base + version + path
        else:
            joined = base + path
        return urlunsplit((parts.scheme, parts.netloc, joined, "&".join(filter(None, (parts.query, query))), ""))


def split_url(url: str) -> SplitResult:
    """Split a URL; one that is none at all is a path without a host."""
    try:
        return urlsplit(url.strip())
    except ValueError:
        return SplitResult("", "", url, "", "")


def is_web_address(url: str) -> bool:
    """Whether a URL names a server: by http or https, a host, and a port that exists if it names one."""
    parts = split_url(url)
    try:
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and port != 0 and " " not in parts.netloc
