"""The settings as a person writes them, section by section; `Settings` is the whole."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from treadle.context.compaction_words import CompactionSettings, CompactionStrategy
from treadle.protocol.base import Record
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk

Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
_MOST = 10**9
"""No number is infinite: a product with nothing would be none."""
Seconds: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=_MOST)]
Dollars: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=_MOST)]

ADDRESS_RULE = "It must have http:// or https://, a host, and a port from 1 to 65535 if it has one."

_HOST_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")


class ContextSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`compact_at` is a part of the window up to 1, or a number of tokens; without it, well before the window's end.

    `keep` is the part of the messages that stays. With the strategy `summary` the model sums up what leaves, with
    `drop` the log's facts of it have to do, with `auto` it depends on the window. `costly_request` is the price of a
    request in US dollars above which a cheaper configured model is named; 0 is never.
    """

    compact_at: Annotated[float, msgspec.Meta(gt=0, le=_MOST)] | None = None
    keep: Annotated[float, msgspec.Meta(ge=0.05, le=0.9)] = 0.5
    strategy: CompactionStrategy = CompactionStrategy.AUTO
    costly_request: Dollars = 0.5

    @property
    def compaction(self) -> CompactionSettings:
        """The same for the engine."""
        return CompactionSettings(compact_at=self.compact_at, keep=self.keep, strategy=self.strategy)


class NetworkSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Hosts that commands reach without asking, and hosts that they never reach.

    `pypi.org` names one, `.example.com` all below it. `needs` names hosts that the work needs, each by itself: they are
    asked about together, and nothing is allowed by it. `loopback_ports` are ports of this machine's own servers that
    commands reach on `localhost`, too.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    needs: Annotated[tuple[str, ...], msgspec.Meta(max_length=20)] = ()
    loopback_ports: tuple[Annotated[int, msgspec.Meta(ge=1024, le=65535)], ...] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for what is no name of a host."""
        for one in (*self.allow, *self.deny, *self.needs):
            if "." not in one.strip(".") or one != one.lower().rstrip(".") or not set(one) <= _HOST_CHARACTERS:
                raise ValueError(
                    f"network contains {one!r}, which is neither a host such as 'pypi.org' nor '.pypi.org'"
                )
        if some := next((one for one in self.needs if one.startswith(".")), ""):
            raise ValueError(f"network.needs contains {some!r}: name each host, as they are all asked about")


class DiagnosticSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One language server (`server`, a program with its arguments) or linter (`command`, a shell line).

    `files` are globs of file names; `seconds` is how long an edit waits, before and again after it. Of a linter,
    `pattern` is a regular expression for the lines of its output that name problems. Of a server, `language` is the
    language id to tell it, `options` go along with its start, `settings` are what it is answered when it asks.
    """

    command: str = ""
    server: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    pattern: str = ""
    language: str = ""
    options: Mapping[str, Any] = {}
    settings: Mapping[str, Any] = {}
    seconds: Annotated[float, msgspec.Meta(gt=0, le=60)] = 5.0

    def __post_init__(self) -> None:
        """Raise `ValueError` for a pattern that cannot be used."""
        if self.pattern:
            _check_pattern(self.pattern)


class Colours(StrEnum):
    """Which colours the terminal app uses; `auto` goes by the terminal's background."""

    AUTO = "auto"
    DARK = "dark"
    LIGHT = "light"
    ANSI = "ansi"


class Editing(StrEnum):
    """Which keys edit the input line."""

    EMACS = "emacs"
    VIM = "vim"


class ProviderSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user says of a provider. `api_key_env` names the variable that holds the key; `token_command` is a
    program, with its arguments, that prints a token for a short time. Timeouts are seconds.
    """

    base_url: str = ""
    wire_api: str = ""
    api_key_env: str = ""
    token_command: tuple[str, ...] = ()
    headers: Mapping[str, str] = {}
    proxy: str = ""
    ca_file: str = ""
    connect_timeout: Seconds | None = None
    first_byte_timeout: Seconds | None = None
    idle_timeout: Seconds | None = None
    progress_timeout: Seconds | None = None
    reply_timeout: Seconds | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address that names no server."""
        if self.base_url:
            _check_address(self.base_url)


class ProfileSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What goes along with the keys that are stored under a name: `treadle login PROVIDER --as NAME`.

    `model` is the one that the profile begins with, `base_url` the address of that model's provider. Sessions in
    `folders` use the profile by themselves; they are absolute, or begin with `~/`.
    """

    model: str = ""
    base_url: str = ""
    folders: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `ValueError` for an address that names no server, and for a folder that could be any."""
        if self.base_url:
            _check_address(self.base_url)
        if some := next((one for one in self.folders if not one.startswith(("/", "~/"))), ""):
            raise ValueError(f"folders contains {some!r}, which is neither absolute nor begins with '~/'")


class ModelSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the user says of a model, over what the catalogue knows. Prices are US dollars for a million tokens, and for
    a thousand searches of the web; `family` is that of its system prompt.
    """

    context_window: Tokens | None = None
    max_output: Tokens | None = None
    input_price: Dollars | None = None
    output_price: Dollars | None = None
    search_price: Dollars | None = None
    tool_protocol: ToolProtocol | None = None
    family: Literal["", "next", "generic", "local"] = ""


class ModeSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What differs in one mode; what is not said here is as elsewhere. A thinking budget of 0 turns thinking off."""

    model: str = ""
    thinking_budget: Annotated[int, msgspec.Meta(ge=0)] | None = None


class BudgetSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be spent in a turn, a session, a day (UTC): US dollars, and tokens of every kind."""

    turn_cost: Dollars | None = None
    turn_tokens: Tokens | None = None
    session_cost: Dollars | None = None
    session_tokens: Tokens | None = None
    day_cost: Dollars | None = None
    day_tokens: Tokens | None = None
    ask_at: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.8


class SandboxUse(StrEnum):
    """Whether a session starts on a system that has no sandbox: in every mode but auto, or in none."""

    AUTO = "auto"
    REQUIRED = "required"


class CheckpointSettings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether checkpoints are taken, of all `ignored` files too, and how many megabytes they take for a workspace."""

    enabled: bool = True
    ignored: bool = False
    most_megabytes: Annotated[int, msgspec.Meta(ge=10)] = 2_000


