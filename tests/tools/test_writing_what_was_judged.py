"""A change is made where it was judged, whatever links do between the plan, the judgement and the run."""

from pathlib import Path

import pytest
from tests.tools.calls import prepare

from treadle.app.session.commands.judging import policy_context
from treadle.engine.ports import Prepared
from treadle.policy.decide import decide
from treadle.policy.rules import Ruleset
from treadle.protocol.errors import ToolError
from treadle.protocol.permissions import Mode, Standing, Verdict
from treadle.tools.tool_catalogue import builtin_tools
from treadle.workspace.workspace import Workspace

_NEW = {
    "write_to_file": {"path": "place/new.py", "content": "x = 1\n"},
    "apply_patch": {"patch": "*** Begin Patch\n*** Add File: place/new.py\n+x = 1\n*** End Patch"},
}
_CHANGE = {
    "write_to_file": {"path": "place/a.py", "content": "x = 1\n"},
    "replace_in_file": {"path": "place/a.py", "diff": "<<<<<<< SEARCH\nfirst\n=======\nsecond\n>>>>>>> REPLACE"},
    "apply_patch": {"patch": "*** Begin Patch\n*** Update File: place/a.py\n@@\n-first\n+second\n*** End Patch"},
}
_MOVE = {"patch": "*** Begin Patch\n*** Update File: place/a.py\n*** Move to: b.py\n@@\n-first\n+second\n*** End Patch"}
_WRONG = {"path": "place/a.py", "diff": "<<<<<<< SEARCH\nfirts\n=======\nsecond\n>>>>>>> REPLACE"}


@pytest.fixture
def folders(workspace: Workspace) -> tuple[Path, Path]:
    """A folder of the workspace and one beside it, which hold the same file."""
    inside, outside = Path(workspace.root, "place"), Path(workspace.root).parent / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "a.py").write_text("first\n")
    return inside, outside


def _lead_to(place: Path, target: Path) -> None:
    """Put a link to a folder in the place of another."""
    place.rename(place.with_name("aside"))
    place.symlink_to(target)


def _lead_back(place: Path) -> None:
    place.unlink()
    place.with_name("aside").rename(place)


def _verdict(workspace: Workspace, name: str, prepared: Prepared) -> Verdict:
    spec = next(tool.spec for tool in builtin_tools(workspace) if tool.spec.name == name)
    context = policy_context(
        workspace.root, Standing(mode=Mode.EDITS), home="/home/somebody", trusted=True, rules=Ruleset()
    )
    return decide(spec, {}, prepared.accesses, context).verdict


@pytest.mark.parametrize(("name", "arguments"), [*_NEW.items(), *_CHANGE.items(), ("apply_patch", _MOVE)])
async def test_a_change_that_was_planned_elsewhere_asks_although_the_link_is_gone(
    workspace: Workspace, folders: tuple[Path, Path], name: str, arguments: dict[str, str]
) -> None:
    _lead_to(*folders)
    prepared = await prepare(workspace, name, **arguments)
    _lead_back(folders[0])
    assert _verdict(workspace, name, prepared) is Verdict.REQUIRE_USER_CONFIRMATION


@pytest.mark.parametrize(("name", "arguments"), [*_NEW.items(), *_CHANGE.items(), ("apply_patch", _MOVE)])
async def test_a_link_that_is_swapped_in_after_the_judgement_is_not_written_through(
    workspace: Workspace, folders: tuple[Path, Path], name: str, arguments: dict[str, str]
) -> None:
    inside, outside = folders
    prepared = await prepare(workspace, name, **arguments)
    assert _verdict(workspace, name, prepared) is Verdict.ALLOW
    _lead_to(inside, outside)
    with pytest.raises(ToolError):
        await prepared.run(lambda _: None)
    assert [(file.name, file.read_text()) for file in outside.iterdir()] == [("a.py", "first\n")]


async def test_what_an_impossible_change_tells_of_a_file_elsewhere_asks(
    workspace: Workspace, folders: tuple[Path, Path]
) -> None:
    _lead_to(*folders)
    prepared = await prepare(workspace, "replace_in_file", **_WRONG)
    _lead_back(folders[0])
    assert _verdict(workspace, "replace_in_file", prepared) is Verdict.REQUIRE_USER_CONFIRMATION
