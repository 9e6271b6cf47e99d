"""The sample projects have tests of their own, which are data here. No test leaves a process behind."""

from tests.orphans import no_orphans
from tests.ready import ready

__all__ = ["no_orphans", "ready"]

collect_ignore = ["tasks"]
