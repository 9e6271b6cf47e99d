"""How edits came out and what was read for models, from the ledger of all sessions."""

from treadle.app.compose import open_store
from treadle.app.session.files.edit_ledger import LedgerRow, ReadingsRow, ledger_rows, readings_rows, today


def edit_ledger() -> tuple[list[LedgerRow], list[ReadingsRow]]:
    """Sum up the ledger of edits, a row for each model and format; and what was read for each model."""
    store = open_store()
    try:
        return ledger_rows(store.edit_counts(), today()), readings_rows(store.reading_counts())
    finally:
        store.close()
