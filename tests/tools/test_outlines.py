"""Outlines of source files."""

import importlib.util
import sys
from pathlib import Path

import pytest
from tests.tools.calls import call, text

from treadle.protocol.errors import ToolError
from treadle.tools import outlines
from treadle.tools.outlines import GRAMMARS, grammar_for, outline
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
    if importlib.util.find_spec(grammar.package) is None:
        pytest.skip("the extra `code` is not installed")
    source, depths = _SOURCES[name]
    lines = source.split("\n")
    expected = [f"{number} | {'  ' * depth}{lines[number - 1].strip()}" for number, depth in depths.items()]
    assert outline(source, grammar) == expected


def test_every_language_has_an_example_here() -> None:
    assert {grammar_for(name) for name in _SOURCES} == set(GRAMMARS)


def test_without_its_grammar_the_extra_to_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    outlines._parser.cache_clear()
    monkeypatch.setitem(sys.modules, "tree_sitter_python", None)
    with pytest.raises(ToolError, match=r"pip install 'treadle\[code\]'"):
        outline("x", GRAMMARS[0])


async def test_the_source_files_of_a_directory_are_outlined(workspace: Workspace) -> None:
    pytest.importorskip("tree_sitter_python", reason="the extra `code` is not installed")
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
    with pytest.raises(ToolError, match="in no language that can be outlined"):
        await call(workspace, "list_code_definition_names", path="notes.txt")
    with pytest.raises(ToolError, match="does not exist"):
        await call(workspace, "list_code_definition_names", path="nothing.py")
