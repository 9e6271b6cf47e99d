"""Which lines stand for code that the model left out, and which are code or comments."""

import pytest

from treadle.editing import Edit, EditError, EditFormat, EditResult, ErrorCode, apply_edit
from treadle.editing.elision import is_elision

PLACEHOLDERS = """\
...
…
# ...
# ... existing code ...
// ... existing code ...
// ... rest of the code ...
/* ... */
/* ... existing styles ... */
<!-- ... -->
<!-- unchanged -->
<!-- rest of the page unchanged -->
{/* ... rest of the component ... */}
{/* ... */}
# rest unchanged
# rest of file unchanged
# Rest of the file remains unchanged
# (rest of the code stays the same)
# [unchanged]
// existing code
// existing code here
// Existing imports remain
# other methods unchanged
# Other methods remain the same as before
# remaining code unchanged
# ... (previous code) ...
# keep existing code
# Keep the rest
# same as before
# no changes here
# code omitted for brevity
# everything else unchanged
# imports unchanged
-- rest of the schema
-- ... other tables ...
; rest of file
% ... as before ...
[... rest unchanged ...]
// ...rest of implementation
' existing code
""".splitlines()

CODE = """\
x = [...]
def f(): ...
return ...
# The rest of the arguments are passed to the command as they are
# Existing users keep their rights until they log in again
# Keep the connection open
# the value is unchanged after a failed write
# unchanged files are skipped
# Same-origin only
# etc
# TODO: rest
# imports
# code
...args,
# 1... 2... 3
# other
# No change is too small to be logged
* existing
existing code
rest unchanged
# this file is left unchanged by the formatter, so that a diff of it shows what came from upstream
""".splitlines()


@pytest.mark.parametrize("line", PLACEHOLDERS)
def test_a_placeholder_is_known_however_it_is_written(line: str) -> None:
    assert is_elision(line)
    assert is_elision(f"    {line}  ")


@pytest.mark.parametrize("line", CODE)
def test_code_and_comments_are_no_placeholders(line: str) -> None:
    assert not is_elision(line)


PRE = """\
class Store(Protocol):
    def get(self, key):
        pass

    def put(self, key):
        check(key)
        self.values[key] = value
        # ... see above ...


TEXT
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        pass\n", "        ...\n"),
        ("class Store(Protocol):\n", "class Store(Protocol):\n    def all(self):\n        ...\n\n"),
        ("class Store(Protocol):\n", 'class Store(Protocol):\n    def all(self):\n        """All."""\n        ...\n\n'),
        ("TEXT\n", 'def a():\n    """A.\n\n    B.\n    """\n    ...\n'),
        ("class Store(Protocol):\n", "class Store(Protocol):\n    # ... see above ...\n"),
        ("TEXT\n", "Write:\n\n```python\ndef f():\n    # ... existing code ...\n    g()\n```\n\nTEXT\n"),
        ("        # ... see above ...\n", "        log()\n        # ... see above ...\n"),
    ],
)  # fmt: skip
def test_dots_that_are_code_are_written(old: str, new: str) -> None:
    result = apply_edit(EditFormat.OLD_NEW, PRE, [Edit(old, new)])

    assert isinstance(result, EditResult), result
    assert result.text == PRE.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        check(key)\n        self.values[key] = value\n", "        # existing code\n        log()\n"),
        ("    def put(self, key):\n        check(key)\n", "    def put(self, key):\n        ...\n"),
        ("    def put(self, key):\n        check(key)\n", '    def put(self, key):\n        """Put."""\n        ...\n'),
        ("        check(key)\n", "        # rest unchanged\n"),
    ],
)  # fmt: skip
def test_a_placeholder_in_the_new_text_alone_deletes_nothing(old: str, new: str) -> None:
    result = apply_edit(EditFormat.OLD_NEW, PRE, [Edit(old, new)])

    assert isinstance(result, EditError), result
    assert result.code is ErrorCode.ELISION
