"""Classifying shell lines, a thousand of them, of all classes; and hiding secrets in ten megabytes of output."""

import base64
import random
import string
import time
from pathlib import Path

from treadle.app.security.file_view import DiskView
from treadle.policy.classify import classify_command
from treadle.policy.decide import decide
from treadle.policy.decision_context import PolicyContext
from treadle.policy.secrets import known_secrets
from treadle.protocol.permissions import Mode
from treadle.protocol.tools import Risk, RunCommand, ToolSpec, ToolTraits

_LINES = Path(__file__).parents[1] / "tests" / "policy" / "lines"
_COUNT = 1000
_OUTPUT = 10_000_000
_CHUNK = 64 * 1024
_DENSE = 1_000_000
_WORDS = (
    *("def", "return", "self.value", "import os", '{"a": 1}', "https://example.com/x", "token = None", "x" * 20),
    *("INFO 2024-01-01", "test_that_something_holds PASSED"),
)
_SPEC = ToolSpec(name="execute_command", description="", parameters={}, traits=ToolTraits(), risk=Risk.EXECUTE)


def main() -> None:
    """Print how long a thousand lines take, and the slowest, and how long redaction takes."""
    root = str(Path.cwd())
    context = PolicyContext(mode=Mode.ASK, roots=(root,), files=DiskView(), home=str(Path.home()))
    lines = _lines()
    classify_command("ls | sort", root, context)
    took, slowest = [], ("", 0.0)
    begin = time.process_time()
    for line in lines:
        before = time.process_time()
        classify_command(line, root, context)
        took.append(time.process_time() - before)
        if took[-1] > slowest[1]:
            slowest = (line, took[-1])
    whole = time.process_time() - begin
    begin = time.process_time()
    for line in lines:
        decide(_SPEC, {}, (RunCommand(command=line, cwd=root),), context)
    decided = time.process_time() - begin
    print(
        f"{len(lines):,} lines classified in {whole:.2f} s of processor time, {whole / len(lines) * 1000:.2f} ms each"
    )
    print(f"{len(lines):,} lines decided in {decided:.2f} s, {decided / len(lines) * 1000:.2f} ms each")
    print(
        f"median {sorted(took)[len(took) // 2] * 1000:.2f} ms, slowest {slowest[1] * 1000:.1f} ms: {slowest[0][:80]!r}"
    )
    _redaction()


def _redaction() -> None:
    jitter = random.Random(1)
    keys = ["".join(jitter.choices(string.ascii_letters + string.digits, k=32)) for _ in range(12)]
    redactor = known_secrets({}, [(key, f"key {number}") for number, key in enumerate(keys)])
    text = "\n".join(" ".join(jitter.choices(_WORDS, k=9)) for _ in range(150_000))[:_OUTPUT]
    begin = time.process_time()
    redactor.redact(text)
    whole = time.process_time() - begin
    stream = redactor.stream()
    begin = time.process_time()
    for at in range(0, len(text), _CHUNK):
        stream.feed(text[at : at + _CHUNK])
    stream.finish()
    streamed = time.process_time() - begin
    print(f"{len(text) / 1e6:.0f} MB redacted with {len(keys)} known values: {whole:.2f} s, in chunks {streamed:.2f} s")
    took: dict[str, float] = {}
    for name, dense in _dense(jitter.randbytes(_DENSE)).items():
        begin = time.process_time()
        redactor.redact(dense[:_DENSE])
        took[name] = time.process_time() - begin
    print("1 MB of nothing else: " + ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in took.items()))


def _dense(data: bytes) -> dict[str, str]:
    """Encode noise: texts of which everything has to be read."""
    return {
        "base64": base64.b64encode(data).decode(),
        "wrapped base64": base64.encodebytes(data).decode(),
        "base32": base64.b32encode(data).decode(),
        "hexadecimal": data.hex(),
        "escapes of URLs": "".join(map("%{:02x}".format, data)),
        "escapes of strings": "".join(map("\\u{:04x}".format, data)),
    }


def _lines() -> list[str]:
    """Take as many lines of each class as there are, in turn, until there are a thousand."""
    found = [
        line.replace("⏎", "\n")
        for file in sorted(_LINES.glob("*.txt"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    step = max(1, len(found) // _COUNT)
    return (found[::step] * (_COUNT // len(found[::step]) + 1))[:_COUNT]
