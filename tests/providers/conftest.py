"""What several tests of connections need."""

import ssl
import subprocess
from pathlib import Path

import pytest
from tests.needed import require


@pytest.fixture
def own_certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for this machine that nobody else trusts, and a server's context with it."""
    require("openssl")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return certificate, context
