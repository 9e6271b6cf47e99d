"""What every tool is driven with, end to end: calls that work, and calls that are refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.pictures import png
from tests.tools.web_server import Page
from treadle.protocol.tools import Outcome

FORM = b"""<!doctype html><title>Form</title><body style="margin:0">
<input id=name style="position:absolute;left:0;top:0;width:300px;height:40px">
<button style="position:absolute;left:600px;top:300px;width:200px;height:100px"
onclick="document.title='Hello '+document.getElementById('name').value;console.log('greeted');boom()">Go</button>
<script src="/missing.js"></script><div style="height:3000px">tall</div>
<script>addEventListener('scroll', () => { document.title = 'at ' + scrollY })</script>"""
PAGES = {
    "/": Page(body=FORM),
    "/page": Page(body=b"<title>T</title><h1>Head</h1><p>Some <b>text</b>.</p>"),
    "/picture": Page(body=png(), headers={"content-type": "image/png"}),
}
NOTEBOOK = '{{"cells": {}, "metadata": {{}}, "nbformat": 4, "nbformat_minor": 4}}\n'
CELL = '[{"cell_type": "markdown", "metadata": {}, "source": ["# B"]}]'
FILES = {
    "app.py": "import os\n\n\ndef load(path):\n    return open(path).read()\n\n\ndef load_all(paths):\n    return 1\n",
    "notes.txt": "one\ntwo\none\n",
    "data.bin": "a\0b",
    ".env": "TOKEN=abc\n",
    "empty/.keep": "",
    "book.ipynb": NOTEBOOK.format("[]"),
}


@dataclass(frozen=True)
class Step:
    """One call: the arguments, what its result says, and how it ends. `SITE` in texts is the address of `PAGES`."""

    arguments: Mapping[str, Any]
    says: str
    outcome: Outcome = Outcome.OK
    tool: str = ""
    picture: bool = False


def denied(says: str, **arguments: Any) -> Step:
    """A call that needs a yes, with nobody there to say it, or that no yes would allow."""
    return Step(arguments, says, Outcome.DENIED)


def failed(says: str, **arguments: Any) -> Step:
    """A call that the tool refuses or that does not work out."""
    return Step(arguments, says, Outcome.FAILED)


def invalid(says: str, **arguments: Any) -> Step:
    """A call that makes no sense."""
    return Step(arguments, says, Outcome.INVALID)


@dataclass(frozen=True)
class Case:
    """How one tool is driven: what works, what is refused; for a tool that ends the turn, the one call that does."""

    works: tuple[Step, ...] = ()
    refused: tuple[Step, ...] = ()
    ends: Step | None = None
    mode: str = "full"
    model: str = "scripted"
    changes: Mapping[str, str | None] = field(default_factory=dict)


def block(old: str, new: str) -> str:
    """One SEARCH/REPLACE block."""
    return f"------- SEARCH\n{old}\n=======\n{new}\n+++++++ REPLACE"


def patch(*lines: str) -> str:
    """A patch of these lines."""
    return "\n".join(("*** Begin Patch", *lines, "*** End Patch"))


def browse(says: str, action: str, *, picture: bool = True, **arguments: str) -> Step:
    """One step in the browser that works."""
    return Step({"action": action, **arguments}, says, picture=picture)


SKILL = "---\nname: greet\ndescription: Say hello.\n---\nSay hello to $ARGUMENTS.\n"
"""One of the user's own skills."""

