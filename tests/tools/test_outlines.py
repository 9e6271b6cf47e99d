"""Outlines of source files."""

import gc
import re
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tools.calls import call, text

from treadle.protocol.errors import ToolError
from treadle.tools import declarations, outlines
from treadle.tools.outlines import GRAMMARS, grammar_for, is_ready, outline, syntax_tree
from treadle.tools.python_outline import python_definitions
from treadle.workspace.installed import install_command
from treadle.workspace.workspace import Workspace

_SOURCES: dict[str, tuple[str, dict[int, int]]] = {
    "a.py": (
        """\
import os
class A(B):
    x = 1
    @property
    def f(self) -> int:
        def inner(): ...
async def g(): ...
if x:
    def h(): ...
""",
        {2: 0, 5: 1, 7: 0, 9: 0},
    ),
    "a.js": (
        """\
export default class A {
  static async m() {}
}
function f() { function g() {} }
const h = () => 1;
let k = 3;
""",
        {1: 0, 2: 1, 4: 0, 5: 0},
    ),
    "a.ts": (
        """\
export interface I {
  m(): void
}
abstract class A<T> {
  abstract q(): void;
}
type T = string
enum E { X }
namespace N {
  export function z() {}
}
export const f = (x: number) => x
""",
        {1: 0, 2: 1, 4: 0, 5: 1, 7: 0, 8: 0, 9: 0, 10: 1, 12: 0},
    ),
    "a.tsx": (
        """\
export const C = () => <div/>;
""",
        {1: 0},
    ),
    "a.go": (
        """\
package x
type S struct { A int }
func (s *S) M() {}
func F() {}
""",
        {2: 0, 3: 0, 4: 0},
    ),
    "a.rs": (
        """\
struct S;
impl S {
    fn new() -> S { S }
}
pub trait T {
    fn m(&self);
}
""",
        {1: 0, 2: 0, 3: 1, 5: 0, 6: 1},
    ),
    "A.java": (
        """\
package p;
public class A {
  @Override
  public void f() {}
  A() {}
}
record R(int x) {}
""",
        {2: 0, 4: 1, 5: 1, 7: 0},
    ),
    "a.c": (
        """\
struct s { int x; };
struct s y;
static int *f(int a)
{ return 0; }
typedef struct { int q; } T;
""",
        {1: 0, 3: 0, 5: 0},
    ),
    "a.cpp": (
        """\
namespace n {
template <class T> class A : B {
  void f() {}
};
}
void n::A::g() {}
""",
        {1: 0, 2: 1, 3: 2, 6: 0},
    ),
    "a.cs": (
        """\
public class A {
  public void F() {}
  A() {}
}
interface I { }
""",
        {1: 0, 2: 1, 3: 1, 5: 0},
    ),
    "a.rb": (
        """\
module M
  class A < B
    def f; end
    def self.g; end
  end
end
""",
        {1: 0, 2: 1, 3: 2, 4: 2},
    ),
    "a.php": (
        """\
<?php
class A {
  public function f() {}
}
function g() {}
""",
        {2: 0, 3: 1, 5: 0},
    ),
    "a.kt": (
        """\
class A(val x: Int) {
    fun f() {}
}

object O

fun g() = 1
""",
        {1: 0, 2: 1, 5: 0, 7: 0},
    ),
    "a.swift": (
        """\
class A {
  init() {}
  func f() {}
}
struct S { }
protocol P {
  func m()
}
""",
        {1: 0, 2: 1, 3: 1, 5: 0, 6: 0, 7: 1},
    ),
}
"""By file name: a source, and the depth of each line that is in its outline."""


@pytest.mark.parametrize("name", _SOURCES)
def test_a_source_file_is_outlined_by_line_and_nesting(name: str) -> None:
    grammar = grammar_for(name)
    assert grammar is not None
    assert is_ready(grammar)  # `make` installs the extra `code`
    source, depths = _SOURCES[name]
    lines = source.split("\n")
    expected = [f"{number} | {'  ' * depth}{lines[number - 1].strip()}" for number, depth in depths.items()]
    assert outline(source, grammar) == expected


def test_every_language_has_an_example_here() -> None:
    assert {grammar_for(name) for name in _SOURCES} == set(GRAMMARS)


def test_the_tool_names_every_language_that_there_is_a_grammar_for() -> None:
    assert tuple(dict.fromkeys(grammar.name for grammar in GRAMMARS)) == declarations.OUTLINE_LANGUAGES


