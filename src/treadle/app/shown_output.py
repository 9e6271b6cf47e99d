"""Output of a command as it lies in its file, made fit to be shown: no control characters, no secrets."""

import os

from treadle.policy.secrets import known_secrets
from treadle.workspace.text import Decoder


class ShownOutput:
    """Takes bytes as they come."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._redacted = known_secrets(os.environ).stream()

    def feed(self, data: bytes) -> str:
        """Give what can be shown by now."""
        return self._redacted.feed(self._decoder.feed(data).replace("\r", "\n"))

    def finish(self) -> str:
        """Give the rest."""
        rest = self._decoder.feed(b"", final=True).replace("\r", "\n")
        return self._redacted.feed(rest) + self._redacted.finish()
