"""Taking over what another agent was told, with the real program: shown, asked, taken, and in force."""

import json
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.person import ENTER
from treadle.app.exits import Exit


async def test_nothing_is_taken_before_a_yes_and_then_it_applies(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "CLAUDE.md").write_text("Use tabs.\n")
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": ["Bash(git push:*)"]}}))
    program = Program(home, extra={"HOME": str(tmp_path)})
    words = ("import", "--from", "claude-code", "-C", str(work))
    for more, code in (((), Exit.CONFIG), (("--dry-run",), Exit.DONE)):
        ended = await program.run(*words, *more)
        assert (ended.code, "permission deny Bash(git push:*)" in ended.out) == (code, True), ended.err
        assert not (home / "rules").exists()
    async with on_terminal(program, *words) as terminal:
        await terminal.until_shown("Take this over? [y/N]")
        terminal.type(f"n{ENTER}")
        assert await terminal.ended() == Exit.DONE
    assert not (home / "rules").exists()
    async with on_terminal(program, *words) as terminal:
        await terminal.until_shown("Take this over? [y/N]")
        terminal.type(f"y{ENTER}")
        assert await terminal.ended() == Exit.DONE
    assert (home / "rules" / "claude-code.md").read_text() == "Use tabs.\n"
    explained = await program.run(
        "policy", "explain", "git push origin main", "--mode", "full", "--json", "-C", str(work)
    )
    assert json.loads(explained.out)["verdict"] == "DENY"
    again = await program.run(*words, "--yes")
    assert "There is nothing new to take over." in again.out
