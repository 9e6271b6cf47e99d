"""What every error code means and what to do about it; `treadle explain` and docs/errors.md are made from it."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from treadle.app.errors.page_explanations import ABOUT_THE_PAGE
from treadle.app.errors.place_explanations import ABOUT_PLACES
from treadle.app.errors.schedule_explanations import ABOUT_SCHEDULES
from treadle.app.errors.session_explanations import ABOUT_SESSIONS, Explanation

_SETTINGS = {
    "own-model": Explanation(
        "A program that uses Treadle gave something as the model that is no name and cannot answer calls.",
        "Give a name, or an object with `stream` and `close` as in docs/library.md.",
    ),
    "tool-function": Explanation(
        "A Python function cannot become a tool: a parameter has no type hint, or one that JSON cannot express.",
        "Give every parameter a type hint that the message asks for, and the function a docstring.",
    ),
    "tool-name": Explanation(
        "A program that uses Treadle adds a tool whose name is already used.",
        "Give it another name: function_tool(function, name=...).",
    ),
    "command-unknown": Explanation(
        "The first word of the command line is not a command, or a command comes after its options.",
        "`treadle --help` lists the commands. A task is one argument, in quotes; nothing was sent to a model.",
    ),
    "task-unquoted": Explanation(
        "Several words were given without quotes: a task, or a mistyped command.",
        'Put a task in quotes: treadle "make the tests pass". Nothing was sent to a model.',
    ),
    "task-sign": Explanation(
        "A task begins with ! or with a slash command that is mistyped or does not work here.",
        "`treadle -p /help` lists the slash commands. Say in words what to run.",
    ),
    "host-format": Explanation(
        "--input-format stream-json was given without --output-format stream-json.",
        "Give both, as the SDKs for Claude Code do, or neither. docs/sdk.md shows a command line.",
    ),
    "host-flag": Explanation(
        "A flag that a program sent has a value that cannot be used. The message says which and why.",
        "Correct the option of that program, or leave it out. docs/sdk.md lists the flags.",
    ),
    "json-schema": Explanation(
        "What --json-schema says is not JSON, or is not a JSON Schema.",
        'Correct the schema; it has to be an object such as {"type": "object", "properties": …}.',
    ),
    "print-only": Explanation(
        "A flag for tasks in a script was given without -p.",
        "Add -p TASK, or leave the flag out.",
    ),
    "tool-unknown": Explanation("There is no tool with this name.", "`treadle tools` lists them."),
    "tool-plugin": Explanation(
        "An installed package offers something under the entry point `treadle.tools` that is not a tool.",
        "Fix or remove that package. An entry point names a function with type hints, a tool, or a list of them.",
    ),
    "trust-too-much": Explanation(
        "A folder has too many rules, hooks and settings files to check.",
        "Trust a folder further down, where the project itself is.",
    ),
    "trust-unlisted": Explanation(
        "A folder that may hold rules, hooks or settings cannot be listed. Nothing in the project is used then.",
        "Let the folder be listed with `chmod u+rx FOLDER`, or remove it.",
    ),
    "trust-unwritable": Explanation(
        "Your answer about a folder could not be saved.",
        "Free disk space, or check the permissions of the data folder. Nothing in the folder is used until then.",
    ),
    "rules-broken": Explanation(
        "A rule file has a mistake in its form, or a rule that does not match its own examples.",
        "Correct the line that the message names. docs/policy.md shows the form; `treadle policy show` checks it.",
    ),
    "rule-unknown": Explanation(
        "You have no such rule, or there is no such suggestion.",
        "`treadle policy show` lists the rules in force, `treadle policy suggest` those that could be added.",
    ),
    "config-syntax": Explanation(
        "A settings file is not valid TOML.",
        "Correct the line that the message names. To start with the defaults, move the file away.",
    ),
    **ABOUT_PLACES,
    "config-value": Explanation(
        "A setting has an unknown name or a wrong value. The message names the file and line, variable or flag.",
        "`treadle config set` and `unset` correct it; docs/configuration.md lists the settings.",
    ),
    "config-workspace": Explanation(
        "The settings of a workspace contain something that only you may set, such as an address or a wider mode.",
        "Check the file with care, as somebody else may have written it. Remove the line, or set it in your own file.",
    ),
    "config-diagnostics": Explanation(
        "A language server or linter in the settings is missing a setting, or has one that it cannot use.",
        "The message says which; docs/diagnostics.md has examples to copy.",
    ),
    "config-hooks": Explanation(
        "The hooks of a settings file cannot be used: it cannot be read, or its hooks are not a table of events.",
        "The message names the file and the mistake; docs/hooks.md has examples. `disable_all_hooks` turns all off.",
    ),
    "copy-missing": Explanation(
        "`treadle try` runs a command on a throw-away copy of the folder, and none can be made of this folder here.",
        "The message says what hinders it. A copy needs Linux, bubblewrap, user namespaces and overlays, files that "
        "are your own, and nothing else mounted in the folder.",
    ),
    "sandbox-missing": Explanation(
        "Mode auto runs commands without asking because a sandbox confines them. This system has no sandbox.",
        "Install bubblewrap and let users make namespaces; `treadle doctor` says what is missing. Or use --mode edits.",
    ),
    "config-unset": Explanation(
        "`treadle config unset` was given a key that your own settings file does not have.",
        "`treadle config` shows each setting and where it comes from.",
    ),
    "config-key": Explanation(
        "`treadle config` was given something that is not a setting.",
        'Write it with dots, and quotes around names with slashes: models."PROVIDER/NAME".max_output.',
    ),
    "base-url-invalid": Explanation(
        "A base URL (--base-url, TREADLE_BASE_URL, or base_url at the top of the settings) names no server.",
        "Write it like http://localhost:8000/v1.",
    ),
    "base-url-alone": Explanation(
        "A base URL was given (--base-url, TREADLE_BASE_URL or base_url), but not the provider that it belongs to.",
        "Add --model PROVIDER/NAME, set model in your own settings, or write base_url under [providers.NAME].",
    ),
    "host-unconfirmed": Explanation(
        "The settings file names an address that a key would go to, and nobody has confirmed it for this provider.",
        "If it is yours, run `treadle config set providers.NAME.base_url URL`, which confirms it.",
    ),
    "key-in-clear": Explanation(
        "A base URL begins with http:// and leads to another computer: a key would go there in clear text.",
        "Use https://. In a network of your own confirm it with `treadle config set providers.NAME.base_url URL`.",
    ),
    "certificate-unwritable": Explanation(
        "`treadle web --lan` could not keep the certificate that the page needs on the network.",
        "Correct the permissions of Treadle's data folder, or leave out --lan.",
    ),
    "base-url-missing": Explanation(
        "This provider is your own server. Treadle does not know its address.",
        "Give --model and --base-url, or base_url under [providers.NAME] in the settings.",
    ),
    "base-url-incomplete": Explanation(
        "The provider's address contains something of yours, such as a region or an account.",
        "Set the variables that the message names, or a complete base_url.",
    ),
    "wire-api": Explanation(
        "Treadle does not support the wire_api of a provider.", ("Choose one that the message lists.")
    ),
    "model-name": Explanation(
        "A model is named by its provider, a slash and its own name.",
        "Write it as PROVIDER/NAME; `treadle models WORDS` finds names.",
    ),
    "model-unknown": Explanation(
        "The provider is known, but the model is not. The name is probably mistyped.",
        "Use a name that the message suggests, or fetch the newest list with `treadle models --update`. For a model "
        'that no list has, set what you know about it under [models."…"].',
    ),
    "no-model": Explanation(
        "A provider has a key, but neither the list of models nor the provider itself names a model that can be used.",
        "Name a model with --model PROVIDER/NAME, or fetch the newest list with `treadle models --update`.",
    ),
    "models-update": Explanation(
        "The public list of models could not be fetched, or what came is not such a list. The list in use stays.",
        "Check the network and the address that the message names, or name another with `treadle models --update URL`.",
    ),
    "rules-unwritable": Explanation(
        "What you allowed for every session could not be saved to your rules. It applies to this session only.",
        "Check the permissions and the free space of the folder that the message names.",
    ),
    "provider-unknown": Explanation(
        "There is no provider with this name.",
        "`treadle providers` lists them. For your own server use openai-compatible, or [providers.NAME] with wire_api.",
    ),
    "local-weights": Explanation(
        "The file of a model that Treadle runs itself is not on this machine.",
        "Run the command in the message, or name another GGUF file: --model local/PATH.gguf.",
    ),
    "local-file": Explanation(
        "The file named after local/ does not exist, or is not a GGUF file.", "Name another file."
    ),
    "no-provider": Explanation(
        "No model is set, and no provider has a key.",
        "Run `treadle login PROVIDER`, use --model with a local server, or try `treadle demo`, which needs neither.",
    ),
}

_KEYS = {
    "key-missing": Explanation(
        "The provider needs a key. None was found in the environment, the keyring or the key file.",
        "Run `treadle login PROVIDER`, or set the variable that the message names. The key of a profile comes from "
        "`treadle login PROVIDER --as NAME` alone.",
    ),
    "profile-unknown": Explanation(
        "No key is stored for a profile of this name, and no settings speak of it.",
        "`treadle providers` lists the profiles; `treadle login PROVIDER --as NAME` stores a key for one.",
    ),
    "profile-name": Explanation(
        "A profile has a plain name: letters, digits, '.', '_' and '-', at most 40.", "Choose another name."
    ),
    "aws-profile": Explanation(
        "AWS_PROFILE names a profile that is in neither ~/.aws/config nor ~/.aws/credentials.",
        "Correct the name. `aws configure list-profiles` lists the profiles.",
    ),
    "aws-files": Explanation(
        "An AWS file with profiles or keys cannot be read. Its content is not shown.",
        "Correct the file that the message names.",
    ),
    "aws-region": Explanation(
        "AWS needs a region, and none is set.",
        "Set AWS_REGION, for example us-east-1, or region in the profile.",
    ),
    "key-invalid": Explanation(
        "The key is empty or has characters that cannot be sent.",
        "Copy it again, without spaces or line breaks.",
    ),
    "key-refused": Explanation(
        "The provider refused the key, so it was not stored.",
        ("Check that the key is complete, active and from this provider."),
    ),
    "keys-exposed": Explanation(
        "Other users of this machine can read the key file, so Treadle does not use it.",
        "Run chmod 600 on the file. If others use this machine, create new keys.",
    ),
    "keys-unreadable": Explanation(
        "The key file is damaged or cannot be read. Its content is not shown.",
        "Remove it and store the keys again with `treadle login`.",
    ),
    "keyring-silent": Explanation(
        "A key is in the system's keyring, which is locked, missing or does not respond.",
        "Unlock it, or remove the entry with the keyring's own program.",
    ),
}

_STARTING = {
    "add-dir": Explanation(
        "A folder added to the workspace is missing, too wide, or one where Treadle keeps its own files.",
        "Name a project's folder with --add-dir. add_dirs in your settings file is read at each start.",
    ),
    "no-terminal": Explanation(
        "This needs a terminal, and there is none.",
        'In a script: treadle -p "task"; treadle login PROVIDER --key-stdin.',
    ),
    "task-empty": Explanation("There is no task.", 'Give one: treadle -p "what to do".'),
    "task-twice": Explanation("There are two tasks.", "Quote the task if it has spaces."),
    "demo-folder": Explanation("The folder for the demo already exists.", "Name a folder that does not exist."),
    "edits-file": Explanation("No file to edit was named.", "Run treadle edits apply FILE < edit."),
    "edit-file": Explanation("The file cannot be read or written.", "The message says why."),
    "tools-file": Explanation("The tools file is not JSON in the expected form.", "docs/scripted-model.md shows it."),
    "policy-question": Explanation(
        "`treadle policy explain` was given nothing to explain, or two things.",
        "Give it a shell line in quotes, --path PATH with --op, or --url URL.",
    ),
    "port-unusable": Explanation("The port is in use or not permitted.", "Choose another with --port."),
    "host-without-lan": Explanation(
        "An address of the network was named, but not that the page is opened to it.", "Add --lan."
    ),
    "script-invalid": Explanation("A script of the scripted model has a mistake.", "The message says where."),
    "script-unreadable": Explanation("A script of the scripted model cannot be read.", "Check its path."),
    "code-unknown": Explanation("There is no error with this code.", "`treadle explain` lists them all."),
    "mcp-unknown": Explanation(
        "No MCP server of this name is configured here, or the folder that has it is not trusted.",
        "`treadle mcp list` lists the servers. Add one: treadle mcp add NAME -- COMMAND",
    ),
    "mcp-entry": Explanation(
        "An MCP server is described in a way that cannot be used.",
        "Give it a command after `--`, or --url. docs/mcp.md shows the form of the file.",
    ),
    "mcp-connect": Explanation(
        "An MCP server does not start, or does not answer as one.",
        "`treadle mcp logs NAME` shows what it printed. Try its command by hand.",
    ),
    "mcp-login": Explanation(
        "Signing in to an MCP server did not work.",
        "Run `treadle mcp login NAME` again, and paste the whole address that the browser ended at.",
    ),
    "mcp-file": Explanation(
        "The file with the MCP servers cannot be read or written.",
        'Correct it: it holds {"mcpServers": {...}} in JSON.',
    ),
    "mcp-pins": Explanation(
        "What you approved of an MCP server could not be saved.",
        "Free disk space, or check the permissions of the data folder.",
    ),
    "extra-unknown": Explanation(
        "`treadle update --with` got a name that is not an extra of Treadle.",
        "The message lists the extras; README.md says what the extra `all` holds.",
    ),
    "extra-missing": Explanation(
        "A part of Treadle needs packages that are not installed.",
        "Run the command in the message; `treadle update --with EXTRA` prints it.",
    ),
}

_MODELS = {
    "authentication": Explanation(
        "The provider does not accept the key.", ("Store another with `treadle login PROVIDER`.")
    ),
    "permission": Explanation("The key has no access to this model.", "Ask for access, or choose another model."),
    "balance": Explanation("The provider's account has no credit left.", "Top it up, or choose another provider."),
    "rate_limit": Explanation(
        "The provider limits requests for now. Treadle waited and tried again several times.",
        "Wait, then continue with `treadle --continue`.",
    ),
    "overloaded": Explanation(
        "The provider is overloaded.", ("Wait or choose another model, then continue with `treadle --continue`.")
    ),
    "server": Explanation("The provider had an internal error.", "Wait, then continue with `treadle --continue`."),
    "context_too_long": Explanation(
        "The conversation does not fit into the model's window, even after older messages were removed.",
        "Continue with a larger model (`--continue --model`, `/model`), or start a new session with smaller files.",
    ),
    "bad_request": Explanation(
        "The provider refused the request as invalid.", "Check the base URL, the wire API and the model's name."
    ),
    "not_found": Explanation(
        "The provider does not know the model or the address.", ("Check the model's name and the base URL.")
    ),
    "content_filter": Explanation("The provider's content filter refused the text.", "Rephrase the request."),
    "network": Explanation(
        "The provider could not be reached.", "Check the network, the proxy and the base URL. `treadle doctor` helps."
    ),
    "timeout": Explanation(
        "The provider did not answer in time.",
        "Try again. For a slow server raise first_byte_timeout, idle_timeout or progress_timeout of the provider.",
    ),
    "malformed_stream": Explanation(
        "The reply was cut off or not in the expected form.",
        "Try again. If it happens again, check wire_api and the base URL.",
    ),
    "empty_reply": Explanation(
        "The model sent an empty reply.", ("Continue with `treadle --continue`, or choose another model.")
    ),
    "cancelled": Explanation("The call was interrupted.", "Continue with `treadle --continue`."),
    "budget": Explanation(
        "A request was not sent again: it can now cost more than the budget leaves.",
        "Continue with a higher limit, or with a cheaper model.",
    ),
}

_EDITS = {
    "no_marker": Explanation("There is no edit in the text.", "Write it in one of the formats in docs/editing.md."),
    "malformed": Explanation("The edit does not follow its format.", "The message says what is missing."),
    "truncated": Explanation("The edit is cut off.", "Send the whole edit again."),
    "empty_search": Explanation("The text to be replaced is empty.", "Give some lines that show the place."),
    "not_found": Explanation("The text to be replaced is not in the file.", "Read the file again."),
    "ambiguous": Explanation("The text to be replaced is in the file more than once.", "Give more lines around it."),
    "overlapping": Explanation("Two blocks change the same lines.", "Combine them into one."),
    "already_applied": Explanation("The file has the new text already.", "There is nothing to do."),
    "no_change": Explanation("The edit changes nothing.", "Check what you meant to change."),
    "elision": Explanation(
        "The new text leaves lines out, such as with '… rest of the code'.", ("Write the new text in full.")
    ),
    "changed_since": Explanation("The file changed since it was read.", "Read the file again."),
    "indentation": Explanation("The indentation does not match that of the file.", "Copy the indentation exactly."),
    "escaped": Explanation("The text has escapes that the file does not have.", "Write it as it is in the file."),
    "wrong_file": Explanation("The edit is for another file.", "Name the right file."),
}

EXPLANATIONS: Mapping[str, Explanation] = MappingProxyType(
    {
        **_SETTINGS,
        **(_KEYS | _STARTING),
        **ABOUT_SESSIONS,
        **ABOUT_THE_PAGE,
        **ABOUT_SCHEDULES,
        **_MODELS,
        **{f"edit-{code}": explanation for code, explanation in _EDITS.items()},
    }
)

_GROUPS = (
    ("Settings and models", tuple(_SETTINGS)),
    ("Keys", tuple(_KEYS)),
    ("Starting", tuple(_STARTING)),
    ("Sessions and their log", (*ABOUT_SESSIONS, *ABOUT_SCHEDULES)),
    ("The page", tuple(ABOUT_THE_PAGE)),
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
    yield "Written by `make docs`; `treadle explain CODE` shows the same offline."
    for title, codes in _GROUPS:
        yield from ("", f"## {title}", "", "| code | what it means | what helps |", "|---|---|---|")
        for code in codes:
            explanation = EXPLANATIONS[code]
            yield f"| `{code}` | {explanation.meaning} | {explanation.remedy} |"
