"""Profiles on the command line: stored, used by a session and by its resumption, and gone."""

import asyncio
import io
import json
import sys
from pathlib import Path

import pytest

from tests.app.local_servers import Asked, http_server
from tests.cli.conftest import Command
from tests.e2e.process import Program
from treadle.app.models.provider_keys import key_file

WORK, HOME = "sk-of-work-27182818", "sk-of-home-31415926"
REPLY = b"""\
data: {"id":"1","choices":[{"index":0,"delta":{"role":"assistant","content":"ok"}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":9}}

data: [DONE]

"""


async def test_a_session_uses_its_profile_and_so_does_its_resumption_until_the_key_is_gone(
    treadle: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[str] = []

    def serve(asked: Asked) -> tuple[int, object]:
        if asked.path.endswith("/chat/completions"):
            given.append(asked.headers.get("authorization", "").removeprefix("Bearer "))
        return 200, REPLY

    async def run(*words: str, key: str = "") -> tuple[int, str, str]:
        if words[0] == "-p":
            ended = await Program(key_file().parent, {"GROQ_API_KEY": "gsk-from-the-environment"}).run(*words)
            return ended.code, ended.out, ended.err
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{key}\n"))
        said = await asyncio.to_thread(treadle, *words)
        return said.code, said.out, said.err

    work = tmp_path / "project"
    work.mkdir()
    async with http_server(serve) as url:
        (key_file().parent / "config.toml").write_text(f'[providers.groq]\nbase_url = "{url}/v1"\n')
        monkeypatch.setenv("GROQ_API_KEY", "gsk-from-the-environment")
        code, out, _ = await run("login", "groq", "--as", "work", "--key-stdin", key=WORK)
        stored, use = out.splitlines()
        assert code == 0
        assert stored.startswith(f"Your key for groq for the profile work is stored in {key_file()} (groq@work/qwen/")
        assert use.startswith("Use it with --profile work, or /profile work in a session. Without a profile the key ")
        assert "GROQ_API_KEY" in use
        await run("login", "groq", "--as", "home", "--key-stdin", "--no-check", key=HOME)
        given.clear()
        here = ("--mode", "full", "--directory", str(work))
        first = await run("-p", "say ok", "--model", "groq/openai/gpt-oss-120b", "--profile", "work", *here)
        again = await run("-p", "again", "--continue", *here)
        assert [(code, "groq@work/openai/gpt-oss-120b" in err) for code, _, err in (first, again)] == [(0, True)] * 2
        assert given == [WORK, WORK]
        listed = (await run("providers"))[1]
        assert "  home: keys of groq\n  work: keys of groq\n" in listed
        rows = json.loads((await run("usage", "--by", "profile", "--json"))[1])["rows"]
        assert {row["name"]: row["requests"] for row in rows} == {"groq@work": 2}
        assert (await run("logout", "groq", "--as", "work"))[1] == "The stored key was removed.\n"
        code, out, err = await run("-p", "x", "--continue", *here)
        assert (code, out, len(given)) == (78, "", 2)
        assert "The profile work has no key of Groq." in err
    assert HOME in key_file().read_text()
    assert all(key not in text for key in (WORK, HOME) for text in (listed, err))
