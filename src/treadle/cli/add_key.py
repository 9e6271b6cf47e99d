"""Adding a provider's key at a terminal: the provider, the key (which is not shown), one call with it, storing it."""

from treadle.door.known_models import (
    CallCheck,
    CheckOutcome,
    Models,
    clean_key,
    keep_key,
    key_providers,
    key_stored,
    try_key,
    where_to_get,
)
from treadle.door.settings import Settings
from treadle.protocol.errors import ConfigError
from treadle.providers.provider_rows import ProviderRow
from treadle.tui.before.ask_choice import choose
from treadle.tui.before.inline import leave_line
from treadle.tui.before.key_entry import read_key, with_skip
from treadle.tui.ending import Left
from treadle.tui.lists.choice_list import Choosing, ListRow
from treadle.tui.paint.lines import line
from treadle.tui.paint.look import Look
from treadle.tui.session.greeting import short_path


async def add_key(settings: Settings, look: Look) -> ProviderRow | Left | None:
    """Ask for a provider and its key until one is stored; gives the provider, None where the person goes back."""
    rows = key_providers(Models(settings))
    number, problem = 0, ""
    while True:
        chosen = await choose(_providers(rows, number, problem), look)
        if isinstance(chosen, Left):
            return chosen
        if chosen.row is None:
            return None
        number, row = chosen.row, rows[chosen.row]
        key = await _key(row, look)
        if isinstance(key, Left):
            return key
        if key is None:
            problem = ""
            continue
        check = await try_visibly(settings, row, key, look)
        if isinstance(check, Left):
            return check
        problem = _kept(row, key, check, look)
        if not problem:
            return row


async def try_visibly(settings: Settings, row: ProviderRow, key: str, look: Look) -> CallCheck | Left | None:
    """Try a key with one call; None where the person does not wait for it."""
    return await with_skip(f"Trying the key with {row.title}", try_key(settings, row.name, key), look)


def _providers(rows: list[ProviderRow], first: int, problem: str) -> Choosing:
    return Choosing(
        title="Whose API key?",
        rows=tuple(ListRow(row.title, row.name) for row in rows),
        problem=problem,
        escape=None,
        filters=True,
        first=first,
    )


async def _key(row: ProviderRow, look: Look) -> str | Left | None:
    """Read a key that can be one; None where the person goes back."""
    problem = ""
    while True:
        text = f"Paste it. It is not shown, and it is sent to {row.title} alone. {where_to_get(row.name)}"
        typed = await read_key(f"API key of {row.title}", text, look, problem)
        if typed is None or isinstance(typed, Left):
            return typed
        try:
            return clean_key(typed)
        except ConfigError as error:
            problem = f"{error.what} {error.why}"


def _kept(row: ProviderRow, key: str, check: CallCheck | None, look: Look) -> str:
    """Store the key and say so; gives why it is not stored."""
    try:
        place = keep_key(row.name, key, check)
    except ConfigError as error:
        if check is None or error.code != "key-refused":
            raise
        what = (
            "refused the key" if check.outcome is CheckOutcome.REFUSED else "does not let this key use its usual model"
        )
        return f"{row.title} {what}. It is not stored. {where_to_get(row.name)}"
    signs = look.theme.signs
    known = check is not None and check.outcome in (CheckOutcome.WORKS, CheckOutcome.LIMITED)
    said = key_stored(row.title, short_path(place), check)
    leave_line(look, line(("add" if known else "warn", signs.ok), ("dim", f" {said}")))
    return ""
