"""new_rule: a rules file of the project, written after a yes like any control file."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct

from treadle.engine.ports import Prepared
from treadle.protocol.errors import ToolError
from treadle.protocol.tools import EditReport, ToolSpec
from treadle.tools.declarations import NEW_RULE, RULE_FOLDER
from treadle.tools.edit_apply import replace_whole
from treadle.tools.file_changes import Wanted, prepare_changes
from treadle.workspace.files.text_files import TextFile
from treadle.workspace.workspace import Workspace

_LONGEST = 32_768


class NewRule(Struct, frozen=True):
    """Creates or replaces one rules file."""

    workspace: Workspace

    @property
    def spec(self) -> ToolSpec:
        """The declaration."""
        return NEW_RULE

    async def prepare(self, arguments: Mapping[str, Any]) -> Prepared:
        """Compare the rule with what is there; only files of the rules folder are written."""
        content: str = arguments["content"]
        if not content.strip():
            raise ToolError("The rule is empty. Write what it says.", invalid=True)
        if len(content) > _LONGEST:
            raise ToolError(f"The rule is longer than {_LONGEST:,} characters. Write a shorter one.", invalid=True)
        path = _placed(arguments["path"])

        def rewrite(file: TextFile | None) -> tuple[str, EditReport]:
            return replace_whole(file.text if file else "", f"{content.strip()}\n", path)

        return await prepare_changes(self.workspace, (Wanted(path=path, rewrite=rewrite),))


def _placed(path: str) -> str:
    """Give the path of a rule in the rules folder; a bare name is one in it. Raises `ToolError` for any other."""
    asked = PurePosixPath(path.strip().removeprefix("./"))
    name = asked.name.removesuffix(".md")
    if not name or asked.parent not in (PurePosixPath(), PurePosixPath(RULE_FOLDER)):
        raise ToolError(
            f"A new rule is a file directly in {RULE_FOLDER}. Use a path such as {RULE_FOLDER}/testing.md; to change "
            "another rules file, edit it.",
            invalid=True,
        )
    return f"{RULE_FOLDER}/{name}.md"
