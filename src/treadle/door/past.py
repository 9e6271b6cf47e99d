"""The sessions that there are: listed, found, kept and ended."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.checkpoints.points import Points as Points
    from treadle.app.history.entries import end_of_entry as end_of_entry
    from treadle.app.history.entries import entry_uuid as entry_uuid
    from treadle.app.history.forking import copy_elsewhere as copy_elsewhere
    from treadle.app.history.forking import copy_whole as copy_whole
    from treadle.app.history.keeping_sessions import archive_sessions as archive_sessions
    from treadle.app.history.keeping_sessions import delete_session as delete_session
    from treadle.app.history.keeping_sessions import find_session as find_session
    from treadle.app.history.keeping_sessions import old_sessions as old_sessions
    from treadle.app.history.keeping_sessions import rename_session as rename_session
    from treadle.app.history.keeping_sessions import unarchive_session as unarchive_session
    from treadle.app.history.pinned_sessions import pin_session as pin_session
    from treadle.app.history.pinned_sessions import pinned_sessions as pinned_sessions
    from treadle.app.processes.stopping import StoppedSession as StoppedSession
    from treadle.app.processes.stopping import StopResult as StopResult
    from treadle.app.processes.stopping import stop_background as stop_background
    from treadle.app.processes.stopping import stop_sessions as stop_sessions
    from treadle.app.reports.known_sessions import DAMAGED as DAMAGED
    from treadle.app.reports.known_sessions import LEFT_OFF as LEFT_OFF
    from treadle.app.reports.known_sessions import UNREADABLE as UNREADABLE
    from treadle.app.reports.known_sessions import ListedSession as ListedSession
    from treadle.app.reports.known_sessions import SessionState as SessionState
    from treadle.app.reports.known_sessions import how_it_ended as how_it_ended
    from treadle.app.reports.known_sessions import listed_runs as listed_runs
    from treadle.app.reports.known_sessions import listed_sessions as listed_sessions
    from treadle.app.reports.known_sessions import worked_folders as worked_folders
    from treadle.app.reports.listed_words import end_words as end_words
    from treadle.app.reports.listed_words import listed_words as listed_words
    from treadle.app.reports.listed_words import state_words as state_words
    from treadle.app.reports.session_search import FoundPlace as FoundPlace
    from treadle.app.reports.session_search import found_places as found_places
    from treadle.store.keeping import count_subagents as count_subagents
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.checkpoints.points": "Points",
            "treadle.app.history.entries": "end_of_entry entry_uuid",
            "treadle.app.history.forking": "copy_elsewhere copy_whole",
            "treadle.app.history.keeping_sessions": """
                archive_sessions delete_session find_session old_sessions rename_session unarchive_session
            """,
            "treadle.app.history.pinned_sessions": "pin_session pinned_sessions",
            "treadle.app.reports.known_sessions": """
                DAMAGED LEFT_OFF UNREADABLE ListedSession SessionState how_it_ended listed_runs listed_sessions
                worked_folders
            """,
            "treadle.app.reports.listed_words": "end_words listed_words state_words",
            "treadle.app.reports.session_search": "FoundPlace found_places",
            "treadle.app.processes.stopping": "StopResult StoppedSession stop_background stop_sessions",
            "treadle.store.keeping": "count_subagents",
        },
    )
