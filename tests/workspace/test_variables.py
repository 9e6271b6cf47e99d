"""What child processes inherit."""

from treadle.workspace.variables import child_variables


def test_keys_are_never_handed_on_and_harmless_variables_are() -> None:
    parent = {"PATH": "/bin", "LC_ALL": "C", "ANTHROPIC_API_KEY": "k", "AWS_SECRET_ACCESS_KEY": "s", "LD_PRELOAD": "x"}
    child = child_variables(parent)
    assert {name: child.get(name) for name in parent} == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "ANTHROPIC_API_KEY": None,
        "AWS_SECRET_ACCESS_KEY": None,
        "LD_PRELOAD": None,
    }
    assert (child["TERM"], child["PAGER"], child["GIT_TERMINAL_PROMPT"]) == ("dumb", "cat", "0")


def test_the_user_may_name_further_variables() -> None:
    assert child_variables({"MY_FLAG": "1", "PAGER": "less"}, ("MY_FLAG", "PAGER"))["MY_FLAG"] == "1"
    assert child_variables({"PAGER": "less"}, ("PAGER",))["PAGER"] == "less"
