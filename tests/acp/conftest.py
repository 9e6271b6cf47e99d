"""Treadle is loaded once for all tests of it as an agent of editors."""

from tests.ready import ready, started_anew

__all__ = ["ready", "started_anew"]
