"""The screen that makes a file to give away: without secrets, without scripts, and nobody keeps it."""

import json

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


def test_what_is_hidden_is_counted_by_its_name(visit: Visit) -> None:
    said = visit.get("/s/ID/share/hidden?form=html", accept="*/*").json()
    text = visit.get("/s/ID/share/file?form=html").text
    assert said["bytes"] == len(text.encode())
    assert said["hidden"]
    name, times = said["hidden"][0]["name"], text.count(f"[hidden: {said['hidden'][0]['name']}]")
    assert said["hidden"][0]["times"].startswith(f"{times} time"), name


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
