"""The sample projects have tests of their own, which are data here. No test leaves a process behind."""

from tests.orphans import no_orphans

__all__ = ["no_orphans"]

collect_ignore = ["tasks"]
