"""What every error code means and what to do about it; `treadle explain` and docs/errors.md are made from it."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from treadle.protocol.base import Record


class Explanation(Record, frozen=True):
    """What happened, in general, and what helps."""

    meaning: str
    remedy: str


_SETTINGS = {
    "tool-function": Explanation(
        "A Python function cannot become a tool: a parameter lacks a type hint, or has one that JSON cannot carry.",
        "Give every parameter a type hint that the message asks for, and the function a docstring.",
    ),
    "tool-name": Explanation(
        "A program that uses Treadle gives a tool whose name another tool has.",
        "Give it another name: function_tool(function, name=...).",
    ),
    "command-unknown": Explanation(
        "The first word of the command line is no command, or a command comes after its options.",
        "`treadle --help` lists the commands. A task is one argument, in quotes; nothing was sent to a model.",
    ),
    "task-unquoted": Explanation(
        "Several words were given without quotes: a task, or a mistyped command.",
        'Put a task in quotes: treadle "make the tests pass". Nothing was sent to a model.',
    ),
    "task-sign": Explanation(
        "A task begins with a slash command, with ! or with @ and a file, which mean nothing here.",
        "Enter slash commands in the terminal; say what to run in words; attach a file with --file.",
    ),
    "tool-unknown": Explanation("There is no tool of this name.", "`treadle tools` lists them."),
    "tool-plugin": Explanation(
        "An installed package offers something under the entry point `treadle.tools` that is no tool.",
        "Mend or remove that package: an entry point names a function with type hints, a tool, or a list of them.",
    ),
    "trust-too-much": Explanation(
        "A folder holds more rules, hooks and settings files than can be looked through.",
        "Trust a folder further down, where the project itself lies.",
    ),
    "trust-unwritable": Explanation(
        "What you said of a folder could not be kept.",
        "Make room on the disk, or check the permissions of the data folder; nothing of the folder is used until then.",
    ),
    "rules-broken": Explanation(
        "A rule file has a mistake: its form, or a rule that does not match its own examples.",
        "Correct the line that the message names. docs/policy.md shows the form; `treadle policy show` tries it.",
    ),
    "rule-unknown": Explanation(
        "There is no such rule of yours, or no such suggestion.",
        "`treadle policy show` lists the rules in force, `treadle policy suggest` those that could be added.",
    ),
    "config-syntax": Explanation(
        "A settings file is not valid TOML.",
        "Correct the line that the message names. To start with the defaults, move the file away.",
    ),
    "config-unreadable": Explanation(
        "A settings file is there but cannot be read: its permissions, or it is not UTF-8.",
        "Correct the permissions or the encoding, or move the file away.",
    ),
    "config-value": Explanation(
        "A setting has a name or a value that there is not. The message names the file and line, variable or flag.",
        "`treadle config set` and `unset` correct it; docs/configuration.md lists the settings.",
    ),
    "config-workspace": Explanation(
        "The settings of a workspace want what only you may set: where requests go, or a wider mode.",
        "Look at the file with care: somebody wrote it for you. Remove the line, or set it in your own file.",
    ),
    "config-diagnostics": Explanation(
        "A language server or linter in the settings lacks what it needs, or has what it cannot use.",
        "The message says which; docs/diagnostics.md has examples to copy.",
    ),
    "sandbox-missing": Explanation(
        "Mode auto runs commands unasked because they are confined, and nothing here can confine them.",
        "Install bubblewrap and let users make namespaces; `treadle doctor` says what is lacking. Or use --mode edits.",
    ),
    "config-unset": Explanation(
        "`treadle config unset` was given a key that your own settings file does not have.",
        "`treadle config` shows each setting and where it comes from.",
    ),
    "config-key": Explanation(
        "`treadle config` was given something that is not a key of the settings.",
        'Write it with dots, and quotes around names with slashes: models."openai/gpt-5".max_output.',
    ),
    "base-url-invalid": Explanation(
        "A base URL has no http:// or https://.", "Write it like http://localhost:8000/v1."
    ),
    "base-url-alone": Explanation(
        "A base URL was given (--base-url, TREADLE_BASE_URL or base_url), and nothing says whose address it is.",
        "Add --model PROVIDER/NAME, set model in your own settings, or write base_url under [providers.NAME].",
    ),
    "base-url-missing": Explanation(
        "This provider is a server of your own; Treadle does not know where it is.",
        "Give --model and --base-url, or base_url under [providers.NAME] in the settings.",
    ),
    "base-url-incomplete": Explanation(
        "The provider's address has a part of your own in it, such as a region or an account.",
        "Set the variables that the message names, or a whole base_url.",
    ),
    "wire-api": Explanation("wire_api of a provider is none that Treadle speaks.", "Take one that the message lists."),
    "model-name": Explanation(
        "A model's name must have the provider's name and a slash before it.",
        "For example anthropic/claude-sonnet-4-5; `treadle models WORDS` finds names.",
    ),
    "model-unknown": Explanation(
        "The provider is known, but this model of it is not; probably the name is mistyped.",
        'Take a name that the message suggests. A new model: say what you know of it under [models."…"].',
    ),
    "rules-unwritable": Explanation(
        "What you allowed for every session could not be written to your rules; it holds for this session.",
        "Check the permissions and the free space of the folder that the message names.",
    ),
    "provider-unknown": Explanation(
        "No provider has this name.",
        "`treadle providers` lists them. A server of your own: openai-compatible, or [providers.NAME] with wire_api.",
    ),
    "local-weights": Explanation(
        "The file of a model that Treadle runs by itself is not on this machine.",
        "Run the command of the message, or name another GGUF file: --model local/PATH.gguf.",
    ),
    "local-file": Explanation(
        "The file that was named after local/ is not there, or is no GGUF file.", "Name another one."
    ),
    "no-provider": Explanation(
        "No model was named, and no provider has a key.",
        "`treadle login PROVIDER`, or --model with a local server, or `treadle demo`, which needs neither.",
    ),
}

_KEYS = {
    "key-missing": Explanation(
        "The provider wants a key and none was found: not in the environment, the keyring or the file of keys.",
        "`treadle login PROVIDER`, or set the variable that the message names.",
    ),
    "aws-profile": Explanation(
        "AWS_PROFILE names a profile that neither ~/.aws/config nor ~/.aws/credentials has.",
        "Correct the name; `aws configure list-profiles` lists those that are there.",
    ),
    "aws-files": Explanation(
        "A file of AWS with profiles or keys cannot be read. Its content is not shown.",
        "Correct the file that the message names.",
    ),
    "aws-region": Explanation(
        "Signing a request for AWS needs a region, and none is set.",
        "Set AWS_REGION, for example us-east-1, or region in the profile.",
    ),
    "key-invalid": Explanation(
        "What was given as a key is empty or has characters that cannot be sent.",
        "Copy it again; often a line end or a blank came along.",
    ),
    "key-refused": Explanation(
        "The provider refused the key, so it was not stored.", "Check that it is whole, of this provider, and active."
    ),
    "keys-exposed": Explanation(
        "Other users of this machine may read the file of keys. Treadle does not use it like that.",
        "chmod 600 the file. If others work on this machine, make new keys.",
    ),
    "keys-unreadable": Explanation(
        "The file of keys is damaged or cannot be read. Its content is not shown.",
        "Remove it and store the keys again with `treadle login`.",
    ),
    "keyring-silent": Explanation(
        "A key is in the system's keyring, which is locked, gone or does not answer.",
        "Unlock it, or remove the entry with its own program.",
    ),
}

_STARTING = {
    "workspace-missing": Explanation("The folder to work in is not there.", "Name an existing one with --directory."),
    "workspace-too-wide": Explanation(
        "Your home folder, or the root of the disk, is too much to work in.", "Start in a project's folder."
    ),
    "add-dir": Explanation(
        "A further folder of the workspace is missing, too wide, or one that Treadle keeps its own files in.",
        "Name a project's folder with --add-dir; add_dirs in your settings file is read at each start.",
    ),
    "add-dir-late": Explanation(
        "A session that exists is to get a folder that it did not begin with.",
        "Start a new session with --add-dir.",
    ),
    "no-terminal": Explanation(
        "Something has to be typed or shown, and there is no terminal.",
        'In a script: treadle -p "task"; treadle login PROVIDER --key-stdin.',
    ),
    "task-empty": Explanation("There is no task.", 'treadle -p "what to do".'),
    "task-twice": Explanation("There are two tasks.", "Quote the task if it has blanks."),
    "demo-folder": Explanation("The folder for the demo exists already.", "Name one that does not."),
    "edits-file": Explanation("No file to edit was named.", "treadle edits apply FILE < edit."),
    "edit-file": Explanation("The file cannot be read or written.", "The message says why."),
    "tools-file": Explanation(
        "The file with tools is not JSON of the expected form.", "docs/scripted-model.md shows it."
    ),
    "policy-question": Explanation(
        "`treadle policy explain` was given nothing to explain, or two things.",
        "Give it a shell line in quotes, --path PATH with --op, or --url URL.",
    ),
    "port-unusable": Explanation("The port is taken, or may not be used.", "Take another with --port."),
    "script-invalid": Explanation("A script of the scripted model has a mistake.", "The message names the place."),
    "script-unreadable": Explanation("A script of the scripted model cannot be read.", "Check its path."),
    "code-unknown": Explanation("No error has this code.", "`treadle explain` lists them all."),
    "extra-missing": Explanation(
        "A part of Treadle needs packages that are not installed.", "Run the pip command of the message."
    ),
}

_SESSIONS = {
    "session-none": Explanation("No session was ever started in this folder.", "`treadle sessions --all` lists all."),
    "session-unknown": Explanation("No session, or more than one, has this id.", "`treadle sessions` lists the ids."),
    "job-unknown": Explanation(
        "No command in the background has this id.", "`treadle jobs --all` lists them with their ids."
    ),
    "session-busy": Explanation(
        "Another process works in this session; two would spoil each other's work.", "Close it there."
    ),
    "session-closed": Explanation("The session ended before its task was done.", "Go on with `treadle --continue`."),
    "event-refused": Explanation(
        "What was asked for is not possible in the session's present state; nothing was changed.",
        "Wait until the session is idle, or interrupt it.",
    ),
    "log-damaged": Explanation(
        "The log of sessions cannot be read any more; the disk or another program changed it.",
        "The file is kept. Restore it from a backup, or move it away to start anew.",
    ),
    "log-unreadable": Explanation("The log of sessions cannot be opened.", "Check the permissions of its folder."),
    "log-unwritable": Explanation("The log of sessions cannot be written.", "Check free space and permissions."),
    "log-newer": Explanation("A newer Treadle wrote this session.", "Update Treadle."),
    "store-newer": Explanation("A newer Treadle wrote the log.", "Update Treadle, or set TREADLE_HOME elsewhere."),
}

_MODELS = {
    "authentication": Explanation("The provider does not accept the key.", "`treadle login PROVIDER` with another."),
    "permission": Explanation("The key may not use this model.", "Ask for access, or take another model."),
    "balance": Explanation("The provider's account has no money left.", "Top it up, or take another provider."),
    "rate_limit": Explanation(
        "The provider takes no more requests for now. Treadle waited and tried again several times.",
        "Wait, then `treadle --continue`.",
    ),
    "overloaded": Explanation("The provider is overloaded.", "Wait, or take another model; then --continue."),
    "server": Explanation("The provider had an error of its own.", "Wait, then `treadle --continue`."),
    "context_too_long": Explanation(
        "The conversation does not fit into the model's window, also after older messages left it.",
        "Go on with a model with a larger window (`--continue --model`, `/model`), or start anew with smaller files.",
    ),
    "bad_request": Explanation(
        "The provider refused the request as such.", "Check the base URL, the wire API and the model's name."
    ),
    "not_found": Explanation("The provider does not know the model or the address.", "Check both."),
    "content_filter": Explanation("The provider's filter refused the text.", "Put the request differently."),
    "network": Explanation(
        "The provider could not be reached.", "Check network, proxy and base URL; `treadle doctor`."
    ),
    "timeout": Explanation(
        "The provider did not answer in time.",
        "Try again; for slow servers set first_byte_timeout, idle_timeout or progress_timeout of the provider.",
    ),
    "malformed_stream": Explanation(
        "The reply broke off or was not of the expected form.",
        "Try again; if it stays so, check wire_api and base URL.",
    ),
    "empty_reply": Explanation("The model said nothing.", "Go on with --continue, or take another model."),
    "cancelled": Explanation("The call was interrupted.", "Go on with `treadle --continue`."),
}

_EDITS = {
    "no_marker": Explanation("There is no edit in the text.", "Write it in one of the formats of docs/editing.md."),
    "malformed": Explanation("The edit is not written as its format wants.", "The message says what is missing."),
    "truncated": Explanation("The edit breaks off.", "Send it again, whole."),
    "empty_search": Explanation("The text to be replaced is empty.", "Name some lines to tell the place."),
    "not_found": Explanation("The text to be replaced is not in the file.", "Read the file again."),
    "ambiguous": Explanation("The text to be replaced is there more than once.", "Take more lines around it."),
    "overlapping": Explanation("Two blocks change the same lines.", "Make them one."),
    "already_applied": Explanation("The file has the new text already.", "Nothing is to be done."),
    "no_change": Explanation("The edit changes nothing.", "Check what was meant."),
    "elision": Explanation("The new text leaves lines out, such as with '… rest of the code'.", "Write it in full."),
    "changed_since": Explanation("The file changed since it was read.", "Read it again."),
    "indentation": Explanation("The indentation cannot be brought to that of the file.", "Copy it exactly."),
    "escaped": Explanation("The text has escapes that the file does not have.", "Write it as it is in the file."),
    "wrong_file": Explanation("The edit is for another file.", "Name the right one."),
}

EXPLANATIONS: Mapping[str, Explanation] = MappingProxyType(
    {
        **_SETTINGS,
        **_KEYS,
        **_STARTING,
        **_SESSIONS,
        **_MODELS,
        **{f"edit-{code}": explanation for code, explanation in _EDITS.items()},
    }
)

_GROUPS = (
    ("Settings and models", tuple(_SETTINGS)),
    ("Keys", tuple(_KEYS)),
    ("Starting", tuple(_STARTING)),
    ("Sessions and their log", tuple(_SESSIONS)),
    ("Calls of a model", tuple(_MODELS)),
    ("Edits", tuple(f"edit-{code}" for code in _EDITS)),
)


def nearest_codes(code: str) -> Sequence[str]:
    """Give the codes that are most like one."""
    from difflib import get_close_matches

    return get_close_matches(code, EXPLANATIONS, n=3)


def errors_page() -> str:
    """Write the page of all codes as Markdown."""
    return "\n".join(_page()) + "\n"


def _page() -> Iterator[str]:
    yield "# Errors"
    yield ""
    yield "Written by `make docs`; `treadle explain CODE` says the same offline."
    for title, codes in _GROUPS:
        yield from ("", f"## {title}", "", "| code | what it means | what helps |", "|---|---|---|")
        for code in codes:
            explanation = EXPLANATIONS[code]
            yield f"| `{code}` | {explanation.meaning} | {explanation.remedy} |"