def test_a_text_that_a_grammar_cannot_cope_with_ends_neither_the_process_nor_the_patience() -> None:
    grammar = grammar_for("a.go")
    assert grammar is not None
    with pytest.raises(ToolError, match="takes too long to parse this as Go"):
        syntax_tree("[{" * 131_072, grammar, 0.05)
    assert outline("package a\n\nfunc f() {}\n", grammar) == ["3 | func f() {}"]


def test_without_its_grammar_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    outlines._language.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_javascript", None)
    with pytest.raises(ToolError, match=f"Outlines of JavaScript need .*{re.escape(install_command('code'))}"):
        outline("x", GRAMMARS[1])


async def test_without_the_extra_python_is_outlined_and_the_tool_says_what_is_not(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outlines, "find_spec", lambda name: None)
    monkeypatch.setattr(declarations, "find_spec", lambda name: None)
    assert declarations.languages().startswith("Python. JavaScript, TypeScript, Go, ")
    assert declarations.languages().endswith("Swift need the extra `code`, which is not installed.")
    for name, source in (("a.py", "class A:\n    def f(self): ...\n"), ("a.js", "x"), ("b.js", "x"), ("a.go", "x")):
        Path(workspace.root, name).write_text(source)
    assert await text(workspace, "list_code_definition_names", path=".") == (
        "a.py\n1 | class A:\n2 |   def f(self): ...\n\n"
        "[files in Go, JavaScript need the extra `code`, which is not installed: "
        f"the user can install it with `{install_command('code')}`]"
    )


_PYTHON = st.lists(
    st.sampled_from(
        ["class A:", "def f(a,", "  b): pass", "@d", "x = (1,", ")", '"""', "'def no(): '", "if x:", "async def g(): 1"]
    ).flatmap(lambda line: st.integers(0, 3).map(lambda depth: f"{'    ' * depth}{line}")),
    max_size=12,
).map("\n".join)


@given(_PYTHON | st.text("def classf:()\n\r\t \"'#\\0\\é"))
def test_any_python_has_an_outline(source: str) -> None:
    rows = python_definitions(source)
    assert rows == sorted(rows)
    assert all(row < len(source.split("\n")) and depth >= 0 for row, depth in rows)
    outline(source, GRAMMARS[0])


def test_python_that_does_not_parse_is_outlined_alike() -> None:
    source, depths = _SOURCES["a.py"]
    source += 'class C:\n    """\ndef in_text(): ...\n    """\n\n    def m(self):\n        return (\n'
    depths = {**depths, 10: 0, 15: 1}
    assert python_definitions(source) == [(row - 1, depth) for row, depth in depths.items()]
    for odd in ("\0", "\r", "x = '\\d'", "(" * 5_000, "-" * 100_000, "x" + ".y" * 100_000):
        python_definitions(f"def f(): ...\n{odd}\n")


async def test_the_source_files_of_a_directory_are_outlined(workspace: Workspace) -> None:
    root = Path(workspace.root)
    (root / "a.py").write_text("def f(): ...\n")
    (root / "b.py").write_bytes(b"\0")
    (root / "notes.txt").write_text("def g(): ...\n")
    (root / "link.py").symlink_to("a.py")
    assert await text(workspace, "list_code_definition_names", path=".") == (
        "a.py\n1 | def f(): ...\n\n"
        "b.py\n[b.py is a binary file, not text. "
        "Use a command such as `file` or `xxd`, or a program made for its format.]"
    )
    assert await text(workspace, "list_code_definition_names", path="a.py") == "1 | def f(): ..."


async def test_what_cannot_be_outlined_is_said(workspace: Workspace) -> None:
    (Path(workspace.root) / "notes.txt").write_text("")
    said = "[. has no source file in a language that can be outlined]"
    assert await text(workspace, "list_code_definition_names", path=".") == said
    with pytest.raises(ToolError, match="not in a language that can be outlined"):
        await call(workspace, "list_code_definition_names", path="notes.txt")
    with pytest.raises(ToolError, match="does not exist"):
        await call(workspace, "list_code_definition_names", path="nothing.py")


def test_sources_that_are_parsed_at_the_same_time_have_their_outlines() -> None:
    source = "".join(
        f"class A{number}:\n    def f(self, x=[1, (2, 3)]): return {{x: [x + 1]}}\n" for number in range(300)
    )
    expected = [(row, row % 2) for row in range(600)]
    before = gc.get_threshold()

    def give_way(*_: object) -> None:  # the collector runs in the middle of building a tree
        time.sleep(0)

    gc.callbacks.append(give_way)
    gc.set_threshold(50)
    try:
        with ThreadPoolExecutor(3) as workers:
            found = list(workers.map(python_definitions, [source] * 30))
    finally:
        gc.callbacks.remove(give_way)
        gc.set_threshold(*before)
    assert [outlined == expected for outlined in found] == [True] * 30
