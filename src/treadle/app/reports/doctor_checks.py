"""What a check of the installation says."""

from enum import StrEnum

from treadle.protocol.base import Record
from treadle.protocol.errors import TreadleError


class CheckStatus(StrEnum):
    """How a check came out; only `fail` makes the doctor end with an error."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(Record, frozen=True, kw_only=True):
    """One thing that was looked at: what was found, and what to do about it where something is to be done."""

    name: str
    status: CheckStatus
    found: str
    fix: str = ""


def ok(name: str, found: str) -> Check:
    """Make a check that found nothing wrong."""
    return Check(name=name, status=CheckStatus.OK, found=found)


def warn(name: str, found: str, fix: str) -> Check:
    """Make a check that found something missing that work can do without."""
    return Check(name=name, status=CheckStatus.WARN, found=found, fix=fix)


def fail(name: str, found: str, fix: str) -> Check:
    """Make a check that found something broken."""
    return Check(name=name, status=CheckStatus.FAIL, found=found, fix=fix)


def failed_check(name: str, error: TreadleError) -> Check:
    """Make a check from an error."""
    return fail(name, " ".join(filter(None, (error.what, error.why))), error.fix)
