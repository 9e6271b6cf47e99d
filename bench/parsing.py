"""How fast replies are parsed in 4-character chunks, and whether the cost per character is flat."""

import time
from collections.abc import Callable

from treadle.parsing import NativeReader, ToolGrammar, XmlReader

CHUNK = 4
SIZES = (64 * 1024, 256 * 1024, 1024 * 1024, 4 * 1024 * 1024)
MEGABYTE = 1024 * 1024
TOOLS = (
    ToolGrammar("write_to_file", ("path", "content"), ("path", "content")),
    ToolGrammar("read_file", ("path",), ("path",)),
    ToolGrammar("execute_command", ("command", "requires_approval"), ("command",)),
)
LINE = "    return [item for item in values if item < limit and item]  # a usual line of code\n"


def filled(unit: str, size: int, before: str = "", after: str = "") -> str:
    """`unit` repeated between `before` and `after` until the text has `size` characters."""
    middle = size - len(before) - len(after)
    return before + (unit * (middle // len(unit) + 1))[:middle] + after


WRITE = "I write the file.\n<write_to_file>\n<path>a.py</path>\n<content>\n"
WRITTEN = "\n</content>\n</write_to_file>"
STEP = (
    f"I change the helper, then read its test.\n{WRITE}{LINE * 40}{WRITTEN}\n"
    "<read_file>\n<path>tests/test_a.py</path>\n</read_file>\n"
)
CASES: dict[str, Callable[[int], str]] = {
    "xml, prose": lambda size: filled("A plain sentence with `code` in it, and a line break.\n", size),
    "xml, one giant write_to_file": lambda size: filled(LINE, size, WRITE, WRITTEN),
    "xml, files, reads and prose": lambda size: filled(STEP, size),
    "xml, many small calls": lambda size: filled("Now:\n<read_file>\n<path>src/a.py</path>\n</read_file>\n", size),
    "xml, many '<' in text": lambda size: filled("<", size),
    "xml, many '<' in a value": lambda size: filled("<", size, WRITE, WRITTEN),
    "xml, many fake closing tags": lambda size: filled("</content>\n", size, WRITE, WRITTEN),
    "xml, many opening tags": lambda size: filled("<read_file>", size),
    "xml, many calls never closed": lambda size: filled("<read_file>\n<path>a\n", size),
    "xml, nested and never closed": lambda size: filled("<read_file>\n<path>a</path>\n</read_file>", size, WRITE),
    "xml, blanks after a tag": lambda size: filled(" ", size, "<read_file>"),
    "xml, one line of tags in code": lambda size: filled("`<read_file>` ", size),
    "native, one giant string": lambda size: filled(
        LINE.replace("\n", "\\n"), size, '{"path": "a.py", "content": "', ' "}'
    ),
    "native, many escapes": lambda size: filled("\\u00e9\\n", size, '{"content": "', '"}'),
    "native, nested arrays": lambda size: filled('["a{", {"b": 1}], ', size, '{"items": [', "0]}"),
}


def seconds(text: str, *, native: bool) -> float:
    """CPU seconds to parse `text` in chunks of four characters."""
    chunks = [text[at : at + CHUNK] for at in range(0, len(text), CHUNK)]
    begin = time.process_time()
    if native:
        calls = NativeReader()
        calls.start(0, "call-1", "write_to_file")
        for chunk in chunks:
            calls.feed(0, chunk)
        calls.finish()
    else:
        reply = XmlReader(TOOLS, reasoning_tags=True)
        for chunk in chunks:
            reply.feed(chunk)
        reply.finish()
    return time.process_time() - begin


def main() -> None:
    """Print one row per kind of reply."""
    heads = "".join(f"{f'{size // 1024} KB':>9}" for size in SIZES)
    print(f"{'4-character chunks':34}{'1 MB in s':>10}   ns per character:{heads}")
    for name, text_of in CASES.items():
        taken = {size: seconds(text_of(size), native=name.startswith("native")) for size in SIZES}
        rates = "".join(f"{taken[size] / size * 1e9:9.0f}" for size in SIZES)
        print(f"{name:34}{taken[MEGABYTE]:10.2f}   {'':17}{rates}", flush=True)


if __name__ == "__main__":
    main()
