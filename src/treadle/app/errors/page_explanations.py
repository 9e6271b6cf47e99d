"""What the error codes of the page mean, and what to do about them."""

from collections.abc import Mapping
from types import MappingProxyType

from treadle.app.errors.session_explanations import Explanation

ABOUT_THE_PAGE: Mapping[str, Explanation] = MappingProxyType(
    {
        "arguments-json": Explanation(
            "The arguments of a call were changed on the page to something that is not an object of JSON.",
            "Correct them, or answer without a change.",
        ),
        "blocks": Explanation(
            "The page chose among blocks that this edit does not have: it shows an older question.",
            "Load the page again.",
        ),
        "block-texts": Explanation(
            "The new text of an edit has a line that reads like the marks between its blocks.",
            "Reject the edit, and say what should be done instead.",
        ),
        "agent-stop": Explanation(
            "A subagent that was to be stopped on the page still works: the message says why.",
            "Do what it says, or stop the turn of its session.",
        ),
        "agent-unknown": Explanation(
            "The page names a subagent that the session does not have.", "Look at the subagents of the session again."
        ),
        "command-ended": Explanation(
            "A command of your own that was to be stopped has ended.", "Nothing is to be done."
        ),
        "commit-denied": Explanation(
            "A rule of the policy denies the command that the page would run to commit, push or open a pull request.",
            "Change the rule, or run the command in a terminal.",
        ),
        "commit-git": Explanation(
            "Git lists no changes for the folder of the session: it is in no repository, or what the repository has, "
            "such as settings of its own and submodules, could make git run a program.",
            "Commit in a terminal. The session's checkpoints keep its files.",
        ),
        "commit-gone": Explanation(
            "What the page showed before a commit or a push is not so any more.", "Open the commit again."
        ),
        "commit-changed": Explanation(
            "A file to be committed, the branch or its last commit is not as it was when the page listed the files.",
            "Look again at the files, then commit.",
        ),
        "review-gone": Explanation(
            "A change that was to be taken back is not there: the page shows other files than there are now.",
            "Load the changes again.",
        ),
        "review-text": Explanation(
            "A change cannot be edited as text: its encoding is not known, or it mixes line ends.",
            "Edit the file in an editor, or reject the change.",
        ),
        "review-mixed": Explanation(
            "A file is to be rejected as a whole in which others changed the same lines as the session.",
            "Reject single changes, or change the file in an editor.",
        ),
        "review-others": Explanation(
            "Only what the session itself changed can be taken back in its review.", "Change the file in an editor."
        ),
        "review-encoding": Explanation(
            "An edited change has characters that the encoding of its file does not have.",
            "Use other characters, or convert the file first.",
        ),
        "review-unreadable": Explanation(
            "The findings that a review kept cannot be read.",
            "Make the file readable, or move it away: then the next review numbers its findings from 1.",
        ),
        "review-unwritable": Explanation(
            "What was decided of changes cannot be saved.", "Check free space and the permissions of the data folder."
        ),
        "review-blocked": Explanation(
            "A file cannot be brought back: something that stays is in its place.",
            "Reject what is in its place together with it.",
        ),
        "commit-merge": Explanation(
            "A merge, cherry-pick, revert or rebase is not finished or has conflicts, so nothing can be committed.",
            "Finish it in a terminal, or give it up.",
        ),
        "commit-message": Explanation("A commit has no message.", "Write one."),
        "commit-program": Explanation("The program that the page would run is not on the PATH.", "Install it."),
        "commit-slow": Explanation(
            "Git did not answer in time, so nothing is known of the repository.",
            "Try again when the disk has less to do.",
        ),
        "commit-text": Explanation(
            "A text for a program, such as the message of a commit, has the character U+0000.", "Write another one."
        ),
        "commit-trust": Explanation(
            "The folder is not trusted, so the page runs no git in it.", "Trust it, or commit in a terminal."
        ),
        "commit-unknown": Explanation(
            "A commit failed or took too long, and git did not say afterwards whether it was made.",
            "Look with git log in a terminal.",
        ),
        "device-gone": Explanation(
            "A device that wanted in does not wait any more: it was answered, or its ten minutes are over.",
            "Make another link for it under Devices.",
        ),
        "device-name": Explanation(
            "A device got no new name: it was empty, or another one is called so.", "Choose another name."
        ),
        "file-not-shown": Explanation(
            "The page shows no file that is ignored, too large, no text, outside the session's folder, or asked about.",
            "Open it in an editor, or let the session read it.",
        ),
        "output-gone": Explanation(
            "The file with all of a long output is not kept any more: such files are removed after a while.",
            "Run the command again. The log still has the beginning and the end that the model was given.",
        ),
        "form-incomplete": Explanation(
            "A form that a server wants filled in has a field that is empty or cannot be read.",
            "Fill in what the message names, or answer no.",
        ),
        "job-runs": Explanation(
            "A command in the background does not end.", "Stop its processes. `treadle jobs` lists it."
        ),
        "message-size": Explanation(
            "A message is longer than the page takes, or has more images.",
            "Put long texts into a file in the project, and name the file.",
        ),
        "nothing-to-undo": Explanation(
            "The turn that was to be undone changed no files, is undone already, or is not the last one any more.",
            "`/undo` undoes the turn before. The timeline leads to every checkpoint.",
        ),
        "restore-older": Explanation(
            "A preview or an undo was made for an earlier state of the session, which has worked since.",
            "Look again in its timeline, and restore to a step there.",
        ),
        "service-account": Explanation(
            "A user of a service is to have an account of the system that does not exist, or that the service cannot "
            "become.",
            "Make the account and start the service as root, or add the user without --account.",
        ),
        "service-address": Explanation(
            "The address of a service cannot be used, or would be reached over a network without TLS.",
            "Put a proxy with TLS before the service, and name its address with --address https://...",
        ),
        "service-disk": Explanation(
            "The folder of a user is larger than --disk-gb lets it be, so nothing new is begun.",
            "Delete sessions or files, or add the user again with more.",
        ),
        "service-ends": Explanation("A service that was asked to end starts no page any more.", "Try again later."),
        "service-folder": Explanation(
            "The folder of a user cannot be made or used.", "Name another --data, or correct its owner and mode."
        ),
        "service-option": Explanation(
            "An option of `treadle serve` cannot be used as it is given.", "`treadle serve --help` shows the options."
        ),
        "service-page": Explanation(
            "The process with the page of a user did not start, or ended.",
            "Try again. The program's log of whoever runs the service says what the process wrote.",
        ),
        "service-proxy": Explanation(
            "A proxy is to name the users, but it has no secret that shows that it is the proxy.",
            "Make one with `treadle serve proxy`, and let the proxy send it as the header x-treadle-proxy.",
        ),
        "copy-moved": Explanation(
            "The folder changed while the changes of a copy were brought into it, so nothing was.", "Try again."
        ),
        "no-copy": Explanation(
            "The session works in the folder itself, or its copy is gone, so there is nothing to take.",
            "A session is started in a copy with treadle -w NAME, or on the page.",
        ),
        "replay-copy": Explanation(
            "The session works in a copy, of which the page makes no further one.",
            "Take its changes first, or use a terminal: treadle replay ID --from N --into DIR",
        ),
        "replay-wish": Explanation(
            "A replay on the page was to begin without a step, or with a number of steps that is none.",
            "Choose a step of the list.",
        ),
        "service-sandbox": Explanation(
            "The processes of users cannot be kept apart, as bubblewrap is not installed.",
            "Install bubblewrap. Nothing is served without it.",
        ),
        "service-user": Explanation(
            "A name is no user of the service, or cannot be one.", "`treadle serve list` names the users."
        ),
        "service-session": Explanation(
            "A user of a service started a session elsewhere than on their page, where no queue would bound it.",
            "Start it on your page, or let a schedule start it: treadle schedule add.",
        ),
        "service-users": Explanation(
            "The file with the users of a service cannot be read or written.", "Correct it, or restore a copy of it."
        ),
        "session-elsewhere": Explanation(
            "The session is open in another program, which alone can close it.", "Close it there: /quit in a terminal."
        ),
        "session-not-open": Explanation(
            "Nobody has the session open, so nothing in it can be answered or changed.",
            "Send a message to continue it.",
        ),
        "shell": Explanation("No shell of your own can be opened on the page.", "The message says why."),
        "shell-closed": Explanation("The shell that the page typed into has ended.", "Open it again under Terminal."),
        "shell-off": Explanation(
            "Shells of your own on the page are switched off, as they are when Treadle starts.",
            "Switch them on under Terminal, on the computer that runs Treadle.",
        ),
    }
)
