"""Between the judgement and the run nothing can be put in the place of what is read."""

import os
from pathlib import Path

import pytest
from tests.tools.calls import prepare, text

from treadle.app.session.commands.judging import policy_context
from treadle.policy.decide import decide
from treadle.policy.rules import Ruleset
from treadle.protocol.errors import ToolError
from treadle.protocol.messages import text_of
from treadle.protocol.permissions import Mode, Standing, Verdict
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import Workspace

READS = {
    "read_file": {"path": "place/a.py"},
    "list_files": {"path": "place"},
    "search_files": {"path": "place", "regex": "def"},
    "list_code_definition_names": {"path": "place"},
}
TREE = {**READS, "list_files": {"path": "place", "recursive": True}}
ONE = {
    **READS,
    "list_code_definition_names": {"path": "place/a.py"},
    "search_files": {"path": "place/a.py", "regex": "d"},
}


@pytest.mark.parametrize("reads", [READS, TREE, ONE])
@pytest.mark.parametrize("name", READS)
async def test_a_link_that_is_swapped_in_after_the_judgement_is_not_followed(
    workspace: Workspace, name: str, reads: dict[str, dict[str, str]]
) -> None:
    place, secret = Path(workspace.root, "place"), Path(workspace.root).parent / "secret"
    for folder in (place, secret):
        folder.mkdir()
        (folder / "a.py").write_text(f"def {folder.name}(): ...\n")
    prepared = await prepare(workspace, name, **reads[name])
    place.rename(f"{place}.old")
    place.symlink_to(secret)
    with pytest.raises(ToolError, match="changed after this call was checked"):
        await prepared.run(lambda _: None)


@pytest.mark.parametrize("name", ["read_file", "search_files", "list_code_definition_names"])
async def test_a_file_with_another_name_asks_in_every_mode(workspace: Workspace, name: str) -> None:
    (Path(workspace.root).parent / "secret").write_text("def secret(): ...\n")
    os.link(Path(workspace.root).parent / "secret", Path(workspace.root, "a.py"))
    (tool,) = (tool for tool in builtin_tools(workspace) if tool.spec.name == name)
    arguments = {"path": "a.py", "regex": "d"} if name == "search_files" else {"path": "a.py"}
    prepared = await tool.prepare(arguments)
    for mode in (Mode.ASK, Mode.AUTO, Mode.FULL):
        context = policy_context(workspace.root, Standing(mode=mode), trusted=True, rules=Ruleset())
        decision = decide(tool.spec, arguments, prepared.accesses, context)
        assert decision.verdict is Verdict.REQUIRE_USER_CONFIRMATION
        assert decision.reasons[0].rule == "hard-link"
    assert "secret" in text_of((await prepared.run(lambda _: None)).content)


async def test_a_search_of_a_folder_tells_nothing_of_files_with_another_name(workspace: Workspace) -> None:
    (Path(workspace.root).parent / "secret").write_text("def secret(): ...\n")
    os.link(Path(workspace.root).parent / "secret", Path(workspace.root, "a.py"))
    Path(workspace.root, "b.py").write_text("def plain(): ...\n")
    assert await text(workspace, "search_files", path=".", regex="def") == (
        "b.py\n1: def plain(): ...\n\n[1 match in 1 file]"
    )
    assert await text(workspace, "list_code_definition_names", path=".") == "b.py\n1 | def plain(): ..."
