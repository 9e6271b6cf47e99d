"""Which tools a model is told of, and why it is not told of the others."""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib.util import find_spec

from treadle.app.session.ledger import EDIT_TOOLS, choose_edit_tool, today
from treadle.store.sqlite import Store


def left_out(model: str, store: Store) -> Mapping[str, str]:
    """Give the tools that a model (`provider/name`) is not told of, each with the reason."""
    edit_tool = choose_edit_tool(model, store.edit_counts(model), today())
    reasons = dict.fromkeys(EDIT_TOOLS - {edit_tool}, f"this model edits by {edit_tool}")
    if find_spec("playwright") is None:
        reasons["browser_action"] = "Playwright is not installed: pip install 'treadle[browser]'"
    return reasons


def offering(names: Collection[str], store: Store) -> Callable[[str], Collection[str]]:
    """Tell a model of the one edit tool that suits it, and of everything else that can run here; the same each time."""

    @cache
    def offered(model: str) -> Collection[str]:
        return frozenset(names) - left_out(model, store).keys()

    return offered
