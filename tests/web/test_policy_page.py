"""The screen of the policy: the rules in force, what would be decided and what was, and rules that go again."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.web.recorded import HOSTILE, Visit
from treadle.app.reports.mode_table import mode_table
from treadle.app.reports.past_decisions import DecisionFilter, past_decisions
from treadle.app.reports.policy_explain import asked_context, explain_access, explanation_lines
from treadle.app.security.trusting import session_trust
from treadle.protocol.permissions import Mode, Verdict
from treadle.protocol.tools import RunCommand

RULES = """\
version = 1

[[rule]]
id = "no-publish"
verdict = "deny"
argv = ["npm", "publish"]
reason = "releases are made by CI <b>"
match = ["npm publish"]

[[rule]]
id = "tests"
verdict = "allow"
argv = ["npm", "test"]
match = ["npm test"]
"""


@pytest.fixture(autouse=True)
def rules(visit: Visit) -> Path:
    file = visit.recorded.home / "policy.toml"
    file.write_text(RULES)
    return file


def test_each_rule_stands_with_its_file_and_line_and_can_be_removed(visit: Visit, rules: Path) -> None:
    page = visit.text("/policy")
    assert f"{rules}:3" in page
    assert "releases are made by CI &lt;b&gt;" in page
    assert "command npm publish …" in page
    said = visit.done("/policy/remove", id="no-publish")
    assert said == {"said": f"Removed no-publish from {rules}."}
    assert "no-publish" not in rules.read_text()
    assert 'id = "tests"' in rules.read_text()
    assert visit.post("/policy/remove", id="no-publish").json()["code"] == "rule-unknown"


def test_a_broken_file_is_the_first_thing_that_the_page_says(visit: Visit, rules: Path) -> None:
    rules.write_text("version = 1\n[[rule]]\nid = 7\n")
    assert "nothing runs without asking until it is correct" in visit.text("/policy")


@pytest.mark.parametrize("line", ["npm publish", "ls | head", "rm -rf / && npm test", f"echo '{HOSTILE}'"])
def test_an_explanation_is_that_of_the_command_line(visit: Visit, line: str) -> None:
    trust = session_trust(visit.recorded.folder)
    context = asked_context(visit.recorded.folder, Mode.EDITS, trusted=trust.lets_code_run)
    wanted = explanation_lines(explain_access(RunCommand(command=line, cwd=context.roots[0]), context))
    page = visit.text(f"/policy/explain?{urlencode({'what': line, 'mode': 'edits', 'kind': 'command'})}")
    shown = page.partition('aria-label="Explanation">')[2].partition("</pre>")[0]
    plain = shown.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"').replace("&#39;", "'")
    assert plain.replace("&amp;", "&").rstrip("\n") == "\n".join(wanted)


def test_files_and_addresses_are_explained_and_nothing_is_refused(visit: Visit) -> None:
    assert "denied" in visit.text("/policy/explain?kind=path&what=~/.ssh/id_rsa&op=read&mode=plan")
    assert "asks" in visit.text("/policy/explain?kind=url&what=https://example.com/&mode=ask")
    refused = visit.get("/policy/explain?what=", accept="*/*")
    assert (refused.status_code, refused.json()["code"]) == (400, "policy-question")
    assert visit.get("/policy/explain?what=ls&mode=none", accept="*/*").status_code == 400
    assert visit.get("/policy/explain?what=ls&folder=/nowhere", accept="*/*").status_code == 400


def test_past_decisions_are_the_newest_first_and_can_be_narrowed(visit: Visit) -> None:
    found = past_decisions(DecisionFilter(), most=100).rows
    tools = ["attempt_completion", "execute_command", "write_to_file", "read_file"]
    assert [one.tool for one in found] == tools
    denied = past_decisions(DecisionFilter(verdict=Verdict.REQUIRE_USER_CONFIRMATION), most=100).rows
    assert [one.verdict for one in denied] == [one.verdict for one in found if one in denied]
    page = visit.text("/policy/decisions?text=a.txt")
    assert "write_to_file" in page
    assert "read_file" not in page
    (written,) = (one for one in found if one.tool == "write_to_file")
    assert "write_to_file" in visit.text(f"/policy/decisions?rule={written.reasons[0].rule}")
    assert "No decision matches." in visit.text("/policy/decisions?rule=none-such")
    assert "No decision matches." in visit.text("/policy/decisions?session=other")


def test_only_what_was_approved_leads_to_a_suggestion(visit: Visit) -> None:
    assert "Nothing to suggest." in visit.text("/policy/suggestions")
    assert visit.post("/policy/add", id="none").json()["code"] == "rule-unknown"


def test_what_is_not_allowed_in_a_session_cannot_be_revoked(visit: Visit) -> None:
    with visit.opened():
        refused = visit.post("/policy/revoke", session=visit.recorded.session, allowance="none")
        assert refused.json()["code"] == "allowance-missing"


def test_the_table_of_modes_says_what_plan_and_full_are(visit: Visit) -> None:
    rows = {
        row.kind: {one.mode: one.verdict for one in row.answers}
        for row in mode_table(visit.recorded.folder, trusted=True)
    }
    assert rows["Change a file of the workspace"][Mode.PLAN] is Verdict.DENY
    assert rows["Change a file of the workspace"][Mode.ASK] is Verdict.REQUIRE_USER_CONFIRMATION
    assert rows["Change a file of the workspace"][Mode.EDITS] is Verdict.ALLOW
    assert set(rows["Read a file of the workspace"].values()) == {Verdict.ALLOW}
    assert Verdict.ALLOW not in rows["Dangerous command"].values()
