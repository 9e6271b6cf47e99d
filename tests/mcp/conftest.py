"""No test leaves a process behind."""

from tests.orphans import no_orphans

__all__ = ["no_orphans"]
