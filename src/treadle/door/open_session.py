"""An open session, in this process or in another one: what it takes, what it tells, and how far that reaches."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.models.ahead import load_ahead as load_ahead
    from treadle.app.security.op_effects import FROM_AFAR as FROM_AFAR
    from treadle.app.security.op_effects import Reach as Reach
    from treadle.app.security.op_effects import mode_effect as mode_effect
    from treadle.app.security.op_effects import op_effect as op_effect
    from treadle.app.session.files.answer_effects import answer_effect as answer_effect
    from treadle.app.session.files.edit_blocks import block_spans as block_spans
    from treadle.app.session.files.edit_blocks import block_texts as block_texts
    from treadle.app.session.files.edit_blocks import keep_blocks as keep_blocks
    from treadle.app.session.files.edit_blocks import with_block_texts as with_block_texts
    from treadle.app.session.files.edited_result import arguments_for_text as arguments_for_text
    from treadle.app.session.files.edited_result import is_text_of as is_text_of
    from treadle.app.session.files.edited_result import writes_one_text as writes_one_text
    from treadle.app.session.live import LiveSession as LiveSession
    from treadle.app.session.model_finder import require_sandbox as require_sandbox
    from treadle.app.session.own_commands.own_shell import Ended as Ended
    from treadle.app.session.own_commands.own_shell import OwnShell as OwnShell
    from treadle.app.session.parts import clock as clock
    from treadle.app.session.shared.access import ServersAccess as ServersAccess
    from treadle.app.session.shared.access import SessionAccess as SessionAccess
    from treadle.app.session.shared.remote import RemoteSession as RemoteSession
    from treadle.app.session.shared.session_wire import sharing_changed as sharing_changed
    from treadle.app.session.shared.sharing import Attendance as Attendance
    from treadle.app.session.shared.turn_asking import PromptRun as PromptRun
    from treadle.app.session.shared.turn_asking import SessionClient as SessionClient
    from treadle.engine.runtime.feeds import Feed as Feed
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.models.ahead": "load_ahead",
            "treadle.app.session.files.answer_effects": "answer_effect",
            "treadle.app.session.shared.turn_asking": "PromptRun SessionClient",
            "treadle.app.security.op_effects": "FROM_AFAR Reach mode_effect op_effect",
            "treadle.app.session.shared.access": "ServersAccess SessionAccess",
            "treadle.app.session.files.edit_blocks": "block_spans block_texts keep_blocks with_block_texts",
            "treadle.app.session.files.edited_result": "arguments_for_text is_text_of writes_one_text",
            "treadle.app.session.live": "LiveSession",
            "treadle.app.session.model_finder": "require_sandbox",
            "treadle.app.session.own_commands.own_shell": "Ended OwnShell",
            "treadle.app.session.parts": "clock",
            "treadle.app.session.shared.remote": "RemoteSession",
            "treadle.app.session.shared.sharing": "Attendance",
            "treadle.engine.runtime.feeds": "Feed",
            "treadle.app.session.shared.session_wire": "sharing_changed",
        },
    )
