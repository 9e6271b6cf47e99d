"""Taking over what another agent was told, with the real program: shown, asked, taken, and in force."""

import json
from pathlib import Path

from tests.e2e.process import Program
from tests.e2e.pseudo_terminal import on_terminal
from tests.person import ENTER
from treadle.app.errors.exits import Exit


async def test_nothing_is_taken_before_a_yes_and_then_it_applies(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "CLAUDE.md").write_text("Use tabs.\n")
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": ["Bash(git push:*)"]}}))
    said = {"sessionId": "abc", "cwd": str(work), "timestamp": "2026-01-02T03:04:05Z"}
    lines = (
        {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Look at the parser."}, **said},
        {"type": "assistant", "uuid": "2", "message": {"role": "assistant", "content": "It is fine."}, **said},
    )
    transcript = tmp_path / ".claude" / "projects" / "work" / "abc.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
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
    listed = [json.loads(line) for line in (await program.run("sessions", "--all", "--json")).out.splitlines()]
    assert [one["title"] for one in listed] == ["Look at the parser."]
    again = await program.run(*words, "--yes")
    assert ("skipped" in again.out, again.code) == (True, Exit.DONE)
    transcript.unlink()
    assert "There is nothing new to take over." in (await program.run(*words, "--yes")).out
