"""The certificates of the system, read beside everything else."""

import os
import ssl
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache

import httpcore2


@cache
def system_certificates() -> "Future[ssl.SSLContext]":
    """Begin to read them, once for all providers: that takes tens of milliseconds, in which the session opens.

    What is read is what the HTTP library finds by itself. The result is an `OSError` where the environment names a file
    that is not there.
    """
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="treadle-certificates")
    try:
        return worker.submit(httpcore2.default_ssl_context)
    finally:
        worker.shutdown(wait=False)


def named_certificates() -> str:
    """Name the place of certificates that the environment gives; empty where it gives none."""
    return os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR") or ""
