"""Rules and skills through the whole program: what is sent, when, and that the beginning of each request stays."""

import itertools
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.app.rehearsal import call, rehearse
from tests.e2e.process import Program
from tests.e2e.running import log_of, model
from treadle.app.errors.exits import Exit
from treadle.app.security.trusting import keep_trusted, session_trust, trust_store, whole_trust
from treadle.protocol.events import CallProposed, Compacted, ContextReady, Noted, OfferChanged
from treadle.protocol.models import ToolProtocol
from treadle.protocol.permissions import Mode, OptionKind
from treadle.protocol.tools import FileChange, Outcome
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

PROTOCOLS = ("native", "xml")
END = call("attempt_completion", result="Done.")
FILES = {
    "AGENTS.md": "RULE-TOP",
    "src/AGENTS.md": "RULE-SRC",
    "src/a.py": "a = 1\n",
    "docs/CLAUDE.md": "RULE-DOCS @style.md",
    "docs/style.md": "RULE-STYLE",
    "docs/x.txt": "x\n",
    ".clinerules/py.md": "---\npaths:\n  - '*.py'\n---\nRULE-PY",
    ".cursor/rules/release.mdc": "---\ndescription: how to release\n---\nRULE-RELEASE",
    ".agents/skills/greet/SKILL.md": "---\nname: greet\ndescription: SKILL-ABOUT\n---\nSKILL-BODY for $ARGUMENTS",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path / "home"))
    for name, text in FILES.items():
        (tmp_path / "ws" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ws" / name).write_text(text)
    return (tmp_path / "ws").resolve()


def system_of(body: Mapping[str, Any]) -> str:
    return json.dumps(body["system"])


def messages_of(body: Mapping[str, Any]) -> list[str]:
    return [json.dumps(message) for message in body["messages"]]


async def work(
    folder: Path, protocol: str, *calls: MakeCall, words: tuple[str, ...] = ("--trust",), code: int = Exit.DONE
) -> list[Any]:
    """Make these calls one after the other; gives the bodies of the requests."""
    script = Script(turns=tuple(Turn(items=(one,)) for one in (*calls, END)))
    async with ScriptedServer(script) as server:
        flags = (*model(server), "--tool-protocol", protocol, "-C", str(folder), *words)
        ended = await Program(folder.parent / "home").run("-p", "Go.", *flags)
    assert (ended.code, server.violations) == (code, []), ended.err
    return [request.body for request in server.requests]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_rules_are_sent_when_they_apply_and_the_beginning_stays(folder: Path, protocol: str) -> None:
    read = [call("read_file", path=path) for path in ("src/a.py", "docs/x.txt", "src/a.py")]
    bodies = await work(
        folder, protocol, *read, MakeCall(name="use_skill", arguments={"name": "greet", "arguments": "Ann"})
    )
    assert len({system_of(body) for body in bodies}) == 1
    system = system_of(bodies[0])
    assert '<rules from=\\"AGENTS.md\\">\\nRULE-TOP\\n</rules>' in system
    assert "- .cursor/rules/release.mdc: how to release" in system
    assert "- greet: SKILL-ABOUT" in system
    sent = messages_of(bodies[-1])
    for name, at in {"RULE-SRC": 2, "RULE-PY": 2, "RULE-DOCS": 4, "RULE-STYLE": 4, "SKILL-BODY for Ann": 8}.items():
        assert [number for number, text in enumerate(sent) if name in text] == [at], name
        assert name not in system
    assert "RULE-RELEASE" not in system + "".join(sent)
    for before, after in itertools.pairwise(bodies):
        one, other = ([text.replace(', "cache_control": {"type": "ephemeral"}', "") for text in messages_of(body)]
                      for body in (before, after))  # fmt: skip
        assert other[: len(one)] == one, "a request only grows at its end"
    events = log_of(folder.parent / "home")
    assert len([one for one in events if isinstance(one.data, OfferChanged)]) == 1
    noted = [note.origin for one in events if isinstance(one.data, Noted) for note in one.data.notes]
    assert noted == [".clinerules/py.md", "src/AGENTS.md", "docs/CLAUDE.md"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_nothing_of_an_untrusted_folder_is_sent(folder: Path, protocol: str) -> None:
    bodies = await work(folder, protocol, call("read_file", path="src/a.py"), words=())
    sent = json.dumps(bodies)
    assert [word for word in ("RULE-", "SKILL-", "how to release", "use_skill") if word in sent] == []


async def test_a_rule_that_is_turned_off_is_sent_no_more(folder: Path) -> None:
    program = Program(folder.parent / "home", {"TREADLE_TRUST": "1"})
    listed = await program.run("-p", "/rules", "-C", str(folder))
    assert (listed.code, "1  on   AGENTS.md" in listed.out) == (Exit.DONE, True)
    assert (await program.run("-p", "/rules off 1", "-C", str(folder))).out.startswith("off: AGENTS.md. ")
    assert "1  off  AGENTS.md" in (await program.run("-p", "/rules", "-C", str(folder))).out
    assert "greet" in (await program.run("-p", "/skills", "-C", str(folder))).out
    (body,) = await work(folder, "native")
    assert "RULE-TOP" not in json.dumps(body)
    assert "use_skill" in json.dumps(body["tools"])


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_rules_are_whole_again_when_messages_have_left(folder: Path, protocol: str) -> None:
    (folder / "big.txt").write_text("long line of text\n" * 2_000)
    (folder.parent / "home").mkdir(exist_ok=True)
    (folder.parent / "home/config.toml").write_text(
        '[models."anthropic-compatible/scripted"]\ncontext_window = 24000\nmax_output = 1000\n'
    )
    reads = [call("read_file", path="src/a.py")]
    reads += [call("read_file", path="big.txt", start_line=n, end_line=n + 900) for n in range(1, 1_000, 100)]
    # The script begins again where messages have left, so the steps end it.
    words = ("--trust", "--max-steps", "14")
    bodies = await work(folder, protocol, *reads, words=words, code=Exit.STEPS)
    events = [event.data for event in log_of(folder.parent / "home")]
    left = [number for number, one in enumerate(events) if isinstance(one, Compacted)]
    assert left, "messages left"
    noted = [
        number for number, one in enumerate(events)
        if isinstance(one, Noted) and "src/AGENTS.md" in [note.origin for note in one.notes]
    ]  # fmt: skip
    for place in left:
        assert any(isinstance(one, ContextReady) for one in events[place:])
        following = next(number for number in noted if number > place)
        assert not any(isinstance(one, CallProposed) for one in events[place:following]), "with the next message"
    assert all("RULE-TOP" in system_of(body) for body in bodies if "RULE-SRC" in json.dumps(body))
    assert "RULE-SRC" in json.dumps(bodies[-1])


async def test_a_new_rule_needs_a_yes_in_every_mode_and_applies_from_the_next_session(folder: Path) -> None:
    trust_store().grant(whole_trust(folder))
    rule = call("new_rule", path="testing.md", content="RULE-NEW")
    refused = await rehearse(folder, [rule], mode=Mode.FULL, present=True, option=OptionKind.REJECT_ONCE, trusted=False)
    assert (refused.results[0].outcome, (folder / ".clinerules/testing.md").exists()) == (Outcome.REJECTED, False)
    made = await rehearse(folder, [rule], mode=Mode.FULL, present=True, trusted=False)
    assert [len(one.asked) for one in (refused, made)] == [1, 1]
    assert (folder / ".clinerules/testing.md").read_text() == "RULE-NEW\n"
    assert len({system_of(body) for body in made.requests}) == 1
    assert session_trust(folder).trusted, "what was approved stays trusted"
    (body,) = await work(folder, ToolProtocol.NATIVE, words=())
    assert "RULE-NEW" in system_of(body)


@pytest.mark.parametrize("before", ["nothing", "refused", "not asked", "for one run"])
async def test_an_approved_rule_applies_from_the_next_session_in_a_folder_that_is_not_trusted(
    folder: Path, before: str
) -> None:
    for file in [*folder.rglob("*.md"), folder / ".cursorrules"] if before == "nothing" else []:
        file.unlink(missing_ok=True)
    if before == "refused":
        trust_store().refuse(whole_trust(folder))
    else:
        trust_store().revoke(folder)
    rule = call("new_rule", path="testing.md", content="RULE-NEW")
    await rehearse(folder, [rule], mode=Mode.ASK, present=True, trusted=before == "for one run")
    assert not session_trust(folder).trusted
    assert session_trust(folder).trust.refused is (before == "refused")
    (body,) = await work(folder, ToolProtocol.NATIVE, words=())
    assert "RULE-NEW" in system_of(body)
    assert "RULE-TOP" not in system_of(body)
    (folder / ".clinerules/testing.md").write_text("RULE-NEW, changed by somebody")
    (body,) = await work(folder, ToolProtocol.NATIVE, words=())
    assert "RULE-NEW" not in system_of(body)
    trust_store().revoke(folder)
    (folder / ".clinerules/testing.md").write_text("RULE-NEW\n")
    (body,) = await work(folder, ToolProtocol.NATIVE, words=())
    assert "RULE-NEW" not in system_of(body)


def test_an_approved_change_does_not_bring_the_rest_of_an_untrusted_file_into_force(folder: Path) -> None:
    trust_store().revoke(folder)
    file = folder / "AGENTS.md"
    before = sha256(file.read_bytes()).hexdigest()
    file.write_text(f"{file.read_text()}one line more\n")
    change = FileChange(path=str(file), before=before, after=sha256(file.read_bytes()).hexdigest())
    keep_trusted(session_trust(folder), change)
    assert session_trust(folder).rules == ()


async def test_what_else_changed_meanwhile_asks_again(folder: Path) -> None:
    trust_store().grant(whole_trust(folder))
    trust = session_trust(folder)
    file = folder / ".clinerules/new.md"
    file.write_text("approved")
    (folder / ".cursorrules").write_text("somebody else's")
    keep_trusted(trust, FileChange(path=str(file), before="", after=sha256(b"approved").hexdigest()))
    assert session_trust(folder).trust.changed == (".clinerules/new.md", ".cursorrules")
    (folder / ".cursorrules").unlink()
    keep_trusted(trust, FileChange(path=str(file), before="", after=sha256(b"other bytes").hexdigest()))
    assert session_trust(folder).trust.changed == (".clinerules/new.md",)
    keep_trusted(trust, FileChange(path=str(file), before="", after=sha256(b"approved").hexdigest()))
    assert session_trust(folder).trusted