class Settings(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything a user can set. An empty `model` means: take the first provider that has a key.

    `fallback` takes over for a turn when the model's provider keeps failing; `max_retries` bounds the failures in a row
    before a turn ends without one (0: the first ends it); with `wait_for_reset` a turn waits until a limit of the
    provider resets, however long that is. `max_auto_approved` bounds the calls in a row that run
    without asking; `max_unasked` is its name in 0.1.0, and of both the lower applies. `max_seconds` bounds the time of
    a turn in which it does not wait for a person. With `checklist` the model keeps one. `approve` names classes of risk
    that run without asking in every mode but plan, beyond what the mode lets run. With `web_search` the
    provider may search the web by itself, where it can; with `code_mode` the model may write programs that call its
    tools.
    `language` is the one that the model writes to the user in, `instructions` are the user's own words that go along
    with every request. `profile` names the keys that new sessions use. `add_dirs` are further folders that belong to
    the workspace. With `gpu` commands in the sandbox get the devices of the GPUs. `pass_variables` names variables that
    commands get besides the harmless ones. `hooks` are groups of
    handlers for each event; `hooks_from` names other programs whose hooks run too. `theme`, `animation`, `links` and
    `editing` are about the terminal app, `keys` are further keys for its actions, `status_line` is a command whose
    output is shown below its status; with `screen_reader` it writes plain lines.
    """

    model: str = ""
    base_url: str = ""
    profile: str = ""
    mode: Mode = Mode.ASK
    tool_protocol: ToolProtocol | None = None
    fallback: str = ""
    max_retries: Annotated[int, msgspec.Meta(ge=0, le=100)] | None = None
    wait_for_reset: bool = False
    max_steps: Tokens | None = None
    max_seconds: Seconds | None = None
    max_auto_approved: Tokens | None = None
    max_unasked: Tokens | None = None
    budget: BudgetSettings = BudgetSettings()
    context: ContextSettings = ContextSettings()
    checkpoints: CheckpointSettings = CheckpointSettings()
    network: NetworkSettings = NetworkSettings()
    approve: tuple[Risk, ...] = ()
    add_dirs: tuple[str, ...] = ()
    pass_variables: tuple[str, ...] = ()
    checklist: bool = True
    web_search: bool = False
    code_mode: bool = False
    language: Annotated[str, msgspec.Meta(max_length=100)] = ""
    instructions: Annotated[str, msgspec.Meta(max_length=16_384)] = ""
    sandbox: SandboxUse = SandboxUse.AUTO
    gpu: bool = False
    try_first: bool = True
    editing: Editing = Editing.EMACS
    keys: Mapping[str, str] = {}
    screen_reader: bool = False
    theme: Colours = Colours.AUTO
    animation: bool = True
    links: bool = True
    status_line: Annotated[str, msgspec.Meta(max_length=4_000)] = ""
    thinking_budget: Annotated[int, msgspec.Meta(ge=0)] | None = None
    modes: Mapping[Mode, ModeSettings] = {}
    providers: Mapping[str, ProviderSettings] = {}
    models: Mapping[str, ModelSettings] = {}
    profiles: Mapping[str, ProfileSettings] = {}
    diagnostics: Mapping[str, DiagnosticSettings] = {}
    hooks: Mapping[str, Any] = {}
    hooks_from: tuple[Literal["claude"], ...] = ()
    disable_all_hooks: bool = False

    def __post_init__(self) -> None:
        """Refuse what no setting may lift."""
        if Risk.CRITICAL in self.approve:
            raise ValueError("approve cannot contain 'critical': dangerous calls always ask")
        for path in self.add_dirs:
            if not path.startswith(("/", "~/")):
                raise ValueError(f"add_dirs contains {path!r}, which is neither absolute nor begins with '~/'")
        if self.pass_variables:
            _check_variables(self)
        if self.keys:
            from treadle.app.config.own_keys import wrong_keys

            if wrong := wrong_keys(self.keys):
                raise ValueError("; ".join(wrong))
        if self.max_unasked is not None:
            given = (self.max_unasked, self.max_auto_approved)
            msgspec.structs.force_setattr(self, "max_auto_approved", min(one for one in given if one is not None))

    def in_mode(self, mode: Mode) -> ModeSettings:
        """Give the model and thinking budget that count in a mode."""
        said = self.modes.get(mode, ModeSettings())
        return ModeSettings(
            model=said.model or self.model,
            thinking_budget=self.thinking_budget if said.thinking_budget is None else said.thinking_budget,
        )


def is_base_url(url: str) -> bool:
    """Whether it is the address of a provider."""
    from treadle.providers.endpoint import is_web_address

    return url.startswith(("http://", "https://")) and is_web_address(url)


def _check_address(url: str) -> None:
    """Raise `ValueError` for what is no base URL; it is not shown, since it may hold a secret."""
    if not is_base_url(url):
        raise ValueError(f"base_url is not a base URL. {ADDRESS_RULE.removesuffix('.')}")


def _check_pattern(text: str) -> None:
    """Raise `ValueError` for what finds no problems in the output of a linter."""
    try:
        groups = re.compile(text).groupindex
    except re.error as error:
        raise ValueError(f"pattern is not a regular expression: {error}") from error
    if missing := [group for group in ("path", "line", "message") if group not in groups]:
        raise ValueError(f"pattern has no group {', '.join(f'(?P<{group}>...)' for group in missing)}")


def _check_variables(settings: Settings) -> None:
    """Raise `ValueError` for what no command may get, whoever says so."""
    from treadle.providers.provider_rows import ROWS

    keys = {key for row in ROWS for key in row.keys} | {one.api_key_env for one in settings.providers.values()}
    for name in settings.pass_variables:
        if not name.isidentifier() or not name.isascii():
            raise ValueError(f"pass_variables contains {name!r}, which is not a variable name")
        if name in keys:
            raise ValueError(f"pass_variables contains {name!r}: commands never get a provider's key")
