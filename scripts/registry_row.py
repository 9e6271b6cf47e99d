"""Write what the registry of ACP agents is given: `treadle/agent.json`, and the mark in one colour, 16 by 16.

`python scripts/registry_row.py FOLDER`, once this version is on the package index (docs/releasing.md): the registry
refuses a row whose package is not there. Its rules, as of 2026-08-20: github.com/agentclientprotocol/registry.
"""

import json
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="16" height="16">'
    '<path fill="currentColor" d="M4.7 2.9h6.6v4.5H4.7zM1.2 7.4h3.5v5H1.2zM11.3 7.4h3.5v5h-3.5z"/></svg>\n'
)


def main() -> None:
    """Write both files."""
    sys.path.insert(0, str(ROOT / "src"))
    from treadle import __version__

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    row = {
        "id": project["name"],
        "name": project["name"].title(),
        "version": __version__,
        "description": project["description"],
        "authors": [author["name"] for author in project["authors"]],
        "license": project["license"],
        "distribution": {"uvx": {"package": f"{project['name']}=={__version__}", "args": ["acp"]}},
    }
    folder = Path(sys.argv[1]) / project["name"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.json").write_text(json.dumps(row, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "icon.svg").write_text(ICON, encoding="utf-8")
    print(f"Written to {folder}.")


if __name__ == "__main__":
    main()
