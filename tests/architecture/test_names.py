"""One name, one meaning: what is public is defined once, in the words of the glossary and of the field."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.architecture.test_shape import ROOT, source_modules

FAMILIES = {
    "configure": "cli/",  # each command has both
    "execute": "cli/",
    "main": "",  # where a program of its own begins
    "ROUTES": "web/screens/",  # what each screen of the page answers
    "API": "providers/",  # the wire API that a module speaks, as the log names it
}
"""Names that several modules below a folder define: one interface, with one meaning."""

PRIVATE_WORDS = r"purses?|desks?|strays|mend(s|ed|ing)?|unasked|told|story|stories|leash"
"""Words that only the authors of a program understand; the field has its own."""
KEPT = {"max_unasked": "users know this setting by it"}


def defined(tree: ast.Module) -> Iterator[str]:
    """Each name that a module defines for others; what it imports is not its own."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names = [name]
            case ast.Assign(targets=targets):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(target=ast.Name(id=name)):
                names = [name]
            case _:
                continue
        yield from (name for name in names if not name.startswith("_") and name != "TYPE_CHECKING")


def written(tree: ast.Module) -> Iterator[str]:
    """Each public name of a module, of its classes and of their parameters."""
    yield from defined(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield from (name for name in defined(ast.Module(body=node.body, type_ignores=[])))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
            yield from (argument.arg for argument in (*node.args.args, *node.args.kwonlyargs))


def words(name: str) -> list[str]:
    """The words of a name, in lower case."""
    return re.findall(r"[a-z]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def test_a_public_name_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for module, tree in source_modules():
        for name in defined(tree):
            if name not in FAMILIES or not module.startswith(FAMILIES[name]):
                places[name].append(module)
    assert len(places) > 1500
    twice = [f"{name}: {', '.join(modules)}" for name, modules in sorted(places.items()) if len(modules) > 1]
    advice = "Each of these names has two definitions. Give each meaning its own term, make what only its module uses "
    assert not twice, f"{advice}private, or merge them:\n" + "\n".join(twice)


def test_public_names_have_no_private_words() -> None:
    found = {
        f"{module}: {name}"
        for module, tree in source_modules()
        for name in (Path(module).stem, *written(tree))
        if name not in KEPT and any(re.fullmatch(PRIVATE_WORDS, word) for word in words(name))
    }
    assert not found, "Say these in the words of the field: " + ", ".join(sorted(found))


def glossary() -> list[str]:
    """The words of docs/glossary.md."""
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    return [word for word in re.findall(r"^\| ([^|]+?) \|", page, re.MULTILINE) if word not in ("word", "---")]


def test_the_glossary_is_sorted_out() -> None:
    assert len(glossary()) > 30
    assert len(set(glossary())) == len(glossary())


@pytest.mark.parametrize("word", glossary())
def test_the_code_uses_each_word_of_the_glossary(word: str) -> None:
    wanted = re.compile(r"\b" + r"[-_\s]*".join(map(re.escape, re.split(r"[- ]", word.lower()))))
    assert wanted.search(code()), f"{word!r} is in docs/glossary.md, and nowhere in the code."


@cache
def code() -> str:
    """The text of all modules and tests in lower case, names with blanks between their words too."""
    files = (file for folder in ("src/treadle", "tests") for file in (ROOT / folder).rglob("*.py"))
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return f"{text}\n{re.sub(r'(?<=[a-z])(?=[A-Z])|_', ' ', text)}".lower()


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("class A: ...\ndef b(): ...\nasync def c(): ...", ["A", "b", "c"]),
        ("A = B = 1\nc: int = 2\n_d = 3", ["A", "B", "c"]),
        ("from x import A\nimport b\nTYPE_CHECKING = False", []),
        ("if True:\n    a = 1\nclass _A:\n    b = 1", []),
    ],
)
def test_what_a_module_defines_is_found(source: str, names: list[str]) -> None:
    assert list(defined(ast.parse(source))) == names
