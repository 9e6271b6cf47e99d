"""The screen that makes a file to give away: without secrets, without scripts, and nobody keeps it."""

import json
import re
from html import unescape

from tests.web.recorded import HOSTILE, SECRET, Visit


def test_each_form_is_a_download_that_nothing_keeps_and_has_no_secret(visit: Visit) -> None:
    for form, ending in (("html", "html"), ("md", "md"), ("json", "jsonl")):
        found = visit.get(f"/s/ID/share/file?form={form}")
        assert found.status_code == 200
        name = f"treadle-{visit.recorded.session}.{ending}"
        assert found.headers["content-disposition"] == f'attachment; filename="{name}"'
        assert found.headers["cache-control"] == "no-store"
        assert SECRET not in found.text
        assert "All done." in found.text
    log = visit.get("/s/ID/share/file?form=json").text
    assert json.loads(log.partition("\n")[0])["redacted"] is True


def test_what_is_hidden_is_counted_by_its_name_before_the_file_is_downloaded(visit: Visit) -> None:
    assert "/share/file?" not in visit.text("/s/ID/share"), "the link comes with what is hidden"
    said = visit.get("/s/ID/share/hidden?form=html&turn=1", accept="*/*").text
    link = unescape(re.search(r'href="[^"]*(/s/[^"]+)"', said)[1])  # type: ignore[index]
    text = visit.get(link).text
    assert f"{len(text.encode()):,} bytes" in said
    found = re.findall(r"<li>(.+): ([\d,]+) times?</li>", said)
    assert found
    for name, times in found:
        assert text.count(f"[hidden: {name}]") == int(times.replace(",", "")), name


def test_the_preview_is_what_the_file_says_and_nothing_in_it_comes_alive(visit: Visit) -> None:
    page = visit.text("/s/ID/share")
    body = visit.get("/s/ID/share/file?form=html").text.partition("</h1>")[2].partition("</p>\n")[2]
    assert body.removesuffix("</body></html>\n") in page
    assert SECRET not in page
    assert HOSTILE not in visit.get("/s/ID/share/file?form=html").text


def test_what_was_before_a_turn_is_left_out(visit: Visit) -> None:
    whole = visit.get("/s/ID/share/file?form=md&turn=1").text
    assert "I look at" in whole
    later = visit.get("/s/ID/share/file?form=md&turn=2").text
    assert "I look at" not in later
    assert "I look at" in visit.get("/s/ID/share/file?form=json&turn=2").text
    assert visit.get("/s/ID/share/file?form=exe", accept="*/*").json()["code"] == "export-form"
    assert visit.get("/s/ID/share?turn=-1").status_code == 400
