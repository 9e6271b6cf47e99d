"""A session after the fact: told again, exported, imported, replayed, restored; and sessions that are tests."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.history.as_test import export_as_test as export_as_test
    from treadle.app.history.branching import Branch as Branch
    from treadle.app.history.branching import branch_at_step as branch_at_step
    from treadle.app.history.branching import replay_folder as replay_folder
    from treadle.app.history.copied_replays import CopiedReplay as CopiedReplay
    from treadle.app.history.copied_replays import branch_in_copy as branch_in_copy
    from treadle.app.history.copied_replays import compared_replay as compared_replay
    from treadle.app.history.copied_replays import replays_of as replays_of
    from treadle.app.history.live_tools import DriftOutcome as DriftOutcome
    from treadle.app.history.live_tools import drift_lines as drift_lines
    from treadle.app.history.live_tools import run_tools_again as run_tools_again
    from treadle.app.history.offline import look_closed as look_closed
    from treadle.app.history.offline import restore_closed as restore_closed
    from treadle.app.history.replaying import ReplayReport as ReplayReport
    from treadle.app.history.replaying import replay_rows as replay_rows
    from treadle.app.history.replaying import report_lines as report_lines
    from treadle.app.history.replaying import session_tape as session_tape
    from treadle.app.history.restoring_turns import WentBack as WentBack
    from treadle.app.history.restoring_turns import go_back as go_back
    from treadle.app.history.restoring_turns import undo_of_restore as undo_of_restore
    from treadle.app.history.session_export import export_all as export_all
    from treadle.app.history.session_export import export_session as export_session
    from treadle.app.history.session_export import write_export as write_export
    from treadle.app.history.shared_file import FORMS as FORMS
    from treadle.app.history.shared_file import SharedFile as SharedFile
    from treadle.app.history.shared_file import SharePreview as SharePreview
    from treadle.app.history.shared_file import make_shared_file as make_shared_file
    from treadle.app.history.shared_file import preview_share as preview_share
    from treadle.app.history.taking_copies import TakenChanges as TakenChanges
    from treadle.app.history.taking_copies import copy_worked_in as copy_worked_in
    from treadle.app.history.taking_copies import take_changes as take_changes
    from treadle.app.history.taking_copies import times_taken as times_taken
    from treadle.app.history.taking_copies import undo_taken as undo_taken
    from treadle.app.importing.foreign_programs import import_plan as import_plan
    from treadle.app.importing.plan import plan_lines as plan_lines
    from treadle.app.importing.plan import take_over as take_over
    from treadle.app.importing.session_import import import_sessions as import_sessions
    from treadle.app.instruction_tests.running_tests import CheckedInstruction as CheckedInstruction
    from treadle.app.instruction_tests.running_tests import lines_of_tested as lines_of_tested
    from treadle.app.instruction_tests.running_tests import run_instruction_tests as run_instruction_tests
    from treadle.app.reports.copy_list import applied_text as applied_text
    from treadle.app.reports.copy_list import apply_copy as apply_copy
    from treadle.app.reports.copy_list import copies_text as copies_text
    from treadle.app.reports.copy_list import copy_rows as copy_rows
    from treadle.app.reports.copy_list import copy_text as copy_text
    from treadle.app.reports.copy_list import discard_copy as discard_copy
    from treadle.app.reports.copy_list import idle_copy as idle_copy
    from treadle.app.reports.copy_list import left_lines_of as left_lines_of
    from treadle.app.reports.copy_list import named_copy as named_copy
    from treadle.app.reports.copy_list import planned_copy as planned_copy
    from treadle.app.reports.session_text import as_it_ended as as_it_ended
    from treadle.app.reports.session_text import session_lines as session_lines
    from treadle.app.reports.session_text import session_past as session_past
    from treadle.app.session.files.session_checkpoints import Seen as Seen
    from treadle.app.subagents.writer_copies import WriterCopy as WriterCopy
    from treadle.app.subagents.writer_copies import found_copies as found_copies
    from treadle.app.subagents.writer_copies import left_copies as left_copies
    from treadle.app.subagents.writer_record import writers_folder as writers_folder
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.history.as_test": "export_as_test",
            "treadle.app.history.branching": "Branch branch_at_step replay_folder",
            "treadle.app.history.copied_replays": """
                CopiedReplay branch_in_copy compared_replay replays_of
            """,
            "treadle.app.history.live_tools": "DriftOutcome drift_lines run_tools_again",
            "treadle.app.history.offline": "look_closed restore_closed",
            "treadle.app.history.replaying": "ReplayReport replay_rows report_lines session_tape",
            "treadle.app.history.restoring_turns": "WentBack go_back undo_of_restore",
            "treadle.app.history.session_export": "export_all export_session write_export",
            "treadle.app.history.shared_file": "FORMS SharePreview SharedFile make_shared_file preview_share",
            "treadle.app.history.taking_copies": "TakenChanges copy_worked_in take_changes times_taken undo_taken",
            "treadle.app.importing.plan": "plan_lines take_over",
            "treadle.app.importing.foreign_programs": "import_plan",
            "treadle.app.importing.session_import": "import_sessions",
            "treadle.app.instruction_tests.running_tests": "CheckedInstruction run_instruction_tests lines_of_tested",
            "treadle.app.reports.copy_list": """
                applied_text apply_copy copies_text copy_rows copy_text
                discard_copy idle_copy left_lines_of named_copy planned_copy
            """,
            "treadle.app.reports.session_text": "as_it_ended session_lines session_past",
            "treadle.app.session.files.session_checkpoints": "Seen",
            "treadle.app.subagents.writer_copies": "WriterCopy found_copies left_copies",
            "treadle.app.subagents.writer_record": "writers_folder",
        },
    )
