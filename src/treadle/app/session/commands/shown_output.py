"""Output of a command as it lies in its file, made fit to be shown: no control characters, no secrets."""

import os

from treadle.policy.secrets import known_secrets
from treadle.workspace.files.text import Decoder, flowing


class ShownOutput:
    """Takes bytes as they come."""

    def __init__(self) -> None:
        self._decoder = Decoder()
        self._redacted = known_secrets(os.environ).stream()

    def feed(self, data: bytes) -> str:
        """Give what can be shown by now."""
        return self._redacted.feed(flowing(self._decoder.feed(data)))

    def finish(self) -> str:
        """Give the rest."""
        rest = flowing(self._decoder.feed(b"", final=True))
        return self._redacted.feed(rest) + self._redacted.finish()
