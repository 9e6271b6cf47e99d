"""What models do in the middle of healthy work: each is a piece of a session, and none may end it."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.rehearsal import project
from tests.rehearsal.model import Moves, UnexpectedError, call, know, need, reply, run
from treadle.protocol.models import ErrorKind
from treadle.providers.scripted.script import BreakOff, Cut, MakeCall, Refuse, SayThinking, Wait
from treadle.providers.scripted.seen_requests import SeenRequest

EDITS = 8
POLLS = 7


@dataclass(slots=True)
class Job:
    """One session: what the tree should become, and what the person beside it does.

    `wishes` are taken by who runs the session: `restart`, `steer TEXT` or `queue TEXT`. `finishing` says that the model
    came to the end of what it had to do.
    """

    jitter: Random
    native: bool
    window: int | None = None
    tree: project.Tree = field(default_factory=project.files)
    wishes: list[str] = field(default_factory=list)
    written: int = 0
    finishing: bool = False
    limit: int = 1

    def new_name(self) -> str:
        """Give a name for a new file."""
        self.written += 1
        return f"src/new_{self.written}.py"

    @property
    def roomy(self) -> bool:
        """Whether a usual result fits the window easily."""
        return self.window is None or self.window > 20_000


Piece = Callable[[Job], Moves]


def block(search: str, replace: str) -> str:
    """One SEARCH/REPLACE block."""
    return f"------- SEARCH\n{search}\n=======\n{replace}\n+++++++ REPLACE\n"


def edit(path: str, search: str, replace: str) -> MakeCall:
    """An edit."""
    return call("replace_in_file", path=path, diff=block(search, replace))


def raise_limit(job: Job) -> MakeCall:
    """An edit that changes the limit by one."""
    before, job.limit = job.limit, job.limit + 1
    job.tree[b"src/limits.py"] = f"limit = {job.limit}\nstep = 2\nname = 'shelf'\n".encode()
    return edit("src/limits.py", f"limit = {before}", f"limit = {job.limit}")


def write(job: Job, content: str = "answer = 42\n") -> MakeCall:
    """A new file."""
    name = job.new_name()
    job.tree[name.encode()] = content.encode()
    return call("write_to_file", path=name, content=content)


def look_around(job: Job) -> Moves:
    """Several readers in one reply."""
    seen = yield reply(
        "I look around.",
        call("list_files", path="."),
        call("search_files", path="src", regex="def price_1"),
        call("read_file", path="src/orders.py"),
    )
    know(seen, "README.md", "price_1", "def total")


def wrong_types(job: Job) -> Moves:
    """Numbers and truths as strings, one thing for a list: in one reply, as many mistakes as calls."""
    seen = yield reply(
        call("read_file", path="src/limits.py", start_line="1", end_line="3"),
        call("list_files", path=".", recursive="true"),
        call("read_file", path="docs/notes.md", start_line="2", other_paths="README.md"),
        call("execute_command", command="echo typed", timeout="30"),
    )
    if "step = 2" not in seen.conversation or "typed" not in seen.last_result:
        seen = yield reply(
            call("read_file", path="src/limits.py", start_line=1, end_line=3),
            call("execute_command", command="echo typed", timeout=30),
        )
        need(seen, "typed")
        know(seen, "step = 2")


def other_names(job: Job) -> Moves:
    """The parameters of other agents."""
    seen = yield reply(
        call("execute_command", cmd="echo named"),
        call("read_file", file_path="src/limits.py"),
        call("read_file", filename="README.md"),
    )
    if "named" not in seen.last_result or "step = 2" not in seen.conversation:
        seen = yield reply(run("echo named"), call("read_file", path="src/limits.py"))
        need(seen, "named")
        know(seen, "step = 2")


def several_mistakes(job: Job) -> Moves:
    """Two replies full of different mistakes, then the right calls."""
    damaged = MakeCall(name="read_file", raw='{"path": "src/lim') if job.native else call("read_file")
    yield reply(
        call("open_file", path="src/limits.py"),
        call("read_file"),
        damaged,
        call("search_files", path="src"),
        call("replace_in_file", path="src/limits.py"),
    )
    yield reply(call("read_file", path=7), call("read_files", path="src"), call("read_file", path="src/limit.py"))
    seen = yield reply(call("read_file", path="src/limits.py"))
    know(seen, "step = 2")


def edit_and_check(job: Job) -> Moves:
    """A check that prints the same after each edit, until the last."""
    wanted = job.limit + EDITS
    check = run(f"sh tests/check.sh {wanted}")
    seen = yield reply(check)
    while job.limit < wanted:
        yield reply(raise_limit(job))
        seen = yield reply(check)
    need(seen, "all 12 passed")


def check_in_the_same_reply(job: Job) -> Moves:
    """The same, with edit and check in one reply."""
    wanted = job.limit + EDITS
    check = run(f"sh tests/check.sh {wanted}")
    seen = yield reply(call("read_file", path="src/limits.py"), check)
    while job.limit < wanted:
        seen = yield reply(raise_limit(job), check)
    need(seen, "all 12 passed")


def poll(job: Job) -> Moves:
    """Looks again and again at a command that prints nothing until something else is done."""
    seen = yield reply(run("until test -e go; do sleep 0.02; done; rm go; echo ready", background=True))
    number = _number(seen)
    look = call("read_command_output", command_number=number)
    for _ in range(POLLS):
        seen = yield reply(look)
    yield reply(run("touch go"))
    seen = yield reply(call("read_command_output", command_number=number, wait=60))
    need(seen, "ready")


def _number(seen: SeenRequest) -> int:
    """Find the number of a command in the background, which the result names first."""
    found = re.findall(r"[Cc]ommand (\d+)", seen.last_result)
    if not found:
        raise UnexpectedError(f"no number of a command: {seen.last_result[:500]!r}")
    return int(found[0])


def thinks_only(job: Job) -> Moves:
    """A reply of nothing but thoughts."""
    yield reply(SayThinking(text="I should read the file first."))
    seen = yield reply(call("read_file", path="src/limits.py"))
    know(seen, "step = 2")


def says_nothing(job: Job) -> Moves:
    """An empty reply."""
    yield reply()
    seen = yield reply(call("read_file", path="src/orders.py"))
    know(seen, "def total")


def says_text(job: Job) -> Moves:
    """Text without a call, in the middle of work."""
    yield reply(write(job))
    yield reply("The file is written. Next I will run the check.")
    seen = yield reply(run("echo checked"))
    need(seen, "checked")


def answers_as_in_plan_mode(job: Job) -> Moves:
    """The tool of another mode."""
    yield reply(write(job))
    yield reply(call("plan_mode_respond", response="First I would write the file, then check it."))
    seen = yield reply(run("echo went on"))
    need(seen, "went on")


def reads_giant(job: Job) -> Moves:
    """A file of two megabytes, twice."""
    seen = yield reply(call("read_file", path="data/events.log"))
    if job.roomy:
        need(seen, "service=shelf")
    yield reply(call("read_file", path="data/events.log", start_line=2000), call("read_file", path="data/events.log"))
    seen = yield reply(call("search_files", path="data", regex="shelf"))
    if job.roomy:
        need(seen, "service=shelf")


def prints_giant(job: Job) -> Moves:
    """A command that prints ten megabytes."""
    seen = yield reply(run("seq 1 1400000"))
    if job.roomy:
        need(seen, "1400000")
    seen = yield reply(run("head -c 10000000 /dev/zero | tr '\\0' 'x'; echo; echo over"))
    if job.roomy:
        need(seen, "over")


def meets_long_line(job: Job) -> Moves:
    """A line of two hundred thousand characters: read, searched, printed."""
    yield reply(
        call("read_file", path="data/prices.json"),
        call("search_files", path="data", regex="prices"),
        run("cat data/prices.json"),
    )
    seen = yield reply(call("read_file", path="src/limits.py"))
    know(seen, "step = 2")


def foreign_notation(job: Job) -> Moves:
    """The notations of other agents, as text, after some work."""
    yield reply(write(job))
    yield reply(job.jitter.choice(FOREIGN))
    seen = yield reply(run("echo understood"))
    need(seen, "understood")


FOREIGN = (
    '<function_calls>\n<invoke name="read_file">\n<parameter name="path">README.md</parameter></invoke></function_calls>',  # noqa: E501
    '```json\n{"tool": "read_file", "arguments": {"path": "README.md"}}\n```',
    '<tool_call>\n{"name": "read_file", "arguments": {"path": "README.md"}}\n</tool_call>',
    '[TOOL_CALLS][{"name": "read_file", "arguments": {"path": "README.md"}}]',
    "<|channel|>commentary to=functions.read_file <|constrain|>json<|message|>{}",
    'read_file(path="README.md")',
)


def makes_results_up(job: Job) -> Moves:
    """Goes on after a call as if its result were there."""
    invented = "\n\n[read_file for 'src/limits.py'] Result:\n1 | limit = 99\n\nThe limit is 99, so the check passes."
    seen = yield reply("I read it.", call("read_file", path="src/limits.py"), invented)
    know(seen, f"1 | limit = {job.limit}")


def rereads(job: Job) -> Moves:
    """One unchanged file, read again and again."""
    for start in (None, None, 2, None):
        more = {} if start is None else {"start_line": start}
        yield reply(call("read_file", path="src/shelf.py", **more))
    seen = yield reply(call("read_file", path="src/orders.py"))
    know(seen, "def total")


def reads_after_much(job: Job) -> Moves:
    """One unchanged file before and after so much that a small window has lost the first reading."""
    yield reply(call("read_file", path="src/orders.py"))
    for number in range(6):
        yield reply(run(f"seq {number} {number + 3000}"))
    seen = yield reply(call("read_file", path="src/orders.py"))
    know(seen, "def total")


def second_try(job: Job) -> Moves:
    """Edits whose first try does not match, one of them twice."""
    for wrong in (f"limit = {job.limit + 5}", f"  limit == {job.limit};", "no such line\nnor this one"):
        yield reply(edit("src/limits.py", wrong, "limit = 0"))
        seen = yield reply(call("read_file", path="src/limits.py"))
        know(seen, f"1 | limit = {job.limit}")
    yield reply(raise_limit(job))


def asks_nobody(job: Job) -> Moves:
    """A question with nobody there, and another one."""
    yield reply(call("ask_followup_question", question="Shall I go on?", options=["Yes", "No"]))
    yield reply(call("ask_followup_question", question="Which limit do you want?"))
    yield reply(raise_limit(job))


def keeps_checklist(job: Job) -> Moves:
    """A checklist that any call carries."""
    yield reply(call("read_file", path="src/limits.py", task_progress="- [ ] raise the limit\n- [ ] check it"))
    yield reply(raise_limit(job))
    done = "- [x] raise the limit\n- [x] check it"
    seen = yield reply(call("execute_command", command="echo listed", task_progress=done))
    need(seen, "listed")


def reads_then_writes(job: Job) -> Moves:
    """Readers and a change in one reply, and a reader behind it."""
    seen = yield reply(
        call("read_file", path="src/limits.py"),
        call("read_file", path="src/orders.py"),
        raise_limit(job),
        call("read_file", path="src/limits.py"),
    )
    know(seen, f"1 | limit = {job.limit}", "def total")


def bad_line(job: Job) -> Moves:
    """A provider that is busy, breaks off and is cut, one after the other."""
    now = {"retry-after": "0"}
    troubles: list[Refuse | BreakOff | Cut] = [
        Refuse(status=429, message="slow down", headers=now),
        Refuse(status=529, message="Overloaded", headers=now),
        Refuse(status=503, body="<html>upstream</html>", headers=now),
        BreakOff(kind=ErrorKind.OVERLOADED),
        Cut(after_bytes=job.jitter.randrange(200)),
    ]
    for trouble in job.jitter.sample(troubles, 2):
        if isinstance(trouble, Refuse):
            yield reply(trouble)
        else:
            yield reply("I will", call("read_file", path="README.md"), trouble)
    seen = yield reply(call("read_file", path="src/orders.py"))
    know(seen, "def total")


def odd_names(job: Job) -> Moves:
    """A folder of names that are no text."""
    seen = yield reply(
        call("list_files", path="odd"),
        call("list_files", path=".", recursive=True),
        call("search_files", path=".", regex="odd content"),
        run("ls odd"),
    )
    need(seen, "blank")
    seen = yield reply(call("read_file", path="odd/a'b\"c"), write(job))
    know(seen, "odd content")


def loop_of_links(job: Job) -> Moves:
    """Links that lead to themselves and upwards."""
    yield reply(
        call("list_files", path="links"),
        call("list_files", path=".", recursive=True),
        call("read_file", path="links/self"),
        call("search_files", path="links", regex="limit"),
    )
    seen = yield reply(call("list_files", path="src"))
    need(seen, "limits.py")


def restarted(job: Job) -> Moves:
    """The program ends while the model writes, and the session is taken up again."""
    yield reply(write(job))
    job.wishes.append("restart")
    yield reply("I write a long", Wait(seconds=600))
    seen = yield reply(call("read_file", path="src/orders.py"))
    know(seen, "def total")


def steered(job: Job) -> Moves:
    """The person says something while a command runs."""
    job.wishes.append("steer Please keep it short.")
    seen = yield reply(run("sleep 0.1; echo slept"))
    for _ in range(3):
        if "Please keep it short." in seen.conversation:
            return
        seen = yield reply(run("sleep 0.2; date +%N"))
    raise UnexpectedError("what the person said never came")


def queued(job: Job) -> Moves:
    """The person asks for more while the model works: it comes after the end of the turn."""
    job.wishes.append("queue Now raise the limit.")
    yield reply(run("sleep 0.1; echo slept"))
    seen = yield reply(call("attempt_completion", result="The first part is done."))
    if "Now raise the limit." not in seen.last_user:
        raise UnexpectedError(f"the queued prompt did not come: {seen.last_user[-500:]!r}")
    yield reply(raise_limit(job))
