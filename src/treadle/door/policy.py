"""What would be allowed and why, what was decided, and the rules."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.reports.mode_table import mode_table as mode_table
    from treadle.app.reports.past_decisions import DecisionFilter as DecisionFilter
    from treadle.app.reports.past_decisions import past_decisions as past_decisions
    from treadle.app.reports.policy_explain import asked_context as asked_context
    from treadle.app.reports.policy_explain import explain_access as explain_access
    from treadle.app.reports.policy_explain import explanation_lines as explanation_lines
    from treadle.app.reports.policy_explain import path_access as path_access
    from treadle.app.reports.policy_past import Alternative as Alternative
    from treadle.app.reports.policy_past import Replay as Replay
    from treadle.app.reports.policy_past import Suggestion as Suggestion
    from treadle.app.reports.policy_past import add_suggestions as add_suggestions
    from treadle.app.reports.policy_past import found_suggestions as found_suggestions
    from treadle.app.reports.policy_past import judged_calls as judged_calls
    from treadle.app.reports.policy_past import past_calls as past_calls
    from treadle.app.reports.policy_past import read_policy_file as read_policy_file
    from treadle.app.security.approvals import revoke_rule as revoke_rule
    from treadle.app.security.policy_show import policy_lines as policy_lines
    from treadle.app.security.policy_show import read_policy as read_policy
    from treadle.app.session.commands.trying import describe_tried as describe_tried
    from treadle.app.session.commands.trying import record_of as record_of
    from treadle.app.session.commands.trying import try_command as try_command
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.reports.mode_table": "mode_table",
            "treadle.app.reports.past_decisions": "DecisionFilter past_decisions",
            "treadle.app.reports.policy_explain": "asked_context explain_access explanation_lines path_access",
            "treadle.app.reports.policy_past": """
                Alternative Replay Suggestion add_suggestions found_suggestions judged_calls past_calls
                read_policy_file
            """,
            "treadle.app.security.approvals": "revoke_rule",
            "treadle.app.security.policy_show": "policy_lines read_policy",
            "treadle.app.session.commands.trying": "describe_tried record_of try_command",
        },
    )
