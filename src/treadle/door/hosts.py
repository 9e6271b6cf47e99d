"""What programs bring that drive Treadle: their names of tools, hooks, and answers of a form."""

from typing import TYPE_CHECKING

from treadle.door import names_of

if TYPE_CHECKING:
    from treadle.app.config.foreign_tools import amended_arguments as amended_arguments
    from treadle.app.config.foreign_tools import claude_call as claude_call
    from treadle.app.config.foreign_tools import claude_names as claude_names
    from treadle.app.config.foreign_tools import claude_part as claude_part
    from treadle.app.hooks.hook_rows import HookAnswer as HookAnswer
    from treadle.app.hooks.hook_rows import HookFailedError as HookFailedError
    from treadle.app.hooks.hook_rows import HookHandler as HookHandler
    from treadle.app.hooks.hook_rows import HookRow as HookRow
    from treadle.app.hooks.opening_hooks import with_hooks_said as with_hooks_said
    from treadle.app.hosting.structured import NO_ANSWER as NO_ANSWER
    from treadle.app.hosting.structured import PROMPT as PROMPT
    from treadle.app.hosting.structured import StructuredAnswer as StructuredAnswer
    from treadle.app.hosting.structured import structured_answer as structured_answer
    from treadle.app.importing.claude_rules import ListedTools as ListedTools
    from treadle.app.importing.claude_rules import listed_tools as listed_tools
    from treadle.app.importing.claude_rules import server_tools as server_tools
    from treadle.app.importing.claude_rules import split_tools as split_tools
else:
    __getattr__ = names_of(
        __name__,
        {
            "treadle.app.importing.claude_rules": "ListedTools listed_tools server_tools split_tools",
            "treadle.app.config.foreign_tools": "amended_arguments claude_call claude_names claude_part",
            "treadle.app.hooks.hook_rows": "HookAnswer HookFailedError HookHandler HookRow",
            "treadle.app.hooks.opening_hooks": "with_hooks_said",
            "treadle.app.hosting.structured": "NO_ANSWER PROMPT StructuredAnswer structured_answer",
        },
    )
