"""What the tools of the server give: shapes that clients read."""

from pydantic import BaseModel, Field

from treadle.mcp_server.running_task import ServedTask, TaskState
from treadle.mcp_server.wording import decisions, question_words
from treadle.present.failure_words import facts_of
from treadle.protocol.errors import TreadleError

_NEXT = {
    TaskState.WORKING: "Call task_result to wait for it.",
    TaskState.NEEDS_ANSWER: "A person has to answer: call task_result to have them asked, or answer_question.",
    TaskState.DONE: "",
    TaskState.STOPPED: "Call send_message to continue.",
    TaskState.FAILED: "Call send_message to try again.",
    TaskState.IDLE: "Call send_message to give it something to do.",
    TaskState.CLOSED: "Call join_task with its id to open it again.",
}


class QuestionReport(BaseModel):
    """A question that waits for a person."""

    id: str
    kind: str
    text: str = Field(description="What it is about, whole: show it to the person who decides.")
    options: list[str] = Field(description="What answer_question takes as its decision.")


class ChangeReport(BaseModel):
    """A file that the task changed."""

    path: str
    added: int
    removed: int


class TaskReport(BaseModel):
    """Where a task is."""

    task_id: str
    state: str = Field(description=f"One of {', '.join(TaskState)}.")
    folder: str
    trusted: bool
    mode: str
    model: str
    doing: str = Field(description="The last thing that happened, in a line.")
    questions: list[QuestionReport]
    queued: int = Field(description="Messages that wait.")
    answer: str = Field(
        description="The answer to the last message of this server, or of the turn that it joined, once there is one."
    )
    error: str = Field(description="Why it stopped before its end.")
    denied: int = Field(description="Calls that were denied because nobody could answer.")
    steps: int
    cost: float = Field(description="US dollars of the last turn; -1 where a price is not known.")
    cost_is_estimate: bool = Field(description="Whether a part of the cost is an estimate, as of a reply that was cut.")
    changes: list[ChangeReport]
    exact: bool = Field(description="Whether `changes` are all; otherwise commands may have changed more.")
    notices: list[str]
    next: str = Field(description="What to do next.")


class SessionLine(BaseModel):
    """A session that can be joined."""

    session_id: str
    folder: str
    title: str


class TaskList(BaseModel):
    """The open tasks, and sessions that can be joined."""

    tasks: list[TaskReport]
    sessions: list[SessionLine]


class DiffReport(BaseModel):
    """What changed in the folder since the session began."""

    task_id: str
    files: list[str]
    diff: str


def error_words(error: TreadleError) -> str:
    """Say what happened, why, and what to do about it, for a client's model."""
    return " ".join(filter(None, (error.what, error.why, error.fix)))


def task_report(task: ServedTask) -> TaskReport:
    """Describe a task."""
    session, outcome, state = task.client.session, task.outcome, task.state
    status = session.status
    return TaskReport(
        task_id=task.id,
        state=state.value,
        folder=str(session.workspace),
        trusted=session.trust.trusted,
        mode=status.mode.value,
        model=status.model,
        doing=task.doing,
        questions=[
            QuestionReport(
                id=one.id,
                kind=one.kind.value,
                text=question_words(task, one),
                options=decisions(task, one),
            )
            for one in task.questions
        ],
        queued=len(status.queue),
        answer="" if outcome is None else outcome.text,
        error=_why(task),
        denied=0 if outcome is None else outcome.denied,
        steps=0 if outcome is None else outcome.steps,
        cost=0.0 if outcome is None else -1.0 if outcome.cost is None else outcome.cost,
        cost_is_estimate=outcome is not None and outcome.usage.estimated,
        changes=[
            ChangeReport(path=one.path, added=one.added, removed=one.removed)
            for one in (() if outcome is None else outcome.changes)
        ],
        exact=outcome is not None and outcome.exact,
        notices=list(session.notices),
        next=_NEXT[state],
    )


def _why(task: ServedTask) -> str:
    """Say why a task stopped before its end, or never comes to one; empty where it does."""
    if task.error is not None:
        return error_words(task.error) if isinstance(task.error, TreadleError) else str(task.error)
    if task.outcome is None:
        return ""
    return task.outcome.why if task.outcome.error is None else facts_of(task.outcome.error)
