"""How the user stands to a folder."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.security.asked_trust import NOTHING_RUNS as NOTHING_RUNS
    from treadle.app.security.asked_trust import asked_trust as asked_trust
    from treadle.app.security.asked_trust import keep_trust_answer as keep_trust_answer
    from treadle.app.security.asked_trust import nothing_acts as nothing_acts
    from treadle.app.security.trusted_rules import allow_lines as allow_lines
    from treadle.app.security.trusted_rules import allow_rules as allow_rules
    from treadle.app.security.trusting import SessionTrust as SessionTrust
    from treadle.app.security.trusting import session_trust as session_trust
    from treadle.app.security.trusting import shown_path as shown_path
    from treadle.app.security.trusting import trust_command as trust_command
    from treadle.app.security.trusting import trust_lines as trust_lines
    from treadle.app.security.trusting import trust_store as trust_store
    from treadle.app.security.trusting import trusted_by_variable as trusted_by_variable
    from treadle.app.security.trusting import trusted_folders as trusted_folders
    from treadle.app.security.trusting import whole_trust as whole_trust
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.security.asked_trust": "NOTHING_RUNS asked_trust keep_trust_answer nothing_acts",
            "treadle.app.security.trusted_rules": "allow_lines allow_rules",
            "treadle.app.security.trusting": """
                SessionTrust session_trust shown_path trust_command trust_lines trust_store trusted_by_variable
                trusted_folders whole_trust
            """,
        },
    )
