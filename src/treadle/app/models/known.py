"""What is known of models: by the fetched list or the built-in one, by their relatives, by what was refused."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

import msgspec

from treadle.app.config.places import data_directory
from treadle.engine.ports import Provider, unsent
from treadle.protocol.limits import USUAL_REPLY
from treadle.protocol.models import ErrorKind, ModelRequest, ModelSpec, Prices, StreamEvent, StreamFailure
from treadle.providers.endpoint import MEBIBYTE
from treadle.providers.model_data import ModelCatalogue, ModelFigures, built_in_models, decode_models
from treadle.providers.provider_rows import ROWS, ProviderRow

USUAL_PROVIDERS = ("anthropic", "openai", "gemini", "openrouter", "deepseek", "xai", "mistral", "groq")
"""The providers that are asked first for a key where no model is named; then all others in their order."""

LOCAL = ("ollama", "lmstudio", "llama.cpp", "vllm")
"""The providers on the user's own machine that can be asked what they have."""

EMBEDDED = "local"
"""The provider of models that Treadle runs by itself: `local/smollm2`, or `local/` and the path of a GGUF file."""

LARGEST_DATA = 16 * MEBIBYTE
"""Bytes of a list that are read."""

ASSUMED_WINDOW = 128_000
"""Tokens that a model is taken to hold of which nothing at all is known: what most hold (November 2026)."""

SOON_DAYS = 30
OLD_DAYS = 60
"""So long before its end a model's retirement is told, and so old a list is when `doctor` warns."""

_CLOUD = (":cloud", "-cloud")
"""Ends of the names of models that a server of this machine does not run itself but has another one run."""

_DAY_SECONDS = 86_400
_MILLION = 1_000_000

Learn = Callable[[str, int], None]
"""Takes a model's own name at its provider, and its window in tokens."""

AskForModel = Callable[[str], Awaitable[None]]
"""Asks the provider what it says of a model with that name, where nothing else does."""

Advise = Callable[[str], str]
"""Says what to do where the provider does not know a model with that name."""

_DAMAGED = (
    "The fetched list of models, {file}, cannot be read: {why}. The built-in list of {date} is used. Fetch it again: "
    "treadle models --update."
)


def fetched_file() -> Path:
    """Where the list is kept that `treadle models --update` fetches."""
    return data_directory() / "models.json"


def known_models() -> ModelCatalogue:
    """Give the list in use; a fetched one that cannot be read, or is older than the built-in one, is not used.

    One of the same day was put over the built-in one.
    """
    built = built_in_models()
    fetched = _fetched()
    return fetched if isinstance(fetched, ModelCatalogue) and fetched.data.date >= built.data.date else built


def data_notice() -> str:
    """Say that a fetched list cannot be read; empty where it can, and where there is none."""
    found = _fetched()
    if not isinstance(found, str):
        return ""
    return _DAMAGED.format(file=fetched_file(), why=found, date=built_in_models().data.date)


def day(ahead: int = 0) -> str:
    """Give the day (ISO, UTC) so many days from now."""
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + ahead * _DAY_SECONDS))


def usual_ref(row: ProviderRow, today: str = "") -> str:
    """Name a provider's usual model, `provider/model`; empty where none is known that is not retired."""
    from treadle.providers.usual_models import usual_model

    name = usual_model(known_models(), row, today or day())
    return f"{row.name}/{name}" if name else ""


def living_names(row: ProviderRow) -> tuple[str, ...]:
    """Name the known models of a provider that are not retired."""
    today = day()
    models = known_models().section(row.section)
    return tuple(name for name, one in models.items() if not one.retires or one.retires > today)


