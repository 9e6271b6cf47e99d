"""The HTTP library and the certificates of the system: loaded beside everything else, while the session opens."""

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import ssl
    from types import ModuleType

T = TypeVar("T")


@cache
def http_library() -> "Future[ModuleType]":
    """Begin to load the library, once: that takes a third of the start, in which others wait for the disk."""
    return _beside("library", lambda: import_module("httpcore2"))


@cache
def system_certificates() -> "Future[ssl.SSLContext]":
    """Begin to read the certificates, once for all providers: that takes tens of milliseconds.

    What is read is what the HTTP library finds by itself. The result is an `OSError` where the environment names a file
    that is not there.
    """
    return _beside("certificates", _read)


def _beside(name: str, work: Callable[[], T]) -> "Future[T]":
    """Begin some work in a thread, which ends with it."""
    worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"treadle-{name}")
    try:
        return worker.submit(work)
    finally:
        worker.shutdown(wait=False)


def _read() -> "ssl.SSLContext":
    import httpcore2

    return httpcore2.default_ssl_context()


def named_certificates() -> str:
    """Name the place of certificates that the environment gives; empty where it gives none."""
    return os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR") or ""
