"""A log as it is stored, row by row, and the events that it tells of, whatever version wrote them."""

from treadle.protocol.base import StoredEvent, Upgrade
from treadle.protocol.codec import damaged, decode_data, decode_source
from treadle.protocol.events import SCHEMA_VERSION, Event


class LogReader:
    """Reads one whole log, row by row in their order.

    In a log of an older schema, what the machine said follows on its cause, under the same number.
    """

    def __init__(self) -> None:
        self._version = 0
        self._upgrades: dict[int, Upgrade] = {}

    def read(self, row: StoredEvent) -> list[Event]:
        """Give the events of the next row; raises `StoreError` when it cannot be read."""
        if row.version < self._version:
            raise damaged("An event of the log cannot be read.", f"Its schema {row.version} is older than that before.")
        self._version = row.version
        rows = [row]
        for step in range(row.version, SCHEMA_VERSION):
            upgrade = self._upgrade(step)
            rows = [new for old in rows for new in upgrade.take(old)]
        return [
            Event(seq=one.seq, at=one.at, source=decode_source(one.source), data=decode_data(one.data, one.version))
            for one in rows
        ]

    def _upgrade(self, step: int) -> Upgrade:
        if step not in self._upgrades:
            from treadle.protocol.upgrades import UPGRADES

            if step not in UPGRADES:
                raise damaged("An event of the log cannot be read.", f"There never was a schema {step}.")
            self._upgrades[step] = UPGRADES[step]()
        return self._upgrades[step]