def known_spec(row: ProviderRow, name: str, *, here: bool = False) -> ModelSpec:
    """Tell what is known of a model; of an unknown one what its nearest relative is known for, which it names.

    On a server of this machine (`here`) a model holds what that was started with, which no relative knows, and is free,
    unless the server passes it on: one in Ollama's cloud, or one of a provider that has an address of its own.
    No list knows the models of a server that has no address but the one that the user says.
    """
    if here and (not row.base_url or row.name in LOCAL):
        known = known_models().spec(row, name) if row.base_url else ModelSpec(provider=row.name, name=name)
        free = Prices(input=0.0, output=0.0)
        return known if name.endswith(_CLOUD) else msgspec.structs.replace(known, prices=free)
    catalogue = known_models()
    if name in catalogue.section(row.section):
        return catalogue.spec(row, name)
    relative = None if here else _relative(catalogue, row, name)
    if relative is None:
        return ModelSpec(provider=row.name, name=name)
    spec = catalogue.spec(*relative)
    billed = row.name not in LOCAL  # what others take for it is no price of your own server
    prices = None if spec.prices is None or not billed else msgspec.structs.replace(spec.prices, estimated=True)
    return msgspec.structs.replace(
        spec,
        prices=prices,
        provider=row.name,
        name=name,
        released="",
        retires="",
        successor="",
        like=spec.ref,
    )


def written_name(row: ProviderRow, name: str) -> str:
    """Give a model's name as the list has it: the longer window of a Claude may be written `[1m]` or `:1m`.

    Where the model itself holds a million tokens, that is all that is meant.
    """
    plain = name.removesuffix("[1m]").removesuffix(":1m")
    if plain == name or "claude" not in name:
        return name
    models = known_models().section(row.section)
    found = models.get(plain)
    holds = f"{plain}:1m" not in models and found is not None and (found.context_window or 0) >= _MILLION
    return plain if holds else f"{plain}:1m"


def is_mistyped(row: ProviderRow, spec: ModelSpec) -> bool:
    """Whether an unknown model is probably a wrong name of a known one, and not newer than its family there."""
    names = known_models().section(row.section)
    if spec.name in names or not names:
        return False
    from treadle.providers.usual_models import is_newest

    return not is_newest(names, spec.name)


@lru_cache(maxsize=64)
def _relative(catalogue: ModelCatalogue, row: ProviderRow, name: str) -> tuple[ProviderRow, str] | None:
    """Find the model that an unknown one is most like: of the same family at its provider, else at another one."""
    from treadle.providers.usual_models import nearest_relative

    rows = {one.section: one for one in (*reversed(ROWS), row)}
    for other in (row, *reversed(rows.values())):
        like = nearest_relative(catalogue.section(other.section), name)
        if like:
            return other, like
    return None


def with_bounds(spec: ModelSpec) -> ModelSpec:
    """Give a model of which no window is known the assumed one, and the replies of an unknown model a bound."""
    if spec.context_window and not spec.like:
        return spec
    window, longest = spec.context_window or ASSUMED_WINDOW, spec.max_output or USUAL_REPLY
    return msgspec.structs.replace(spec, context_window=window, max_output=longest)


def unknown_notice(spec: ModelSpec, known: bool) -> str:  # noqa: FBT001 - whether its own window is
    """Say by what a model is bounded and priced of which the list says nothing; empty where its window is known."""
    set_it = f'the setting `models."{spec.ref}".context_window`, in tokens'
    if known:
        return ""
    if spec.like:
        prices = " and about what it costs" if spec.prices is not None else ""
        text = f"{spec.ref} is not in the list of models. Its limits{prices} are taken from {spec.like}."
        return f"{text} Fetch the newest list with `treadle models --update`, or set its window: {set_it}."
    if spec.context_window is None:
        longest = "" if spec.max_output else f", and its replies are bounded to {USUAL_REPLY:,}"
        return (
            f"The context window of {spec.ref} is not known. {ASSUMED_WINDOW:,} tokens are assumed{longest}. If the "
            "provider refuses the conversation as too long and names the window, Treadle remembers it. If you know it, "
            f"set it: {set_it}; max_output is the longest reply."
        )
    return ""


def retirement_notice(row: ProviderRow, spec: ModelSpec) -> str:
    """Say that a model is retired, or will be within days, and which one to use in its place; empty for others."""
    if not spec.retires or spec.retires > day(SOON_DAYS):
        return ""
    other = successor_ref(row, spec)
    way = f" Use {other} in its place: --model {other}, or /model {other} in a session." if other else ""
    if spec.retires <= day():
        return f"{spec.ref} was retired on {spec.retires}. The provider may refuse it.{way}"
    return f"{spec.ref} will be retired on {spec.retires}.{way}"


