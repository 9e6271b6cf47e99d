"""Treadle is loaded once for what the rehearsals run to its end; what they kill starts anew."""

from tests.ready import ready

__all__ = ["ready"]
