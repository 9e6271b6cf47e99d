"""Reports: context, usage, health, jobs, the time line, audits."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.hosting.batch_control import ADDED_TASKS as ADDED_TASKS
    from treadle.app.hosting.batch_control import LONGEST_TASK_NAME as LONGEST_TASK_NAME
    from treadle.app.hosting.batch_control import TASK_NAME as TASK_NAME
    from treadle.app.hosting.batch_control import add_task as add_task
    from treadle.app.hosting.batch_control import batch_results as batch_results
    from treadle.app.hosting.batch_control import begin_again as begin_again
    from treadle.app.hosting.batch_control import has_results as has_results
    from treadle.app.hosting.batch_control import stop_batch as stop_batch
    from treadle.app.reports.agent_list import listed_agents as listed_agents
    from treadle.app.reports.audit_report import AuditRecord as AuditRecord
    from treadle.app.reports.audit_report import Verified as Verified
    from treadle.app.reports.audit_report import audit_session as audit_session
    from treadle.app.reports.audit_report import verify_sessions as verify_sessions
    from treadle.app.reports.budget_report import BudgetLine as BudgetLine
    from treadle.app.reports.budget_report import budget_report as budget_report
    from treadle.app.reports.budget_report import spent_today as spent_today
    from treadle.app.reports.context_report import ContextReport as ContextReport
    from treadle.app.reports.context_report import PricedBlock as PricedBlock
    from treadle.app.reports.context_report import block_text as block_text
    from treadle.app.reports.context_report import context_lines as context_lines
    from treadle.app.reports.context_report import context_report as context_report
    from treadle.app.reports.context_report import context_shares as context_shares
    from treadle.app.reports.context_report import known_model as known_model
    from treadle.app.reports.context_report import model_prices as model_prices
    from treadle.app.reports.context_report import next_request as next_request
    from treadle.app.reports.context_report import pinned_texts as pinned_texts
    from treadle.app.reports.context_report import request_steps as request_steps
    from treadle.app.reports.context_report import sent_request as sent_request
    from treadle.app.reports.doctor_checks import Check as Check
    from treadle.app.reports.doctor_checks import CheckStatus as CheckStatus
    from treadle.app.reports.doctor_checks import failed_check as failed_check
    from treadle.app.reports.doctor_report import examine as examine
    from treadle.app.reports.event_words import EventTopic as EventTopic
    from treadle.app.reports.extras import extra_of as extra_of
    from treadle.app.reports.installation import sandbox_checks as sandbox_checks
    from treadle.app.reports.job_list import JobLine as JobLine
    from treadle.app.reports.job_list import armed_lines as armed_lines
    from treadle.app.reports.job_list import end_timer as end_timer
    from treadle.app.reports.job_list import find_job as find_job
    from treadle.app.reports.job_list import kill_job as kill_job
    from treadle.app.reports.job_list import list_jobs as list_jobs
    from treadle.app.reports.job_list import session_jobs as session_jobs
    from treadle.app.reports.known_batches import BATCH_ABOUT as BATCH_ABOUT
    from treadle.app.reports.known_batches import batch_at_work as batch_at_work
    from treadle.app.reports.known_batches import batches_changed as batches_changed
    from treadle.app.reports.known_batches import find_batch as find_batch
    from treadle.app.reports.known_batches import keep_progress as keep_progress
    from treadle.app.reports.known_batches import known_batches as known_batches
    from treadle.app.reports.left_report import left_lines as left_lines
    from treadle.app.reports.left_report import left_notes as left_notes
    from treadle.app.reports.left_report import left_report as left_report
    from treadle.app.reports.project_file import project_lines as project_lines
    from treadle.app.reports.project_file import project_path as project_path
    from treadle.app.reports.prompt_parts import ShownPart as ShownPart
    from treadle.app.reports.prompt_parts import shown_prompt as shown_prompt
    from treadle.app.reports.run_health import circuit_lines as circuit_lines
    from treadle.app.reports.run_health import disk_report as disk_report
    from treadle.app.reports.run_health import found_keys as found_keys
    from treadle.app.reports.session_account import SessionAccount as SessionAccount
    from treadle.app.reports.session_account import session_account as session_account
    from treadle.app.reports.session_account import spent_by_run as spent_by_run
    from treadle.app.reports.step_list import PastStep as PastStep
    from treadle.app.reports.step_list import past_steps as past_steps
    from treadle.app.reports.step_list import steps_so_far as steps_so_far
    from treadle.app.reports.timeline_report import PAGE_EVENTS as PAGE_EVENTS
    from treadle.app.reports.timeline_report import Going as Going
    from treadle.app.reports.timeline_report import TimelinePage as TimelinePage
    from treadle.app.reports.timeline_report import event_detail as event_detail
    from treadle.app.reports.timeline_report import timeline_page as timeline_page
    from treadle.app.reports.tool_list import ToolLine as ToolLine
    from treadle.app.reports.tool_list import ToolList as ToolList
    from treadle.app.reports.tool_list import find_tool as find_tool
    from treadle.app.reports.tool_list import list_tools as list_tools
    from treadle.app.reports.usage_report import UsageKey as UsageKey
    from treadle.app.reports.usage_report import UsageReport as UsageReport
    from treadle.app.reports.usage_report import UsageRow as UsageRow
    from treadle.app.reports.usage_report import since_day as since_day
    from treadle.app.reports.usage_report import usage_lines as usage_lines
    from treadle.app.reports.usage_report import usage_report as usage_report
    from treadle.app.reports.usage_report import usage_reports as usage_reports
    from treadle.app.reports.usage_report import usage_weight as usage_weight
    from treadle.app.reports.whole_output import output_piece as output_piece
    from treadle.app.session.commands.shown_output import ShownOutput as ShownOutput
    from treadle.app.session.known_values import session_redactor as session_redactor
    from treadle.workspace.installed import extras as extras
    from treadle.workspace.installed import install_command as install_command
    from treadle.workspace.installed import installation as installation
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.hosting.batch_control": """
                ADDED_TASKS LONGEST_TASK_NAME TASK_NAME add_task batch_results begin_again has_results stop_batch
            """,
            "treadle.app.reports.known_batches": """
                BATCH_ABOUT batch_at_work batches_changed find_batch keep_progress known_batches
            """,
            "treadle.app.reports.agent_list": "listed_agents",
            "treadle.app.reports.audit_report": "AuditRecord Verified audit_session verify_sessions",
            "treadle.app.reports.budget_report": "BudgetLine budget_report spent_today",
            "treadle.app.reports.doctor_checks": "Check CheckStatus failed_check",
            "treadle.app.reports.context_report": """
                ContextReport PricedBlock block_text context_lines context_report context_shares known_model
                model_prices next_request pinned_texts request_steps sent_request
            """,
            "treadle.app.reports.doctor_report": "examine",
            "treadle.app.reports.event_words": "EventTopic",
            "treadle.app.reports.extras": "extra_of",
            "treadle.app.reports.installation": "sandbox_checks",
            "treadle.app.reports.job_list": "JobLine armed_lines end_timer find_job kill_job list_jobs session_jobs",
            "treadle.app.reports.left_report": "left_lines left_notes left_report",
            "treadle.app.reports.project_file": "project_lines project_path",
            "treadle.app.reports.prompt_parts": "ShownPart shown_prompt",
            "treadle.app.reports.run_health": "circuit_lines disk_report found_keys",
            "treadle.app.reports.session_account": "SessionAccount session_account spent_by_run",
            "treadle.app.reports.step_list": "PastStep past_steps steps_so_far",
            "treadle.app.reports.timeline_report": "Going PAGE_EVENTS TimelinePage event_detail timeline_page",
            "treadle.app.reports.tool_list": "ToolLine ToolList find_tool list_tools",
            "treadle.app.reports.usage_report": """
                UsageKey UsageReport UsageRow since_day usage_lines usage_report usage_reports usage_weight
            """,
            "treadle.app.reports.whole_output": "output_piece",
            "treadle.app.session.known_values": "session_redactor",
            "treadle.app.session.commands.shown_output": "ShownOutput",
            "treadle.workspace.installed": "extras install_command installation",
        },
    )
