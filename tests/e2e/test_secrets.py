"""A secret that a command prints, in any form, comes to no log, no file, no surface and no request."""

import base64
from pathlib import Path

import pytest

from tests.e2e.process import Ended, Program
from tests.e2e.running import log_of, model
from treadle.protocol.events import CallJudged
from treadle.providers.scripted.script import MakeCall, Script, Turn
from treadle.providers.scripted.scripted_server import ScriptedServer

IN_ENVIRONMENT = "env-Secret-4711-aBcDeFgH"
IN_ENV_FILE = "dotenv-Secret-4712-aBcDeFgH"
IN_NETRC = "netrc-Secret-4713-aBcDeFgH"
STORED = "stored-Secret-4714-aBcDeFgH"
SECRETS = (IN_ENVIRONMENT, IN_ENV_FILE, IN_NETRC, STORED)

PRINTS = """
import base64, json, sys, time, urllib.parse
for secret in SECRETS:
    for piece in secret:
        sys.stdout.write(piece)
        sys.stdout.flush()
    print()
    print("url", urllib.parse.quote(secret + "/x&y"), "json", json.dumps({"a": secret}))
    print("base64", base64.b64encode(("user:" + secret + ":x").encode()).decode())
    print(base64.encodebytes(b"x" * 50 + secret.encode() + b"y" * 50).decode())
    print("hex", secret.encode().hex(), file=sys.stderr)
    print("\\x1b[31m" + secret[:9] + "\\x1b[0m" + secret[9:])
    print("x" * 200_000 + secret + "x" * 200_000)
raise RuntimeError("no access with " + SECRETS[0])
"""


def shapes(secret: str) -> list[bytes]:
    """What must not be found: half of the secret, as it is and encoded."""
    half = secret[: len(secret) // 2]
    return [half.encode(), half.encode().hex().encode(), base64.b64encode(half.encode())[:10]]


def found(data: bytes, where: str) -> list[str]:
    return [f"{where}: {shape!r}" for secret in SECRETS for shape in shapes(secret) if shape in data]


async def run(tmp_path: Path, *calls: MakeCall) -> tuple[Ended, list[bytes]]:
    done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
    turns = (*(Turn(items=(call,)) for call in calls), Turn(items=(done,)))
    variables = {"HOME": str(tmp_path / "user"), "DEPLOY_SECRET": IN_ENVIRONMENT}
    async with ScriptedServer(Script(turns=turns)) as server:
        flags = (*model(server), "--mode", "full", "-C", str(tmp_path / "ws"), "--output-format", "stream-json")
        ended = await Program(tmp_path / "home", variables).run("-p", "Try.", *flags)
        return ended, [str(request.body).encode() for request in server.requests]


@pytest.fixture
def places(tmp_path: Path) -> Path:
    for name in ("ws", "user", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "ws" / ".env").write_text(f"API_TOKEN={IN_ENV_FILE}\n")
    (tmp_path / "user" / ".netrc").write_text(f"machine a.org login me password {IN_NETRC}\n")
    keys = tmp_path / "home" / "auth.json"
    keys.write_text(f'{{"version": 1, "keys": {{"groq": "{STORED}"}}, "keyring": []}}')
    keys.chmod(0o600)
    parts = [secret.split("-") for secret in SECRETS]
    (tmp_path / "ws" / "prints.py").write_text(f"SECRETS = ['-'.join(parts) for parts in {parts!r}]\n{PRINTS}")
    return tmp_path


async def test_no_trace_is_left_of_what_a_command_prints(places: Path) -> None:
    run_it = MakeCall(name="execute_command", arguments={"command": "python3 prints.py"})
    search = MakeCall(name="search_files", arguments={"path": ".", "regex": "Secret"})
    edit = MakeCall(name="write_to_file", arguments={"path": "a.txt", "content": "one\n"})
    ended, requests = await run(places, run_it, search, edit)
    assert ended.code == 0, ended.err
    assert "[hidden: DEPLOY_SECRET]" in str(requests[1])
    traces = [*found(ended.out.encode(), "stdout"), *found(ended.err.encode(), "stderr")]
    traces += [trace for request in requests for trace in found(request, "a request")]
    for file in (places / "home").rglob("*"):
        if file.is_file() and file.name != "auth.json":
            traces += found(file.read_bytes(), str(file.relative_to(places)))
    assert traces == []
    assert any("output" in file.parts for file in (places / "home").rglob("output-*.txt")), "a spool file was looked at"


@pytest.mark.parametrize("mode", ["edits", "full"])
async def test_a_call_that_spells_out_a_known_secret_does_not_run_unasked(places: Path, mode: str) -> None:
    (places / "ws" / ".env").write_text(f"API_TOKEN={IN_ENV_FILE}\n")
    writes = MakeCall(name="write_to_file", arguments={"path": "a.txt", "content": f"key = {IN_ENV_FILE}\n"})
    runs = MakeCall(name="execute_command", arguments={"command": f"echo {IN_ENV_FILE} > b.txt"})
    reads = MakeCall(name="execute_command", arguments={"command": "cat a.txt"})
    done = MakeCall(name="attempt_completion", arguments={"result": "Done."})
    turns = (*(Turn(items=(call,)) for call in (writes, runs, reads)), Turn(items=(done,)))
    async with ScriptedServer(Script(turns=turns)) as server:
        flags = (*model(server), "--mode", mode, "-C", str(places / "ws"), "--output-format", "stream-json")
        ended = await Program(places / "home", {"HOME": str(places / "user")}).run("-p", "Try.", *flags)
        sent = str(server.requests[-1].body)
    assert ended.code == 55, ended.err
    assert sent.count("the call contains the value of .env; do not write secrets into a call") == 2
    judged = [event.data.decision for event in log_of(places / "home") if isinstance(event.data, CallJudged)]
    assert [decision.reasons[0].rule for decision in judged[:2]] == ["secret-in-arguments"] * 2
    assert not {"a.txt", "b.txt"} & {path.name for path in (places / "ws").iterdir()}
