"""Which extra of the package a missing module belongs to."""

from types import MappingProxyType

from treadle.workspace.installed import extras

_OTHER_NAMES = MappingProxyType(
    {
        "docx": "python-docx",
        "google": "google-auth",
        "markdown_it": "markdown-it-py",
        "opentelemetry": "opentelemetry-sdk",
    }
)
"""Modules whose package has another name."""


def extra_of(module: str) -> str:
    """Name the extra that brings a module; empty where none does."""
    top = module.partition(".")[0]
    package = _OTHER_NAMES.get(top, top.replace("_", "-"))
    return next((extra for extra, packages in extras().items() if package in {one.name for one in packages}), "")
