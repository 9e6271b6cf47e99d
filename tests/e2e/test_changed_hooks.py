"""A folder's hooks in the real program, once something that they run is not what was trusted."""

import json
from pathlib import Path

import pytest

from tests.e2e.test_hooks import Place, one, place, run, write
from tests.needed import needs
from treadle.providers.scripted.script import MakeCall

__all__ = ["place"]

GUARD = "echo not allowed >&2; exit 2\n"


def guarded(place: Place, command: str, event: str = "PreToolUse", matcher: str = "Bash", **more: object) -> Path:
    """Have a script of the folder guard its calls."""
    script = place.folder / "scripts" / "guard.sh"
    script.parent.mkdir()
    script.write_text(GUARD)
    place.settings({event: one(command, matcher, **more)}, folder=True)
    return script


@pytest.mark.parametrize(
    "command", ["sh scripts/guard.sh", 'sh "$CLAUDE_PROJECT_DIR"/scripts/guard.sh', "cat < scripts/guard.sh | sh"]
)
@pytest.mark.parametrize("mode", ["edits", "auto"])
async def test_a_script_that_guards_is_protected_from_the_model_that_it_guards(
    place: Place, command: str, mode: str
) -> None:
    script = guarded(place, command)
    opens = write("scripts/guard.sh", "exit 0")  # the first time only its content is shown
    calls = (run("touch one"), opens, opens, run("touch two"), write("scripts/other.sh"))
    ended, requests = await place.work(*calls, words=["--trust", "--mode", mode])
    assert script.read_text() == GUARD
    assert "scripts/guard.sh, which a hook of the folder names, is protected" in json.dumps(requests[3]["messages"])
    assert [(place.folder / name).exists() for name in ("one", "two", "scripts/other.sh")] == [False, False, True]
    assert ended.err.count("not allowed") == 2, ended.err


@needs("sandbox")
@pytest.mark.parametrize(
    "line",
    [
        "echo exit 0 > scripts/guard.sh",
        'python3 -c \'open("scripts/guard.sh", "w").write("exit 0")\'',
        "cp /dev/null scripts/guard.sh",
        "rm -f scripts/guard.sh; echo exit 0 > scripts/guard.sh",
        "ln -sf /dev/null scripts/guard.sh",
        "mv scripts s; mkdir scripts; touch scripts/guard.sh; rm -rf s",
    ],
)
async def test_no_command_opens_what_a_script_guards(place: Place, line: str) -> None:
    guarded(place, "sh scripts/guard.sh", matcher="Write")
    await place.work(run(line), write("made"), words=["--trust", "--mode", "auto"])
    assert not (place.folder / "made").exists()


@pytest.mark.parametrize("change", ["exit 0", None])
async def test_a_guard_that_changed_since_it_was_trusted_blocks_and_says_so(place: Place, change: str | None) -> None:
    script = guarded(place, "sh scripts/guard.sh", matcher="Write")
    line = "rm scripts/guard.sh" if change is None else f"echo {change} > scripts/guard.sh"
    place.settings({"PostToolUse": one(f"cd {place.folder}; {line}", "Read", confined=False)})  # somebody else's hand
    read = MakeCall(name="read_file", arguments={"path": "scripts/guard.sh"})
    ended, requests = await place.work(read, write("made"), words=["--trust", "--mode", "full"])
    assert not script.exists() if change is None else script.read_text() == "exit 0\n"
    assert not (place.folder / "made").exists(), ended.err
    assert "scripts/guard.sh is not what you trusted" in json.dumps(requests[2]["messages"][-1]), ended.err


@pytest.mark.parametrize("event", ["UserPromptSubmit", "PreToolUse"])
async def test_a_script_that_was_not_there_when_the_folder_was_trusted_is_not_run(place: Place, event: str) -> None:
    script = guarded(place, "touch ran; sh scripts/guard.sh", event, "")
    script.unlink()
    own = "mkdir -p scripts; touch ran-not; echo exit 0 > scripts/guard.sh"
    place.settings({"SessionStart": one(f"cd {place.folder}; {own}", confined=False)})
    await place.work(write("made"), words=["--trust", "--mode", "full"])
    assert not (place.folder / "made").exists()


async def test_a_hook_goes_on_where_it_wrote_itself_what_it_names(place: Place) -> None:
    (place.folder / "old.log").write_text("begun\n")
    line = "echo x | tee -a old.log new.log >> third.log; cp new.log copy.txt; test -s copy.txt || exit 2"
    place.settings({"PreToolUse": one(line, "Write")}, folder=True)
    words = ["--trust", "--mode", "full"]
    ended, _ = await place.work(write("one"), write("two"), write("three"), words=words)
    assert [(place.folder / name).exists() for name in ("one", "two", "three")] == [True] * 3, ended.err
    assert (place.folder / "old.log").read_text() == "begun\nx\nx\nx\n"


async def test_a_link_among_the_hooks_is_run_only_as_it_was_and_protected_where_it_leads(place: Place) -> None:
    script = guarded(place, "sh .claude/hooks/guard.sh")
    (place.folder / ".claude" / "hooks").mkdir()
    (place.folder / ".claude" / "hooks" / "guard.sh").symlink_to("../../scripts/guard.sh")
    opens = write("scripts/guard.sh", "exit 0")
    ended, _ = await place.work(opens, opens, run("touch made"), words=["--trust", "--mode", "edits"])
    assert script.read_text() == GUARD, ended.err
    assert not (place.folder / "made").exists()