def not_found_fix(row: ProviderRow, spec: ModelSpec, base_url: str) -> str:
    """Say what to do where a provider does not know a model: it may be retired, misspelt, or elsewhere."""
    if is_over(spec):
        return retirement_notice(row, spec)
    from treadle.providers.failures import without_query

    return (
        f"Check the model's name: `treadle models {row.name}/` lists those that are known. If it is right, check the "
        f"address, {without_query(base_url)}: base_url under [providers.{row.name}] in your settings, or --base-url."
    )


def successor_ref(row: ProviderRow, spec: ModelSpec) -> str:
    """Name the model, `provider/model`, to use in place of one that is retired; empty where none is known."""
    from treadle.providers.usual_models import successor_of

    name = successor_of(known_models(), row, spec.name, day())
    return f"{row.name}/{name}" if name and name != spec.name else ""


def is_over(spec: ModelSpec) -> bool:
    """Whether a model is retired today."""
    return bool(spec.retires) and spec.retires <= day()


def _fetched() -> ModelCatalogue | str | None:
    """Give the fetched list, what is wrong with it, or None where there is none."""
    file = fetched_file()
    try:
        state = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return error.strerror or type(error).__name__
    if not S_ISREG(state.st_mode) or state.st_size > LARGEST_DATA:
        return f"it is not a file of at most {LARGEST_DATA // MEBIBYTE} MiB"
    return _read(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _read(file: Path, changed: int, size: int) -> ModelCatalogue | str:  # noqa: ARG001 - what tells another file
    try:
        catalogue = decode_models(file.read_bytes())
        for raw in catalogue.data.providers.values():
            msgspec.json.decode(raw, type=tuple[ModelFigures, ...])
    except OSError as error:
        return error.strerror or type(error).__name__
    except (msgspec.MsgspecError, RecursionError):
        return "it is damaged"
    return catalogue


class _LearnedWindows(msgspec.Struct, frozen=True, kw_only=True):
    """The file: windows by the name a user types."""

    version: int = 1
    windows: dict[str, int] = {}


def windows_file() -> Path:
    """Where they are kept."""
    return data_directory() / "windows.json"


def learned_windows() -> dict[str, int]:
    """Give every window that was learned, by `provider/model`; a file that cannot be read counts as none."""
    try:
        return msgspec.json.decode(windows_file().read_bytes(), type=_LearnedWindows).windows
    except (OSError, msgspec.MsgspecError, RecursionError):
        return {}


def learn_window(ref: str, window: int) -> None:
    """Keep a window; where it cannot be kept, the next refusal names it again."""
    from treadle.workspace.files.private_file import write_private

    known = learned_windows()
    if known.get(ref) != window:
        with suppress(OSError):
            write_private(windows_file(), msgspec.json.encode(_LearnedWindows(windows={**known, ref: window})))


class LearningProvider:
    """The `Provider` port before another one: passes on what its provider says of a model that nobody else knows."""

    def __init__(self, inner: Provider, learn: Learn, ask: AskForModel, *, advise: Advise) -> None:
        """`ask` is called before the second call of a model: by then it is one to work with, and it is not waited for
        before the first word. `advise` is called where the provider does not know the model.
        """
        self._inner = inner
        self._learn = learn
        self._ask = ask
        self._advise = advise
        self._calls: Counter[str] = Counter()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Call the model; see the port."""
        self._calls[request.model] += 1
        if self._calls[request.model] == 2:
            with unsent():
                await self._ask(request.model)
        async with aclosing(self._inner.stream(request)) as events:
            async for event in events:
                yield self._told(request.model, event) if isinstance(event, StreamFailure) else event

    def _told(self, name: str, failed: StreamFailure) -> StreamFailure:
        error = failed.error
        if error.window is not None:
            self._learn(name, error.window)
        if error.kind is not ErrorKind.NOT_FOUND or error.fix:
            return failed
        return msgspec.structs.replace(failed, error=msgspec.structs.replace(error, fix=self._advise(name)))

    async def close(self) -> None:
        """Give back connections."""
        await self._inner.close()
