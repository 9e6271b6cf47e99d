"""Which tests prove the labelled cases of faults in tools, the terminal, processes and MCP servers."""

_TOOLS = "tests/e2e/faults/test_tool_faults.py"
_TERMINAL = "tests/e2e/faults/test_terminal_faults.py"
_PROCESSES = "tests/e2e/faults/test_process_faults.py"
_EDITS = "tests/tools/test_edits.py"
_SAVING = "tests/workspace/test_saving.py"
_FETCH = "tests/tools/test_web_fetch.py"
_BOX = "tests/workspace/sandbox/test_bubblewrap.py"
_BOUNDS = "tests/workspace/sandbox/test_bounds.py"
_ESCALATION = "tests/app/test_escalation.py"
_COMMANDS = "tests/workspace/test_process.py"
_SERVERS = "tests/mcp/test_faults.py"
_PEERS = "tests/mcp/test_peers.py"
_NETWORK = "tests/mcp/test_network.py"
_WITH_SERVERS = "tests/e2e/test_mcp.py"

AREAS = ("tool", "terminal", "process", "mcp")

PROVED: dict[str, tuple[str, ...]] = {
    "f-042": (f"{_TOOLS}::test_a_tool_that_raises_is_an_error_result_and_its_trace_is_in_the_programs_log",),
    "f-043": (f"{_TOOLS}::test_of_80_mebibytes_the_model_reads_head_and_tail_and_the_rest_is_in_a_file",),
    "f-044": (f"{_TOOLS}::test_bytes_that_are_no_text_are_replaced_or_escaped_and_the_log_stays_valid",),
    "f-045": (
        "tests/e2e/test_tasks.py::test_a_secret_of_the_environment_reaches_neither_the_model_nor_the_log_nor_the_screen",
    ),
    "f-046": (
        f"{_EDITS}::test_a_file_changed_since_the_model_read_it_must_be_read_again",
        f"{_EDITS}::test_a_change_by_the_user_after_the_preview_wins",
    ),
    "f-047": (
        f"{_EDITS}::test_an_edit_that_cannot_be_applied_is_judged_as_a_read_and_then_explained",
        "tests/editing/test_refusals.py::test_text_that_fits_twice_is_refused_with_its_places",
    ),
    "f-048": (
        f"{_TOOLS}::test_a_crash_between_the_new_file_and_its_name_leaves_the_old_one_and_the_next_start_tidies_up",
    ),
    "f-049": (
        f"{_SAVING}::test_a_really_full_file_system_leaves_the_file_as_it_was",
        f"{_SAVING}::test_a_full_disk_leaves_the_file_as_it_was",
    ),
    "f-050": (
        f"{_SAVING}::test_a_read_only_file_is_left_alone",
        f"{_SAVING}::test_a_directory_without_write_permission_leaves_the_file_as_it_was",
    ),
    "f-051": (
        f"{_EDITS}::test_an_edit_keeps_line_ends_mark_and_encoding",
        f"{_SAVING}::test_mode_and_attributes_stay",
        f"{_SAVING}::test_the_owner_stays",
    ),
    "f-052": (f"{_EDITS}::test_a_patch_that_fails_in_one_file_changes_none",),
    "f-053": (
        f"{_TOOLS}::test_a_folder_swapped_for_a_link_after_the_approval_is_not_written_through",
        f"{_SAVING}::test_a_link_put_in_after_the_path_was_resolved_is_refused",
    ),
    "f-054": (f"{_TOOLS}::test_a_link_that_is_swapped_in_at_any_moment_is_never_written_through",),
    "f-055": (
        f"{_TOOLS}::test_two_edits_of_one_file_in_one_reply_are_both_made_one_after_the_other",
        f"{_TOOLS}::test_the_second_of_two_edits_of_the_same_line_is_refused",
        f"{_EDITS}::test_the_second_of_two_edits_prepared_on_the_same_text_is_refused",
    ),
    "f-056": (f"{_TOOLS}::test_a_rejected_call_is_a_result_and_is_not_repeated_nor_are_the_calls_after_it_run",),
    "f-057": ("tests/e2e/test_tasks.py::test_edits_mode_keeps_the_edits_and_nothing_of_what_commands_changed",),
    "f-058": (
        f"{_TERMINAL}::test_a_call_that_is_asked_about_when_the_program_is_killed_is_asked_about_again",
        f"{_TOOLS}::test_a_call_that_waited_for_an_answer_when_the_program_ended_is_asked_again",
    ),
    "f-059": (
        f"{_TOOLS}::test_what_changed_after_the_approval_is_not_what_was_approved",
        f"{_TOOLS}::test_an_approval_does_not_hold_for_another_text",
    ),
    "f-060": (f"{_TOOLS}::test_a_call_that_fails_the_same_way_again_and_again_ends_the_turn_or_asks",),
    "f-061": (
        f"{_FETCH}::test_a_redirect_to_another_host_is_told_and_not_followed",
        f"{_FETCH}::test_a_redirect_to_another_port_of_this_machine_is_refused",
        f"{_FETCH}::test_a_name_that_leads_to_this_machine_is_refused_and_nothing_is_sent",
        f"{_FETCH}::test_addresses_that_hand_out_credentials_are_never_reached",
        f"{_FETCH}::test_the_checked_address_is_the_one_that_is_connected_to",
    ),
    "f-062": ("tests/policy/test_urls.py::test_a_host_matches_exactly_or_below_a_dot",),
    "f-080": (
        f"{_SERVERS}::test_a_server_that_does_not_start_is_marked_failed_with_the_reason",
        f"{_SERVERS}::test_a_command_that_no_system_takes_stops_no_other_server",
    ),
    "f-081": (f"{_SERVERS}::test_a_server_that_never_answers_has_a_time_limit_and_delays_nobody",),
    "f-082": (
        f"{_SERVERS}::test_a_server_that_dies_in_a_call_ends_the_call_and_is_started_again",
        f"{_SERVERS}::test_a_server_that_cannot_be_started_again_is_given_up",
    ),
    "f-083": (
        f"{_SERVERS}::test_lines_that_are_no_message_are_skipped_and_counted",
        f"{_SERVERS}::test_too_many_lines_that_are_no_message_end_a_server",
    ),
    "f-084": (f"{_SERVERS}::test_a_flood_on_standard_error_is_drained_and_bounded",),
    "f-085": (f"{_SERVERS}::test_answers_with_unknown_or_repeated_ids_are_ignored",),
    "f-086": (f"{_SERVERS}::test_a_call_beyond_its_time_is_cancelled_and_its_late_answer_dropped",),
    "f-087": (
        f"{_SERVERS}::test_a_tool_that_changes_is_not_used_until_it_is_approved",
        f"{_WITH_SERVERS}::test_a_changed_tool_is_left_out_until_it_is_approved",
    ),
    "f-088": (f"{_SERVERS}::test_what_a_server_says_of_itself_lowers_no_risk_unless_it_is_trusted",),
    "f-089": (
        f"{_SERVERS}::test_two_servers_with_the_same_names_are_kept_apart",
        "tests/mcp/test_session.py::test_tools_come_and_go_between_steps_and_take_no_names",
    ),
    "f-090": (
        f"{_SERVERS}::test_hidden_characters_of_a_description_are_shown",
        f"{_WITH_SERVERS}::test_names_of_a_server_do_not_steer_the_terminal",
    ),
    "f-091": (f"{_WITH_SERVERS}::test_the_servers_of_a_folder_start_only_after_trust_and_as_they_were_trusted",),
    "f-092": (
        f"{_PEERS}::test_without_anybody_a_server_that_asks_is_answered_at_once",
        f"{_WITH_SERVERS}::test_a_person_says_yes_to_the_first_use_and_answers_what_the_server_asks",
        f"{_SERVERS}::test_what_a_server_asks_while_nothing_runs_is_told_once",
    ),
    "f-093": (
        f"{_NETWORK}::test_an_expired_session_is_begun_again_once",
        f"{_NETWORK}::test_a_session_that_expires_again_fails_the_call",
    ),
    "f-094": (
        f"{_SERVERS}::test_a_large_result_is_cut_and_one_beyond_the_bound_is_an_error",
        f"{_NETWORK}::test_an_answer_beyond_the_bound_fails_the_call_and_the_server_stays_usable",
    ),
    "f-095": (
        f"{_SERVERS}::test_a_server_that_ignores_everything_is_gone_after_the_session",
        f"{_WITH_SERVERS}::test_nothing_is_left_of_the_servers_of_a_killed_program",
    ),
    "f-096": (f"{_TERMINAL}::test_a_storm_of_resizes_while_a_reply_streams_ends_in_the_right_layout",),
    "f-097": (
        "tests/e2e/test_bad_input.py::test_a_reader_that_leaves_early_ends_the_program_quietly",
        "tests/e2e/test_bad_input.py::test_a_reader_of_the_stream_that_leaves_ends_the_turn_resumably",
    ),
    "f-098": (f"{_TERMINAL}::test_what_is_no_terminal_gets_no_control_sequences",),
    "f-099": (
        f"{_TERMINAL}::test_a_signal_to_end_in_the_terminal_ends_the_children_and_gives_the_terminal_back",
        f"{_TERMINAL}::test_a_signal_to_end_without_a_terminal_ends_the_children_and_keeps_the_log",
    ),
    "f-100": (f"{_TERMINAL}::test_the_terminal_of_a_crashed_session_is_put_right_by_the_next_one",),
    "f-101": (f"{_TERMINAL}::test_a_session_that_was_stopped_goes_on_in_the_foreground",),
    "f-102": (f"{_TERMINAL}::test_a_paste_of_five_mebibytes_is_one_prompt",),
    "f-103": (f"{_TERMINAL}::test_a_command_with_characters_that_hide_is_shown_escaped_and_escape_is_no",),
    "f-104": (f"{_TERMINAL}::test_a_command_of_400_lines_shows_its_end_and_all_of_it_in_the_pager_and_escape_is_no",),
    "f-105": (
        f"{_TERMINAL}::test_keys_typed_before_the_question_do_not_answer_it",
        "tests/tui/test_surface.py::test_what_is_typed_goes_to_the_draft_and_the_question_waits_for_tab",
    ),
    "f-106": (f"{_PROCESSES}::test_a_command_over_its_time_is_ended_with_its_group_and_what_it_printed_is_kept",),
    "f-107": (
        f"{_PROCESSES}::test_a_command_over_its_time_is_ended_with_its_group_and_what_it_printed_is_kept",
        f"{_COMMANDS}::test_a_cancelled_command_leaves_nothing_even_if_it_ignores_the_request_to_end",
    ),
    "f-108": (
        f"{_PROCESSES}::test_what_keeps_the_output_open_or_daemonises_does_not_keep_the_result_and_ends_with_the_session",
        f"{_COMMANDS}::test_a_child_that_keeps_the_output_open_does_not_keep_the_result",
    ),
    "f-109": (
        f"{_PROCESSES}::test_what_keeps_the_output_open_or_daemonises_does_not_keep_the_result_and_ends_with_the_session",
        f"{_COMMANDS}::test_what_daemonises_is_reported_and_ended_too",
    ),
    "f-110": (f"{_PROCESSES}::test_a_command_that_asks_for_a_password_fails_at_once",),
    "f-111": (f"{_PROCESSES}::test_a_command_that_asks_for_a_password_fails_at_once",),
    "f-112": (
        f"{_PROCESSES}::test_an_endless_flood_is_ended_at_the_hard_limit",
        f"{_COMMANDS}::test_endless_output_stays_within_bounds",
    ),
    "f-113": (
        f"{_PROCESSES}::test_a_fork_bomb_stops_at_the_bound_and_is_ended",
        f"{_BOUNDS}::test_the_number_of_processes_is_bounded_also_for_root",
    ),
    "f-114": (
        f"{_PROCESSES}::test_memory_that_runs_out_costs_the_command_and_not_the_program",
        f"{_BOUNDS}::test_memory_is_bounded_over_all_processes",
    ),
    "f-115": (f"{_PROCESSES}::test_a_killed_program_takes_all_its_commands_along",),
    "f-116": (
        "tests/app/test_sandbox_state.py::test_what_needs_a_sandbox_does_not_start_without",
        "tests/app/test_sandbox_state.py::test_a_session_does_not_change_to_auto_without_a_sandbox",
        "tests/policy/test_decide.py::test_auto_mode_runs_code_only_in_the_sandbox",
        f"{_BOX}::test_a_sandbox_that_cannot_be_set_up_runs_nothing",
        "tests/workspace/sandbox/test_probe.py::test_without_bubblewrap_that_is_said",
    ),
    "f-117": (
        f"{_ESCALATION}::test_a_yes_opens_the_one_folder_for_the_one_run",
        f"{_ESCALATION}::test_a_no_leaves_it_at_the_failure",
        f"{_ESCALATION}::test_nobody_there_means_no_question_and_no_right",
    ),
    "f-118": ("tests/workspace/sandbox/test_made.py::test_what_was_made_is_moved_and_said",),
    "f-119": (f"{_PROCESSES}::test_death_by_a_signal_is_told_from_a_status",),
    "f-120": (
        f"{_PROCESSES}::test_a_folder_that_a_command_removed_below_itself_is_left_for_the_root",
        f"{_COMMANDS}::test_a_directory_that_is_gone_is_said_and_one_that_comes_back_is_used",
    ),
    "f-121": (
        f"{_PROCESSES}::test_the_keys_of_the_program_are_not_in_the_environment_of_a_command",
        f"{_COMMANDS}::test_provider_keys_do_not_reach_the_command",
    ),
}
"""By the id of the case; where a fault shows in several places, each has its test."""

NOT_YET: dict[str, str] = {}
"""Cases that the product does not meet yet, and what is missing."""
