"""What the error codes of sessions, their logs and their checkpoints mean, and what to do about them."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.protocol.base import Record


class Explanation(Record, frozen=True):
    """What happened, in general, and what helps."""

    meaning: str
    remedy: str


ABOUT_SESSIONS: Mapping[str, Explanation] = MappingProxyType(
    {
        "resume-id": Explanation(
            "--resume has no id, and there is no interactive session in which to choose one.",
            "Name the session: treadle --resume ID. `treadle sessions` lists them.",
        ),
        "add-dir-late": Explanation(
            "A folder cannot be added to a session that already exists.",
            "Start a new session with --add-dir.",
        ),
        "agent-file": Explanation(
            "The file that --agents names cannot be used as an agent. The message says why.",
            "Write Markdown with a header that has a name and a description, and the prompt below it: docs/agents.md.",
        ),
        "writer-copy": Explanation(
            "The copy of the workspace in which a subagent writes cannot be made or found.",
            "The message says why. The workspace itself was not changed.",
        ),
        "writer-merge": Explanation(
            "The changes of a copy could not be applied, because the folder cannot be opened.",
            "Make sure that the folder is there, or apply them to another one with --into. They are kept in the copy.",
        ),
        "writer-unapplied": Explanation(
            "A copy in which a subagent wrote has changes that are not in the workspace.",
            "Apply or discard them first: `treadle copies` lists the copies that are kept, with their sizes.",
        ),
        "copy-name": Explanation(
            "A session cannot work in this copy: it is no name, of another folder, or the session works elsewhere.",
            "Choose another name, and a new session: treadle -w NAME. `treadle copies` lists those that there are.",
        ),
        "variants-use": Explanation(
            "--variants does not go with what was given, has no number or models, or a copy of that name is there.",
            "Use it so: treadle -p TASK -w NAME --variants 3",
        ),
        "copy-unknown": Explanation(
            "No copy, or more than one, has the name that was given.", "`treadle copies` lists those that are kept."
        ),
        "copy-busy": Explanation(
            "A subagent or a session works in the copy, or its changes are being applied.",
            "Wait for its end, or stop it: treadle stop ID",
        ),
        "copy-change": Explanation(
            "No change of the copy, or more than one, has the key that was given.",
            "`treadle copies show ID` lists the changes with their keys; those that were applied are gone.",
        ),
        "copy-use": Explanation(
            "What follows /copies is none of its words.",
            "Use /copies, /copies show ID, /copies apply ID [KEY ...] or /copies discard ID.",
        ),
        "review-range": Explanation(
            "The range that is to be reviewed is none of git.", "Name commits, such as main...HEAD or HEAD~2."
        ),
        "review-use": Explanation(
            "Two things were asked of `treadle review` that exclude each other.", "`treadle review --help` shows them."
        ),
        "review-diff": Explanation("A file that is to be reviewed is no diff.", "Write one with: git diff > FILE.diff"),
        "review-repository": Explanation(
            "There is no repository of git to review, or git does not run in it.",
            "Review a diff instead: treadle review FILE.diff",
        ),
        "review-trust": Explanation(
            "In a folder that you do not trust a review runs git only in a sandbox, and there is none here.",
            "Trust it, or review a diff: treadle review FILE.diff",
        ),
        "review-programs": Explanation(
            "A review does not ask git where the repository could make it run a program, such as a filter.",
            "Review a diff: treadle review FILE.diff",
        ),
        "review-left-out": Explanation(
            "Nothing of what changed can be shown to a model, so nothing was reviewed.",
            "The message names each file with the reason. docs/review.md says what is left out.",
        ),
        "review-answer": Explanation(
            "The model did not answer in the form of a review, though it was asked again.", "Take another model."
        ),
        "review-finding": Explanation("There is no such finding.", "`treadle review` numbers what it finds."),
        "review-apply": Explanation("The change of a finding was not applied.", "The message says why."),
        "test-file": Explanation(
            "A file of instruction tests has a mistake.", "docs/instruction_tests.md shows the form."
        ),
        "test-tape": Explanation("A tape of an instruction test cannot be read.", "Record it again with --live."),
        "test-trust": Explanation(
            "Instruction tests run what their fixtures and checks say, so they run only in a folder that you trust.",
            "Look at them, then: treadle trust, or --trust for one run.",
        ),
        "session-none": Explanation(
            "There is no session in this folder yet.", ("`treadle sessions --all` lists the sessions of every folder.")
        ),
        "usage-option": Explanation(
            "Usage was to be summed up by, or since, something that there is not.",
            "For example `treadle usage --by day --since 7d`, or `/usage project`. docs/usage.md lists what there is.",
        ),
        "import-failed": Explanation(
            "A file of what was to be taken over from another program could not be written.",
            "Check the permissions and the free space, and run it again: nothing is taken twice.",
        ),
        "import-what": Explanation(
            "`treadle import` does not know what to import.",
            "Name a file or a folder, or another program with --from.",
        ),
        "nothing-left": Explanation(
            "No message has left this conversation, so there is nothing to show.", "/compact makes room now."
        ),
        "step-missing": Explanation(
            "The session sent no such request to a model.", "`treadle context` without --step shows its last request."
        ),
        "session-which": Explanation("Which session is meant was not said.", "`treadle sessions` lists the ids."),
        "session-running": Explanation("A command of the session cannot be ended.", "`treadle jobs` lists it."),
        "yes-missing": Explanation("This cannot be undone, and there is no terminal to ask on.", "Add --yes."),
        "export-unwritable": Explanation(
            "The file of an export cannot be written.",
            "Name another file: -o FILE, or in a session /export FORMAT FILE.",
        ),
        "import-nothing": Explanation("Nothing was found to import.", "docs/sessions.md says what can be imported."),
        "import-broken": Explanation("The first line of an exported session is broken.", "Export the session again."),
        "import-newer": Explanation("The file was exported by a newer Treadle.", "Update Treadle."),
        "export-differs": Explanation(
            "A session cannot be exported as a test: without its secrets its log is another one.",
            "Export it as it is with `treadle export ID --format json`.",
        ),
        "tape-damaged": Explanation(
            "A tape is not one of Treadle's, or is damaged.", "Export the session as a test again."
        ),
        "session-unknown": Explanation(
            "No session, or more than one, has an id or a title that begins so.", "`treadle sessions` lists them."
        ),
        "job-unknown": Explanation(
            "No command in the background has this id.", "`treadle jobs --all` lists them with their ids."
        ),
        "port-unknown": Explanation(
            "No command of the session listens on this port any more.", "`/ports` lists those on which one does."
        ),
        "session-busy": Explanation(
            "The session is open in another process, and two would disturb each other.",
            "Join it with `treadle --attach ID`, or stop it with `treadle stop ID`.",
        ),
        "session-not-live": Explanation(
            "Nothing answers where the session should be open: it was closed, or began a moment ago.",
            "Continue it with `treadle --resume ID`.",
        ),
        "session-silent": Explanation(
            "The process in which the session is open does not answer: it may be suspended, or very busy.",
            "Resume it with `fg` or `kill -CONT`, or end it, and try again. `treadle stop ID` names the process.",
        ),
        "session-unclear": Explanation(
            "Several sessions of this folder are open, and --attach joins one.", "Name it: `treadle --attach ID`."
        ),
        "attach-task": Explanation(
            "In the terminal --attach joins a session that has a task already.",
            "Type the next task there, or wait for its answer with -p TASK --attach ID.",
        ),
        "attach-settings": Explanation(
            "A session that is open elsewhere has the settings that it was opened with.",
            "Leave the flag out, or use --resume ID when the session is closed.",
        ),
        "goal-flag": Explanation(
            "--goal needs a condition, --check needs a command and a goal, and neither joins a session.",
            "Give both as treadle -p TASK --goal CONDITION --check CMD. In an open session: /goal.",
        ),
        "background-flag": Explanation(
            "--bg returns before there is an answer, so a flag that is about the answer does not go with it.",
            "Leave it out, or use -p, which waits for the answer.",
        ),
        "background-socket": Explanation(
            "A session in the background is reached over a socket in the data folder, which cannot be made.",
            "Check the permissions of that folder and its disk space, or use -p.",
        ),
        "attach-key": Explanation("The key of an open session did not fit, or was missing.", "Attach once more."),
        "attach-version": Explanation(
            "The session runs in another version of Treadle.", "Use the same version in both terminals."
        ),
        "mcp-folder": Explanation(
            "A client of the MCP server named a folder that the server was not started for.",
            "Add it to the server's command in the client's settings: treadle mcp serve -C DIR --add-dir OTHER.",
        ),
        "mcp-mode": Explanation(
            "A client of the MCP server asked for a mode in which more runs without asking than you set.",
            "If you want that, set it yourself, in the server's command: treadle mcp serve --mode MODE.",
        ),
        "mcp-form": Explanation(
            "A client of the MCP server answered a form with a field missing, or with a value that does not fit.",
            "Answer again with all fields: name=value, with quotes around what has blanks.",
        ),
        "mcp-task": Explanation(
            "A client of the MCP server named a task that is not open there.",
            "list_tasks shows the tasks that are open, and the sessions that join_task can open.",
        ),
        "mcp-tasks": Explanation(
            "The MCP server keeps a limited number of tasks open.", "Close those that are done with close_task."
        ),
        "mcp-question": Explanation(
            "A client of the MCP server answered a question that is not open any more.",
            "task_status shows the questions that are open, with their ids.",
        ),
        "mcp-token": Explanation(
            "The token for `treadle mcp serve --http` is too short, or has characters that no header can have.",
            "Unset TREADLE_MCP_TOKEN to get a new one for each start, or set a longer one.",
        ),
        "session-not-entered": Explanation(
            "A program used a session that it has not opened.", "Enter it first: async with Treadle(...) as t."
        ),
        "task-running": Explanation(
            "A program asked for the result of a task that has not ended.", "Follow it to its end, or await it."
        ),
        "prompt-dropped": Explanation(
            "A prompt was removed from the queue, by whoever shares the session, before the model got it.",
            "Send it again if it is still needed.",
        ),
        "task-aside": Explanation(
            "A program or an MCP client asked a /btw question, which is answered beside the work and ends no turn.",
            "Ask it without /btw, or in the terminal.",
        ),
        "attach-kind": Explanation(
            "Something attached to a session as a surface that this version does not know.",
            "Use the same version of Treadle on both sides.",
        ),
        "session-closed": Explanation(
            "The session ended before its task was done.", "Continue with `treadle --continue`."
        ),
        "event-refused": Explanation(
            "This is not possible in the session's current state. Nothing was changed.",
            "Wait until the session is idle, or interrupt it.",
        ),
        "log-damaged": Explanation(
            "The session log is damaged. The disk or another program changed it.",
            "The file is kept. Restore it from a backup, or move it away to start with an empty one.",
        ),
        "event-damaged": Explanation(
            "A part of a session's log is missing or damaged. Everything before it can be read.",
            "Resume the session: it continues after its last event before the damage. What is damaged is kept.",
        ),
        "log-conflict": Explanation(
            "Another Treadle wrote this session in the meantime, or converted the log.",
            "Quit, and resume the session. Nothing that was logged is lost.",
        ),
        "log-drift": Explanation(
            "An event of the session's log does not fit the events before it: one is missing, or was changed.",
            "`treadle audit verify ID` says where, `treadle show ID` shows what is left. Start a new session to go on.",
        ),
        "log-unreadable": Explanation("The session log cannot be opened.", "Check the permissions of its folder."),
        "log-unwritable": Explanation("The session log cannot be written.", "Check free space and permissions."),
        "log-newer": Explanation("A newer Treadle wrote this session.", "Update Treadle."),
        "store-in-use": Explanation(
            "The log has to be converted for this version, but an older Treadle is using it.",
            "Quit the older one, then start again.",
        ),
        "checkpoints-root": Explanation(
            "This folder cannot have checkpoints: it is, or holds, your home folder, Treadle's data or a repository's.",
            "Start Treadle in the folder of a project.",
        ),
        "checkpoints-folder-used": Explanation(
            "A checkpoint can only be written to an empty folder, or to one that can be made.",
            "Choose another folder. Nothing was written.",
        ),
        "checkpoints-busy": Explanation(
            "Another process is using the checkpoints of this folder.", "Try again when it is done."
        ),
        "checkpoints-damaged": Explanation(
            "A checkpoint cannot be read: the disk or another program changed it.",
            "Choose another checkpoint. Your files were not changed.",
        ),
        "checkpoints-newer": Explanation("Another version of Treadle wrote the checkpoints.", "Update Treadle."),
        "checkpoints-unusable": Explanation(
            "The checkpoints cannot be read or written.", "Check free space and the permissions of their folder."
        ),
        "store-older": Explanation(
            "An older Treadle wrote the log, and this one cannot convert it where it cannot write.",
            "Copy the folder to where you can write, and set TREADLE_HOME to the copy.",
        ),
        "store-newer": Explanation("A newer Treadle wrote the log.", "Update Treadle, or set TREADLE_HOME elsewhere."),
        "checkpoint-folders": Explanation(
            "The session is a copy with other folders, and the checkpoint is older than that.",
            "Restore the files in the session that it was copied from.",
        ),
        "checkpoint-unknown": Explanation(
            "The session has no checkpoint of this number.", "`treadle checkpoint list` lists them."
        ),
        "restore-silent": Explanation(
            "The process that has the session open did not say whether the files were restored.",
            "Look at the timeline of the session, and try again.",
        ),
        "event-unknown": Explanation("The session has no event of this number.", "Its timeline lists them."),
        "turn-unknown": Explanation("The session has no turn of this number.", "`treadle show ID` shows its turns."),
        "step-unknown": Explanation("The session has no step of this number.", "`treadle show ID` shows its steps."),
        "entry-unknown": Explanation(
            "The session has no message with the uuid that a program wants to go back to.",
            "Give the uuid of a message of this session, as it was sent, or resume the whole of it.",
        ),
        "entries-dropped": Explanation(
            "Going back to a message would drop more, or less, than the turn that the program named.",
            "Resume without --resume-session-at, and look at what came after the message.",
        ),
        "replay-folder": Explanation("No folder for the copy of a replay is free.", "Name one with --into."),
        "restore-refused": Explanation(
            "Files or the conversation cannot be restored while something else is going on in the session.",
            "Interrupt the turn or drop the message that waits, then try again.",
        ),
        "export-part": Explanation(
            "A part of a session was to be exported as JSON, or the turn to begin with is not a number.",
            "JSON holds all of a session. Choose md or html for a part.",
        ),
        "rule-file": Explanation(
            "A rules file to be turned on or off is not there any more, or that could not be saved.",
            "Load the page again, and check the permissions of the data folder.",
        ),
        "memory-file": Explanation(
            "A memory file cannot be read, written or saved as it was edited. The message names it.",
            "Look at the file: `treadle memory` names it, `treadle memory edit` opens it.",
        ),
        "memory-entry": Explanation(
            "What is to be remembered or forgotten is not there, holds a secret, or the folder is not trusted.",
            "`treadle memory` lists the entries with their numbers.",
        ),
        "export-form": Explanation("There is no such form of an export.", "Choose html, md or json."),
        "block-missing": Explanation(
            "A block of a request is not in it any more: the conversation continued.", "Load the page again."
        ),
        "pin-text": Explanation("A text to be pinned is empty or too long.", "Pin a shorter text."),
        "pin-missing": Explanation("A pinned text was removed already.", "Load the page again."),
        "batch-tasks": Explanation(
            "The tasks of a batch cannot be read, or some of them are not right. None was started.",
            "Correct the lines that the message names; docs/batch.md lists the fields.",
        ),
        "batch-option": Explanation(
            "An option of `treadle batch` cannot be used as it was given.", "`treadle batch --help` shows them."
        ),
        "batch-folder": Explanation(
            "The folder of a batch cannot be used: it cannot be written, or what is in it is not from a batch.",
            "Name another folder with --out.",
        ),
        "batch-busy": Explanation(
            "Another batch works in the same folder.", "Wait until it ends, or stop it with Ctrl-C."
        ),
        "fleet-missing": Explanation(
            "What a fleet of workers needs is not installed: what talks to PostgreSQL, or DBOS for --engine dbos.",
            "Install the extra `fleet` as the message says, or use sqlite:///PATH on one computer.",
        ),
        "fleet-database": Explanation(
            "The database that workers share cannot be used: its address is wrong, or nobody answers there.",
            "Start the server, or correct --database. What was finished is kept.",
        ),
        "fleet-engine": Explanation(
            "What hands out the tasks of a fleet has failed, or the batch was begun with another --engine.",
            "Start the same command again, with the --engine that the message names.",
        ),
        "fleet-store": Explanation(
            "The store of a fleet cannot be used.", "Name a folder that all workers see with --store."
        ),
        "batch-price": Explanation(
            "A batch has a limit in money, and the price of a model is not known.",
            "Set its prices in the settings, or leave the limit out.",
        ),
        "task-copy": Explanation(
            "The copy of a project that a task works in cannot be made, or its changes cannot be read.",
            "Check `repo` and `commit` of the task, git, and free space.",
        ),
        "allowance-missing": Explanation(
            "What was to be revoked is not allowed any more, or its session is closed.", "Load the page again."
        ),
    }
)
"""By their codes."""
