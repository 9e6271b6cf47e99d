"""Most tests of Treadle as an agent of editors are not about its start."""

from tests.ready import started_anew

__all__ = ["started_anew"]
