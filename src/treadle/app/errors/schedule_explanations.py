"""What the error codes of schedules and of programs mean, and what to do about them."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.app.errors.session_explanations import Explanation

ABOUT_SCHEDULES: Mapping[str, Explanation] = MappingProxyType(
    {
        "session-program": Explanation(
            "The session is that of a program of code mode: it has no model that could go on with it.",
            "Continue the session that began it: `treadle sessions --tree` shows which one.",
        ),
        "schedule-time": Explanation(
            "The time, the zone or the limit of a schedule cannot be used.",
            'Write the time like "every weekday 9:00", "every 30 minutes" or "2030-01-31 9:00".',
        ),
        "schedule-unknown": Explanation(
            "There is no schedule with the id that was given.", "`treadle schedule list` lists those that there are."
        ),
        "schedules-unreadable": Explanation(
            "The file with the schedules, `schedules.json` of the data folder, cannot be read or written.",
            "Correct it, or move it away and add the schedules again.",
        ),
    }
)
