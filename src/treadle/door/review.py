"""What a session changed in the files, hunk by hunk, its checkpoints, and what a review of changes finds."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.checkpoints.conflicts import FileConflict as FileConflict
    from treadle.app.checkpoints.opening_checkpoints import opened_checkpoints as opened_checkpoints
    from treadle.app.checkpoints.reviewing import FileChoice as FileChoice
    from treadle.app.checkpoints.reviewing import FileToReview as FileToReview
    from treadle.app.checkpoints.reviewing import HunkChoice as HunkChoice
    from treadle.app.checkpoints.reviewing import ReviewedHunk as ReviewedHunk
    from treadle.app.checkpoints.reviewing import SessionReview as SessionReview
    from treadle.app.code_review.applying_findings import apply_finding as apply_finding
    from treadle.app.code_review.changes_to_review import changes_in_words as changes_in_words
    from treadle.app.code_review.changes_to_review import changes_to_review as changes_to_review
    from treadle.app.code_review.finding_book import last_reviewed as last_reviewed
    from treadle.app.code_review.finding_book import numbered_finding as numbered_finding
    from treadle.app.code_review.review_run import ReviewEffort as ReviewEffort
    from treadle.app.code_review.review_run import ReviewReport as ReviewReport
    from treadle.app.code_review.review_run import finding_lines as finding_lines
    from treadle.app.code_review.review_run import record_of_review as record_of_review
    from treadle.app.code_review.review_run import run_review as run_review
    from treadle.app.reports.checkpoint_list import ListedCheckpoint as ListedCheckpoint
    from treadle.app.reports.checkpoint_list import RestorePreview as RestorePreview
    from treadle.app.reports.checkpoint_list import changed_since as changed_since
    from treadle.app.reports.checkpoint_list import listed_checkpoints as listed_checkpoints
    from treadle.app.reports.checkpoint_list import own_files as own_files
    from treadle.app.reports.checkpoint_list import preview_lines as preview_lines
    from treadle.app.reports.checkpoint_list import restore_preview as restore_preview
    from treadle.app.reports.session_review import ReviewComment as ReviewComment
    from treadle.app.reports.session_review import answered_prompts as answered_prompts
    from treadle.app.reports.session_review import comments_message as comments_message
    from treadle.app.reports.session_review import mark_reviewed as mark_reviewed
    from treadle.app.reports.session_review import open_review as open_review
    from treadle.app.reports.session_review import review_marks as review_marks
    from treadle.app.reports.session_review import review_steps as review_steps
    from treadle.app.reports.session_review import turn_checkpoint as turn_checkpoint
    from treadle.app.session.mentions.repository_state import in_repository as in_repository
    from treadle.app.slash.committing import CommitPlan as CommitPlan
    from treadle.app.slash.committing import commit_files as commit_files
    from treadle.app.slash.committing import commit_programs as commit_programs
    from treadle.app.slash.committing import handing_on as handing_on
    from treadle.app.slash.committing import last_message as last_message
    from treadle.app.slash.committing import last_subjects as last_subjects
    from treadle.app.slash.committing import plan_commit as plan_commit
    from treadle.app.slash.pushing import HandingOn as HandingOn
    from treadle.app.slash.pushing import push_line as push_line
    from treadle.app.slash.pushing import request_line as request_line
    from treadle.app.slash.shown_commands import run_shown as run_shown
    from treadle.editing.shown_edits import defined_in as defined_in
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.slash.committing": """
                CommitPlan commit_files commit_programs handing_on last_message last_subjects plan_commit
            """,
            "treadle.app.slash.pushing": "HandingOn push_line request_line",
            "treadle.app.slash.shown_commands": "run_shown",
            "treadle.app.session.mentions.repository_state": "in_repository",
            "treadle.app.checkpoints.conflicts": "FileConflict",
            "treadle.app.checkpoints.opening_checkpoints": "opened_checkpoints",
            "treadle.app.checkpoints.reviewing": "FileChoice FileToReview HunkChoice ReviewedHunk SessionReview",
            "treadle.app.code_review.applying_findings": "apply_finding",
            "treadle.app.code_review.changes_to_review": "changes_to_review changes_in_words",
            "treadle.app.code_review.finding_book": "last_reviewed numbered_finding",
            "treadle.app.code_review.review_run": """
                ReviewEffort ReviewReport finding_lines record_of_review run_review
            """,
            "treadle.app.reports.checkpoint_list": """
                ListedCheckpoint RestorePreview changed_since listed_checkpoints own_files preview_lines restore_preview
            """,
            "treadle.app.reports.session_review": """
                ReviewComment answered_prompts comments_message mark_reviewed open_review review_marks review_steps
                turn_checkpoint
            """,
            "treadle.editing.shown_edits": "defined_in",
        },
    )
