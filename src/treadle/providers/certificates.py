"""The certificates that connections are checked with: the system's, or a file's."""

import os
import ssl
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from pathlib import Path

_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep them, for an interpreter that was built to look elsewhere."""


@cache
def system_certificates() -> "Future[ssl.SSLContext]":
    """Begin to load the system's, once: reading them takes tens of milliseconds, in which other work goes on."""
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treadle-certificates")
    try:
        return worker.submit(_load)
    finally:
        worker.shutdown(wait=False)


def certificates_of(file: str) -> ssl.SSLContext:
    """Load those of a file; raises `OSError`."""
    return ssl.create_default_context(cafile=file)


def _load() -> ssl.SSLContext:
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or folder:
        return ssl.create_default_context(cafile=file or None, capath=folder or None)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs()
    if not context.cert_store_stats()["x509_ca"]:
        bundle = next((path for path in _BUNDLES if Path(path).is_file()), None)
        if bundle is not None:
            context.load_verify_locations(bundle)
    return context
