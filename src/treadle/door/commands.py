"""The slash commands: their table, and what each does."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.session.ops import NOT_SENT as NOT_SENT
    from treadle.app.session.ops import asked_beside as asked_beside
    from treadle.app.session.own_commands.command_answers import CommandAnswer as CommandAnswer
    from treadle.app.session.own_commands.command_answers import TextToEdit as TextToEdit
    from treadle.app.session.own_commands.command_answers import wrong as wrong
    from treadle.app.session.own_commands.command_files import WRITTEN_HERE as WRITTEN_HERE
    from treadle.app.session.own_commands.command_files import NamedText as NamedText
    from treadle.app.session.own_commands.slash_commands import NEW_SESSION as NEW_SESSION
    from treadle.app.session.own_commands.slash_commands import SLASH_TABLE as SLASH_TABLE
    from treadle.app.session.own_commands.slash_commands import SlashCommand as SlashCommand
    from treadle.app.session.own_commands.slash_commands import Surfaces as Surfaces
    from treadle.app.session.own_commands.slash_commands import find_slash as find_slash
    from treadle.app.session.own_commands.slash_lines import is_shell_line as is_shell_line
    from treadle.app.session.own_commands.slash_lines import last_word as last_word
    from treadle.app.session.own_commands.slash_lines import nearest_slash as nearest_slash
    from treadle.app.session.own_commands.slash_lines import slash_word as slash_word
    from treadle.app.slash import answer_without_session as answer_without_session
    from treadle.app.slash import do_command as do_command
    from treadle.app.slash import named_texts as named_texts
    from treadle.app.slash.entering import answered_aside as answered_aside
    from treadle.app.slash.entering import entered_command as entered_command
    from treadle.app.slash.entering import not_here as not_here
    from treadle.app.slash.entering import run_entered as run_entered
    from treadle.app.slash.entering import with_outcome as with_outcome
    from treadle.app.slash.going_back import ListedTurn as ListedTurn
    from treadle.app.slash.going_back import TurnPreview as TurnPreview
    from treadle.app.slash.going_back import listed_turns as listed_turns
    from treadle.app.slash.going_back import preview_turn as preview_turn
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.session.own_commands.command_answers": "CommandAnswer TextToEdit wrong",
            "treadle.app.session.own_commands.command_files": "NamedText WRITTEN_HERE",
            "treadle.app.slash": "answer_without_session do_command named_texts",
            "treadle.app.slash.entering": "answered_aside entered_command not_here run_entered with_outcome",
            "treadle.app.slash.going_back": "ListedTurn TurnPreview listed_turns preview_turn",
            "treadle.app.session.own_commands.slash_commands": """
                NEW_SESSION SLASH_TABLE SlashCommand Surfaces find_slash
            """,
            "treadle.app.session.own_commands.slash_lines": "is_shell_line last_word nearest_slash slash_word",
            "treadle.app.session.ops": "NOT_SENT asked_beside",
        },
    )
