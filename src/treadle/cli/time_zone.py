"""A time zone of the environment that the system does not know: it would be UTC under the name that it has there."""

import os
import re
import sys
import time

_FOLDERS = ("/usr/share/zoneinfo", "/usr/lib/zoneinfo", "/usr/share/lib/zoneinfo", "/etc/zoneinfo")
_UTC = frozenset({"", "UTC", "GMT", "UCT", "Zulu", "Etc/UTC"})
_RULE = re.compile(r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)[+-]?\d{1,3}(?::\d\d){0,2}(?:[A-Za-z<].*)?")
"""A zone that is written out (POSIX): its name, how far it is from UTC, and when there is summer time."""


def use_known_zone() -> None:
    """Show times in the system's own zone where `TZ` names one that it does not know, and say so."""
    named = os.environ.get("TZ", "")
    if _is_known(named.removeprefix(":")):
        return
    del os.environ["TZ"]
    time.tzset()
    own = time.strftime("%Z, UTC%z")
    sys.stderr.write(f"treadle: TZ={named!a} is no time zone of this system: times are in its own ({own}).\n")


def _is_known(zone: str) -> bool:
    if zone in _UTC or _RULE.fullmatch(zone):
        return True
    folders = (os.environ.get("TZDIR") or _FOLDERS[0], *_FOLDERS)
    return any(_is_zone(os.path.join(folder, zone)) for folder in folders)  # noqa: PTH118 - Path costs more than the look


def _is_zone(file: str) -> bool:
    try:
        with open(file, "rb") as found:  # noqa: PTH123 - as above
            return found.read(4) == b"TZif"
    except (OSError, ValueError):
        return False
