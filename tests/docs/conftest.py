"""Commands of documents run in a home of their own."""

from tests.cli.conftest import home

__all__ = ["home"]
