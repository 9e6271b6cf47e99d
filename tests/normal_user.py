"""Tests that only tell something where modes bind: root reads and writes whatever they say."""

import os

import pytest

normal_user = pytest.mark.skipif(os.geteuid() == 0, reason="modes do not bind root: `make test-user` runs it")

MODES = (0o000, 0o111, 0o311, 0o333, 0o444, 0o555, 0o600, 0o711)
"""Modes of folders that lack some right of their owner; 0o711 lacks none."""
