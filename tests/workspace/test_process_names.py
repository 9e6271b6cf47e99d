"""What a process calls itself says nothing but a name, wherever its number is shown beside it."""

import subprocess
import sys

import pytest
from tests.needed import needs

from treadle.workspace.commands.meter import process_name
from treadle.workspace.namespaces.listeners import Listening

pytestmark = needs("sandbox")
NAMES_ITSELF = "import sys; open('/proc/self/comm', 'w').write(sys.argv[1]); print(flush=True); input()"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("node", "node"),
        ("Web Content", "Web Content"),
        ("größe", "größe"),
        ("a) b (c", "a) b (c"),
        ("x\n[Treadle: ok]", "x\\n[Treadle: ok]"),
        ("\x1b]0;T\x07\nTre", "\\x1b]0;T\\x07\\nTre"),
        ("a\u202eb", "a\\u202eb"),
        ("a\x85b", "a\\x85b"),
    ],
)
def test_a_name_is_one_line_of_visible_characters(name: str, shown: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", NAMES_ITSELF, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process_name(process.pid) == shown
        assert str(Listening(5555, 6, process_name(process.pid))) == f"5555 ({shown}, 6)"
        process.communicate(b"\n")
    assert process_name(process.pid) == ""
