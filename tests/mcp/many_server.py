"""A server with as many tools as it is told, of the size that real ones have: `python many_server.py NAME COUNT`."""

import json
import sys

NAME, COUNT = sys.argv[1], int(sys.argv[2])
VERBS = ("list", "get", "create", "update", "delete", "search", "assign", "close", "merge", "export")
THINGS = ("issue", "pull_request", "comment", "branch", "commit", "release", "label", "milestone", "review", "workflow")


def tool(number: int) -> dict[str, object]:
    name = f"{VERBS[number % 10]}_{THINGS[number // 10 % 10]}"
    text = {"type": "string", "description": "The name of the owner of the repository, as it stands in its address."}
    properties = {"owner": text, "repo": text, "number": {"type": "integer", "description": "Which one."}}
    return {
        "name": name,
        "description": f"{name.replace('_', ' ').capitalize()} of a repository. Needs the rights to do that. " * 3,
        "inputSchema": {"type": "object", "properties": properties, "required": ["owner", "repo"]},
    }


def answer(method: str, params: dict[str, object]) -> dict[str, object] | None:
    match method:
        case "initialize":
            about = {"name": NAME, "version": "1"}
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": about,
                "instructions": f"{NAME} is for repositories. " * 40,
            }
        case "tools/list":
            return {"tools": [tool(number) for number in range(COUNT)]}
        case "tools/call":
            return {"content": [{"type": "text", "text": f"{NAME} {params['name']} {params['arguments']}"}]}
        case _:
            return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        found = answer(message["method"], message.get("params") or {})
        said = {"result": found} if found is not None else {"error": {"code": -32601, "message": "unknown"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