NO_YES = "Denied [no-user]"
CASES: Mapping[str, Case] = {
    "read_file": Case(
        works=(
            Step({"path": "app.py"}, "4 | def load(path):"),
            Step({"path": "notes.txt", "start_line": 2, "end_line": 2}, "2 | two"),
            Step({"path": "app.py", "other_paths": ["notes.txt"]}, "=== notes.txt"),
        ),
        refused=(
            failed("does not exist. Did you mean notes.txt?", path="note.txt"),
            failed("is a directory. Use list_files", path="empty"),
            failed("is a binary file", path="data.bin"),
            failed("Give a smaller one.", path="notes.txt", start_line=9),
            invalid("Swap them.", path="notes.txt", start_line=3, end_line=2),
            denied(NO_YES, path=".env"),
        ),
    ),
    "search_files": Case(
        works=(
            Step({"path": ".", "regex": r"def \w+", "file_pattern": "*.py", "context_lines": 0}, "4: def load(path):"),
            Step({"path": ".", "regex": "nowhere at all"}, "[no match in .]"),
        ),
        refused=(
            failed("The search failed", path=".", regex="("),
            failed("does not exist", path="nowhere", regex="x"),
            denied(NO_YES, path="/root/.ssh", regex="x"),
        ),
    ),
    "list_files": Case(
        works=(Step({"path": "."}, "notes.txt"), Step({"path": ".", "recursive": True}, "app.py")),
        refused=(
            failed("is a file, not a directory. Use read_file", path="notes.txt"),
            failed("does not exist", path="nowhere"),
            denied(NO_YES, path="/root/.ssh"),
        ),
    ),
    "list_code_definition_names": Case(
        works=(Step({"path": "app.py"}, "def load(path)"), Step({"path": "."}, "def load_all(paths)")),
        refused=(
            failed("is not in a language that can be outlined. Use read_file.", path="notes.txt"),
            failed("does not exist", path="nowhere.py"),
            denied(NO_YES, path="/root/.ssh"),
        ),
    ),
    "replace_in_file": Case(
        works=(
            Step({"path": "notes.txt", "diff": block("two", "2")}, "Saved notes.txt (+1 -1 lines)"),
            Step({"path": "notes.txt", "diff": block("one", "1"), "replace_all": True}, "Replaced in 2 places."),
        ),
        refused=(
            failed("Refused [not_found]", path="notes.txt", diff=block("nowhere", "x")),
            failed("Refused [ambiguous]", path="app.py", diff=block("load", "x")),
            failed("Refused [no_marker]", path="notes.txt", diff="one -> x"),
            failed("To create a file use write_to_file", path="new.txt", diff=block("one", "x")),
            denied(NO_YES, path=".env", diff=block("TOKEN=abc", "x")),
        ),
        changes={"notes.txt": "1\n2\n1\n"},
    ),
    "apply_patch": Case(
        works=(
            Step(
                {
                    "patch": patch(
                        "*** Update File: notes.txt",
                        "@@",
                        " one",
                        "-two",
                        "+2",
                        " one",
                        "*** Add File: new.txt",
                        "+new",
                    )
                },
                "Saved new.txt",
            ),
            Step({"patch": patch("*** Delete File: new.txt")}, "Deleted new.txt"),
        ),
        refused=(
            failed("Refused [no_marker]", patch="--- a\n+++ b"),
            failed("Refused [not_found]", patch=patch("*** Update File: notes.txt", "@@", "-nowhere", "+x")),
            failed("Nothing was changed: gone.txt", patch=patch("*** Delete File: gone.txt")),
            denied(NO_YES, patch=patch("*** Delete File: .env")),
        ),
        model="gpt-5-scripted",
        changes={"notes.txt": "one\n2\none\n"},
    ),
    "write_to_file": Case(
        works=(
            Step({"path": "docs/new.txt", "content": "new\n"}, "Created docs/new.txt (+1 -0 lines)"),
            failed("exists, and you have not read it. Send the same call again", path="notes.txt", content="all new\n"),
            Step({"path": "notes.txt", "content": "all new\n"}, "Replaced notes.txt"),
        ),
        refused=(
            failed("The file already has this text.", path="notes.txt", content="all new\n"),
            failed(
                "stands for omitted lines", path="app.py", content="import os\n# ... rest of the code unchanged ...\n"
            ),
            failed("is a directory", path="empty", content="x"),
            denied(NO_YES, path=".git/config", content="x"),
        ),
        changes={"docs/new.txt": "new\n", "notes.txt": "all new\n"},
    ),
    "edit_notebook": Case(
        works=(
            Step(
                {"path": "book.ipynb", "action": "insert", "cell": "0", "content": "# A", "cell_type": "markdown"},
                "1 | # Cell 1 (markdown)\n2 | # A",
            ),
            Step({"path": "book.ipynb", "action": "insert", "cell": "1", "content": "x = 1"}, "3 | # Cell 2 (code)"),
            Step({"path": "book.ipynb", "action": "replace", "cell": "1", "content": "# B"}, "2 | # B"),
            Step({"path": "book.ipynb", "action": "delete", "cell": "2"}, "Saved book.ipynb (+0 -2 lines)"),
        ),
        refused=(
            failed("There is no cell 7", path="book.ipynb", action="delete", cell="7"),
            failed("is no notebook of format 4", path="notes.txt", action="delete", cell="1"),
            failed("give write_to_file its JSON", path="new.ipynb", action="insert", cell="0", content="x"),
            invalid("Call again with it.", path="book.ipynb", action="insert", cell="0"),
            denied(NO_YES, path=".env", action="delete", cell="1"),
        ),
        changes={"book.ipynb": NOTEBOOK.format(CELL)},
    ),
    "new_rule": Case(
        refused=(
            invalid("The rule is empty. Write what it says.", path="testing", content=" "),
            denied(NO_YES, path="testing", content="Run the tests."),
            invalid("Use a path such as .clinerules/testing.md", path="AGENTS.md/../../x/y.md", content="x"),
            invalid("Use a path such as .clinerules/testing.md", path=".git/config", content="x"),
        ),
    ),
    "use_skill": Case(
        works=(Step({"name": "greet", "arguments": "Ann"}, "Say hello to Ann."),),
        refused=(invalid("Use one of: greet.", name="nothing"),),
    ),
    "execute_command": Case(
        works=(
            Step({"command": "echo hello; cat notes.txt"}, "Exit status 0.\nhello\none"),
            Step({"command": "sleep 60", "background": True}, "Command 2 continues in the background"),
        ),
        refused=(
            invalid("The command is empty.", command="  "),
            failed("Stopped: it ran longer than 1 s. Give it more time", command="sleep 60", timeout=1),
            denied(NO_YES, command="rm -rf /"),
        ),
    ),
    "read_command_output": Case(
        works=(
            Step({"command": "echo begun; sleep 60", "background": True}, "begun", tool="execute_command"),
            Step({"command_number": 1, "wake_on": "begun|ERROR"}, "From now on you are sent lines that match"),
            Step({"command_number": 1, "stop": True}, "Stopped: you asked for it."),
        ),
        refused=(
            failed("Command 7 was never started. Continue", command_number=7),
            invalid("wake_on cannot be used", command_number=1, wake_on="(a+)+"),
        ),
    ),
    "set_timer": Case(refused=(invalid("the run ends with your turn", seconds=5),)),
    "use_subagents": Case(
        refused=(
            invalid("There is no agent 'x'. Use one of these", tasks=[{"prompt": "Look.", "agent": "x"}]),
            invalid("A task has no prompt. Write", tasks=[{"prompt": " "}]),
        )
    ),
    "run_code": Case(
        works=(Step({"code": "print((await read_file('notes.txt')).count('one'))"}, "2"),),
        refused=(
            failed("The program failed:\nTraceback (most recent call last)", code="1 / 0"),
            invalid("There is no program. Write one", code=" "),
        ),
    ),
    "web_fetch": Case(
        works=(Step({"url": "SITE/page"}, "# T\n\n# Head\n\nSome **text**."),),
        refused=(
            failed("404", url="SITE/nowhere"),
            failed("is not text but image/png", url="SITE/picture"),
            failed("could not be fetched", url="http://127.0.0.1:9/"),
            failed("Give a smaller `start`.", url="SITE/page", start=5000),
            invalid("instead of http or https", url="file:///etc/passwd"),
            denied("reveals secrets of the machine", url="http://169.254.169.254/latest/meta-data/"),
            denied(NO_YES, url="http://192.168.0.1/"),
        ),
    ),
    "browser_action": Case(
        works=(
            browse("Title: Form\nstatus 404: GET SITE/missing.js", "launch", url="SITE/"),
            browse("Title: Form", "type", selector="#name", text="Ada"),
            browse(
                "Title: Hello Ada\nconsole log: greeted\nscript error: boom is not defined",
                "click",
                coordinate="700,350",
            ),
            browse("Title: Hello Ada", "click", selector="#name"),
            browse("Title: Hello Ada", "type", text=" L"),
            browse("Title: Hello Ada", "press", key="Tab"),
            browse("Title: at 700", "scroll_down"),
            browse("Title: at 0", "scroll_up"),
            browse("Title: at 0\n(nothing on the console", "screenshot"),
        ),
        refused=(
            failed("no such element", action="click", selector="#nowhere"),
            invalid("Write it as `x,y`", action="click", coordinate="1;2"),
            invalid("instead of http or https", action="launch", url="file:///etc/passwd"),
            denied("reveals secrets of the machine", action="launch", url="http://169.254.169.254/"),
            Step({"action": "close"}, "The browser is closed."),
            failed("No browser is open. Begin with the action launch", action="screenshot"),
            failed("and that the server runs", action="launch", url="http://127.0.0.1:9/"),
        ),
    ),
    "ask_followup_question": Case(
        refused=(
            invalid("Nobody is here to answer.", question="Which one?", options=["a", "b"]),
            invalid("The question is empty.", question=" "),
        ),
    ),
    "condense": Case(
        works=(Step({"context": "The task, and what is next."}, "Go on from your summary."),),
        refused=(invalid("The context is empty.", context=" "),),
    ),
    "new_task": Case(refused=(invalid("nobody is here to agree to it", context="The next task."),)),
    "plan_mode_respond": Case(
        refused=(invalid("The response is empty.", response=""),),
        ends=Step({"response": "First this, then that."}, "First this, then that."),
        mode="plan",
    ),
    "attempt_completion": Case(
        refused=(
            invalid("The result is empty.", result=" "),
            failed("Fix it, or finish without the command", result="Done.", command="exit 3"),
        ),
        ends=Step({"result": "Done.", "command": "cat notes.txt"}, "Done.\n\n$ cat notes.txt\nExit status 0.\none"),
    ),
}


def lay_out(folder: Path) -> Path:
    """Write the project that the calls work on."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder
