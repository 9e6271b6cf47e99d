"""A language server for tests: it publishes a problem for each line with `bad` in it, or misbehaves as it is told."""

import json
import sys
import time
from pathlib import Path
from typing import Any

told: dict[str, Any] = {}


def read() -> Any:
    size = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        size = int(value) if name.lower() == b"content-length" else size
    return json.loads(sys.stdin.buffer.read(size)) if size else None


def send(**message: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Type: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()


def written(path: str) -> str:
    """Whether a file can be written."""
    try:
        Path(path).write_text("x")
    except OSError:
        return "no"
    return "yes"


def publish(uri: str, text: str, version: int | None) -> None:
    found = [
        {"range": {"start": {"line": number, "character": line.index("bad")}}, "message": f"bad: {line}", "code": 7}
        for number, line in enumerate(text.splitlines())
        if "bad" in line
    ]
    told = {} if version is None else {"version": version}
    send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": [*found, "nonsense"], **told})


def wait(how: str) -> None:
    """Wait for the file of `gate=FILE` before answering."""
    gate = Path(how.partition("gate=")[2] or "/")
    while not gate.exists():
        time.sleep(0.01)


def tell(uri: str) -> None:
    """Publish what was told as the one problem."""
    place = {"line": 0, "character": 0}
    found = {"range": {"start": place}, "message": json.dumps(told)}
    send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": [found]})


def main(how: str) -> None:
    while message := read():
        method, params = message.get("method"), message.get("params")
        if method == "initialize":
            wait(how)
            told["options"] = params.get("initializationOptions")
            if how == "refuse":
                send(id=message["id"], error={"code": 1, "message": "not today"})
                continue
            asked = [{"section": "fake.deep"}, {"section": "none.such"}, {}] if how == "tell" else [{}, {}]
            send(id=90, method="workspace/configuration", params={"items": asked})
            send(id=91, method="some/thing", params=None)
            send(id=message["id"], result={"capabilities": {"textDocumentSync": 1}})
        elif method in ("textDocument/didOpen", "textDocument/didChange"):
            if how == "die":
                sys.exit(3)
            if how == "silent":
                continue
            if how == "tell":
                told["language"] = params["textDocument"]["languageId"]
                tell(params["textDocument"]["uri"])
                continue
            while how == "flood":
                send(method="window/logMessage", params={"type": 4, "message": "on and on"})
            if how == "garbage":
                sys.stdout.write("Content-Length: no\r\n\r\n")
                sys.stdout.flush()
                continue
            document = params["textDocument"]
            if how == "write":
                written("../mark.txt")
                said = f"inside {written('mark2.txt')}"
                place = {"start": {"line": 0, "character": 0}}
                found = [{"range": place, "message": said, "code": 7}] if "bad" in json.dumps(params) else []
                send(method="textDocument/publishDiagnostics", params={"uri": document["uri"], "diagnostics": found})
                continue
            text = document["text"] if "text" in document else params["contentChanges"][0]["text"]
            if how == "late":
                publish(document["uri"], "bad old news", document["version"] - 1)
            publish(document["uri"], text, None if how == "unversioned" else document["version"])
        elif method == "shutdown":
            send(id=message["id"], result=None)
        elif method == "workspace/didChangeConfiguration":
            told["changed"] = params
        elif message.get("id") == 90 and how == "tell":
            told["asked"] = message["result"]
        elif message.get("id") in (90, 91):
            print(json.dumps(message), file=sys.stderr)
            expected = (
                [None, None] if message["id"] == 90 else {"code": -32601, "message": "some/thing is not known here"}
            )
            if message.get("result", message.get("error")) != expected:
                sys.exit(4)
        elif method == "exit":
            return


if __name__ == "__main__":
    main(sys.argv[1])
