"""Where tools keep what they can make again: caches, which are thrown away with a copy, and what builds make."""

import os
from collections.abc import Callable, Mapping

from treadle.workspace.ignore.git_index import checkout_of
from treadle.workspace.ignore.ignoring import Ignoring

CACHES = (
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    ".mypy_cache",
    ".hypothesis",
    ".parcel-cache",
    ".turbo",
)
"""Names of folders that hold nothing but a tool's cache, also where there is no git; docs/sandbox.md lists them."""

_CACHE_NAMES = frozenset(map(os.fsencode, CACHES))
_REMADE, _REMADE_ENDS = frozenset({b".coverage", b".DS_Store", b".eslintcache"}), (b".pyc", b".tsbuildinfo")
"""Files that tools make again whenever they run."""

_PACKAGES = b"node_modules/"
_INNER = (b"node_modules/.cache/", b"node_modules/.vite/")

_OUTPUTS = frozenset(
    b"build dist target out _build .build node_modules .venv venv .tox .nox .next .nuxt .output .svelte-kit .gradle"
    b" .dart_tool coverage htmlcov obj".split()
)
_OUTPUT_BEGINS, _OUTPUT_ENDS = (b"cmake-build-",), (b".egg-info", b".dist-info")
"""Names of folders in which builds and package managers put what they make; docs/sandbox.md lists them."""


def in_output(path: bytes) -> bool:
    """Whether a path lies in a folder of a name that builds make."""
    folders = path.split(b"/")[:-1]
    return any(name in _OUTPUTS or name.startswith(_OUTPUT_BEGINS) or name.endswith(_OUTPUT_ENDS) for name in folders)


def can_be_made_again(path: bytes, *, is_folder: bool) -> bool:
    """Whether a path that git ignores is a tool's cache, or lies in what builds make."""
    folders, name = path.split(b"/"), b""
    if not is_folder:
        name = folders.pop()
    caches = name in _REMADE or name.endswith(_REMADE_ENDS) or not _CACHE_NAMES.isdisjoint(folders)
    return caches or in_output(path + b"/" if is_folder else path)


def in_inner_cache(path: bytes) -> bool:
    """Whether a path is in a cache of a package manager's folder."""
    return _PACKAGES in path and any(inner in path + b"/" for inner in _INNER)


def git_ignores(root: str) -> Callable[[bytes, bool], bool]:
    """Give the test whether git ignores a path of a root, by the ignore files in it and above.

    The second argument says whether it is a folder. Outside of a checkout nothing is ignored.
    """
    top = checkout_of(root)
    if top is None:
        return lambda _path, _is_folder: False
    rules = Ignoring(str(top), root, ((".gitignore",),))

    def ignores(path: bytes, is_folder: bool) -> bool:  # noqa: FBT001 - one of two kinds
        name = os.fsdecode(path)
        return rules.hides_directory(name) if is_folder else rules.hides_file(name)

    return ignores


def hidden_by_themselves(new_rules: Mapping[bytes, bytes]) -> frozenset[bytes]:
    """Find the new folders whose own ignore file, given by the folder with its content, hides all that is in them."""
    return frozenset(folder for folder, content in new_rules.items() if folder and _rules_in(content) == [b"*"])


def _rules_in(content: bytes) -> list[bytes]:
    """Give the lines of an ignore file that say something; blanks at their ends do not."""
    lines = (line.rstrip() for line in content.splitlines())
    return [line for line in lines if line and not line.startswith(b"#")]
