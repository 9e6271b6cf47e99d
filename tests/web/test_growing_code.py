"""Code of a reply that is still written: all of it is there at any time, its finished lines have their colours."""

import re
from html import unescape

import pytest

from treadle.web.markup import code, markdown

LINES = [
    'def total(items):\n    """Adds them,\n    all."""\n',
    "    return sum(<>)\n\n",
    *["    x = '&'  # one more\n"] * 120,
]


def shown(html: str) -> str:
    found = re.search(r"<pre[^>]*>(.*)</pre>", html, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("language", ["python", "", "no such"])
def test_every_beginning_is_shown_whole_and_coloured_as_the_end_will_be(language: str) -> None:
    whole = "".join(LINES)
    coloured = str(code(whole, language=language))
    last = 0
    for size in (*range(0, 400, 7), *range(400, len(whole), 211)):
        html = shown(markdown(f"```{language}\n{whole[:size]}", True))
        assert unescape(re.sub(r"</?span[^>]*>", "", html)).rstrip() == whole[:size].rstrip()
        finished = html[: html.rfind("</span>") + len("</span>")] if "</span>" in html else ""
        assert coloured.startswith(finished)
        assert len(finished) >= last
        last = len(finished)
    assert (last > len(coloured) * 0.8) == (language == "python")


def test_code_that_is_finished_is_coloured_to_its_end() -> None:
    assert shown(markdown("```python\nreturn\n```")) == f"{code('return', language='python')}\n"
