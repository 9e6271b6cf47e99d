"""What is known of models: the list that a person fetched if it is newer, else the one of this version."""

import time
from functools import lru_cache
from pathlib import Path
from stat import S_ISREG

import msgspec

from treadle.app.places import data_directory
from treadle.protocol.models import ModelSpec
from treadle.providers.model_data import ModelCatalogue, ModelFigures, built_in_models, decode_data
from treadle.providers.provider_rows import ROWS, ProviderRow
from treadle.providers.usual_models import nearest_relative, plain_name, successor_of, usual_model, version_of

LARGEST_DATA = 16 * 1024 * 1024
"""Bytes of a list that are read."""

ASSUMED_WINDOW = 128_000
"""Tokens that a model is taken to hold of which nothing at all is known: what most hold (November 2026)."""

SOON_DAYS = 30
OLD_DAYS = 60
"""So long before its end a model's retirement is told, and so old a list is when `doctor` warns."""

_DAY_SECONDS = 86_400
_DAMAGED = "The fetched list of models, {file}, cannot be read. The built-in list of {date} is used. {way}"
_AGAIN = "Fetch it again: treadle models --update."


def fetched_file() -> Path:
    """Where the list is kept that `treadle models --update` fetches."""
    return data_directory() / "models.json"


def known_models() -> ModelCatalogue:
    """Give the list in use; a fetched one that cannot be read, or is older than the built-in one, is not used."""
    built = built_in_models()
    fetched = _fetched()
    return fetched if isinstance(fetched, ModelCatalogue) and fetched.data.date > built.data.date else built


def data_notice() -> str:
    """Say that a fetched list cannot be read; empty where it can, and where there is none."""
    if not isinstance(_fetched(), str):
        return ""
    return _DAMAGED.format(file=fetched_file(), date=built_in_models().data.date, way=_AGAIN)


def day(ahead: int = 0) -> str:
    """Give the day (ISO, UTC) so many days from now."""
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + ahead * _DAY_SECONDS))


def usual_ref(row: ProviderRow, today: str = "") -> str:
    """Name a provider's usual model, `provider/model`; empty where none is known that is not retired."""
    name = usual_model(known_models(), row, today or day())
    return f"{row.name}/{name}" if name else ""


def known_spec(row: ProviderRow, name: str, *, free: bool = False) -> ModelSpec:
    """Tell what is known of a model; of an unknown one what its nearest relative is known for, which it names.

    At a place of the user's own (`free`) what others take for the relative says nothing of what it costs.
    """
    catalogue = known_models()
    if name in catalogue.section(row.section):
        return catalogue.spec(row, name)
    relative = _relative(catalogue, row, name)
    if relative is None:
        return ModelSpec(provider=row.name, name=name)
    spec = catalogue.spec(*relative)
    return msgspec.structs.replace(
        spec,
        provider=row.name,
        name=name,
        prices=None if free else spec.prices,
        released="",
        retires="",
        successor="",
        like=spec.ref,
    )


def is_mistyped(row: ProviderRow, spec: ModelSpec) -> bool:
    """Whether an unknown model is probably a wrong name of a known one, and not newer than its family there."""
    names = known_models().section(row.section)
    if spec.name in names or not names:
        return False
    other, _, like = spec.like.partition("/")
    return other != row.name or version_of(spec.name) < version_of(like) or plain_name(spec.name) == plain_name(like)


def _relative(catalogue: ModelCatalogue, row: ProviderRow, name: str) -> tuple[ProviderRow, str] | None:
    """Find the model that an unknown one is most like: of the same family at its provider, else at another one."""
    for other in (row, *ROWS):
        like = nearest_relative(catalogue.section(other.section), name)
        if like:
            return other, like
    return None


def with_bounds(spec: ModelSpec) -> ModelSpec:
    """Give a model of which no window is known the assumed one."""
    return spec if spec.context_window else msgspec.structs.replace(spec, context_window=ASSUMED_WINDOW)


def unknown_notice(spec: ModelSpec, known: bool) -> str:  # noqa: FBT001 - whether its own window is
    """Say by what a model is bounded and priced of which the list says nothing; empty where its window is known."""
    set_it = f"`treadle config set 'models.\"{spec.ref}\".context_window' TOKENS`"
    if known:
        return ""
    if spec.like:
        prices = " and about what it costs" if spec.prices is not None else ""
        text = f"{spec.ref} is not in the list of models. Its limits{prices} are taken from {spec.like}."
        return f"{text} Fetch the newest list with `treadle models --update`, or set its window: {set_it}."
    if spec.context_window is None:
        return (
            f"The context window of {spec.ref} is not known. {ASSUMED_WINDOW:,} tokens are assumed. If the provider "
            "refuses the conversation as too long and names the window, Treadle remembers it. If you know it, set it: "
            f"{set_it}."
        )
    return ""


def retirement_notice(row: ProviderRow, spec: ModelSpec) -> str:
    """Say that a model is retired, or will be within days, and which one to use in its place; empty for others."""
    if not spec.retires or spec.retires > day(SOON_DAYS):
        return ""
    other = successor_ref(row, spec)
    way = f" Use {other} in its place: --model {other}, or /model {other} in a session." if other else ""
    if spec.retires <= day():
        return f"{spec.ref} is retired since {spec.retires}. The provider may refuse it.{way}"
    return f"{spec.ref} will be retired on {spec.retires}.{way}"


def successor_ref(row: ProviderRow, spec: ModelSpec) -> str:
    """Name the model, `provider/model`, to use in place of one that is retired; empty where none is known."""
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
    except OSError:
        return None
    if not S_ISREG(state.st_mode) or state.st_size > LARGEST_DATA:
        return "it is not a file of a usual size"
    return _read(file, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=1)
def _read(file: Path, changed: int, size: int) -> ModelCatalogue | str:  # noqa: ARG001 - what tells another file
    try:
        catalogue = decode_data(file.read_bytes())
        for raw in catalogue.data.providers.values():
            msgspec.json.decode(raw, type=tuple[ModelFigures, ...])
    except (OSError, msgspec.MsgspecError) as error:
        return type(error).__name__
    return catalogue
