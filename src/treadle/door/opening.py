"""Sessions and their parts: opened, resumed, attached to, and found by their folders."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.compose import MODEL_FLAGS as MODEL_FLAGS
    from treadle.app.compose import Opening as Opening
    from treadle.app.compose import last_session as last_session
    from treadle.app.compose import list_sessions as list_sessions
    from treadle.app.compose import open_session as open_session
    from treadle.app.compose import open_store as open_store
    from treadle.app.compose import session_log as session_log
    from treadle.app.compose import session_workspace as session_workspace
    from treadle.app.compose import tool_specs as tool_specs
    from treadle.app.config.places import check_workspace as check_workspace
    from treadle.app.hosting.own_parts import Clock as Clock
    from treadle.app.hosting.own_parts import FileAccess as FileAccess
    from treadle.app.hosting.own_parts import OwnModel as OwnModel
    from treadle.app.hosting.own_parts import OwnTool as OwnTool
    from treadle.app.hosting.own_parts import Provider as Provider
    from treadle.app.hosting.own_parts import as_model as as_model
    from treadle.app.hosting.own_parts import as_tools as as_tools
    from treadle.app.hosting.own_parts import only_these as only_these
    from treadle.app.hosting.own_parts import trust_for as trust_for
    from treadle.app.processes.attaching import attach_session as attach_session
    from treadle.app.processes.attaching import is_session_open as is_session_open
    from treadle.app.processes.session_parts import LogPart as LogPart
    from treadle.app.processes.session_parts import end_process as end_process
    from treadle.app.processes.session_parts import home_name as home_name
    from treadle.app.processes.session_parts import is_process_gone as is_process_gone
    from treadle.app.processes.session_parts import last_in_common as last_in_common
    from treadle.app.processes.session_parts import log_part as log_part
    from treadle.app.processes.session_parts import put_log_back as put_log_back
    from treadle.app.processes.session_parts import session_sums as session_sums
    from treadle.app.processes.session_parts import this_process as this_process
    from treadle.app.processes.session_parts import whole_log as whole_log
    from treadle.app.processes.task_copies import ProjectCopy as ProjectCopy
    from treadle.app.processes.task_copies import apply_project_patch as apply_project_patch
    from treadle.app.processes.task_copies import copy_project as copy_project
    from treadle.app.processes.task_copies import mirror_of as mirror_of
    from treadle.app.processes.task_copies import project_patch as project_patch
    from treadle.app.processes.task_copies import remove_project_copy as remove_project_copy
    from treadle.app.reports.edit_report import edit_ledger as edit_ledger
    from treadle.app.schedules.schedule_book import Schedule as Schedule
    from treadle.app.schedules.schedule_book import ScheduledRun as ScheduledRun
    from treadle.app.schedules.schedule_book import add_schedule as add_schedule
    from treadle.app.schedules.schedule_book import own_zone as own_zone
    from treadle.app.schedules.schedule_book import pause_schedule as pause_schedule
    from treadle.app.schedules.schedule_book import read_schedules as read_schedules
    from treadle.app.schedules.schedule_book import remove_schedule as remove_schedule
    from treadle.app.schedules.schedule_list import RUN_BY as RUN_BY
    from treadle.app.schedules.schedule_list import last_scheduled as last_scheduled
    from treadle.app.schedules.schedule_list import next_words as next_words
    from treadle.app.schedules.schedule_list import past_words as past_words
    from treadle.app.schedules.schedule_list import schedule_rows as schedule_rows
    from treadle.app.schedules.schedule_list import schedules_text as schedules_text
    from treadle.app.schedules.schedule_list import stopped_runs as stopped_runs
    from treadle.app.schedules.schedule_runs import run_left_out as run_left_out
    from treadle.app.schedules.schedule_runs import run_schedules as run_schedules
    from treadle.app.session.children.writing import named_copy_trust as named_copy_trust
    from treadle.app.session.mentions.repository_state import branch_of as branch_of
    from treadle.app.session.parts import RunShare as RunShare
    from treadle.app.session.parts import new_session_id as new_session_id
    from treadle.app.session.parts import require_queue as require_queue
    from treadle.app.subagents.agent_files import AgentFile as AgentFile
    from treadle.app.subagents.agent_files import read_agent_file as read_agent_file
    from treadle.app.subagents.said_agents import said_agents as said_agents
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.processes.attaching": "attach_session is_session_open",
            "treadle.app.processes.session_parts": """
                LogPart end_process home_name is_process_gone last_in_common log_part put_log_back session_sums
                this_process whole_log
            """,
            "treadle.app.processes.task_copies": """
                ProjectCopy apply_project_patch copy_project mirror_of project_patch remove_project_copy
            """,
            "treadle.app.schedules.schedule_book": """
                Schedule ScheduledRun add_schedule own_zone pause_schedule read_schedules remove_schedule
            """,
            "treadle.app.schedules.schedule_list": """
                RUN_BY last_scheduled next_words past_words schedule_rows schedules_text stopped_runs
            """,
            "treadle.app.schedules.schedule_runs": "run_left_out run_schedules",
            "treadle.app.session.children.writing": "named_copy_trust",
            "treadle.app.session.mentions.repository_state": "branch_of",
            "treadle.app.compose": """
                MODEL_FLAGS Opening last_session list_sessions open_session
                open_store session_log session_workspace tool_specs
            """,
            "treadle.app.config.places": "check_workspace",
            "treadle.app.hosting.own_parts": """
                Clock FileAccess OwnModel OwnTool Provider as_model as_tools only_these trust_for
            """,
            "treadle.app.reports.edit_report": "edit_ledger",
            "treadle.app.session.parts": "RunShare new_session_id require_queue",
            "treadle.app.subagents.agent_files": "AgentFile read_agent_file",
            "treadle.app.subagents.said_agents": "said_agents",
        },
    )
