"""The row of the registry of ACP agents, by the registry's rules, and the agent that it starts."""

import json
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import treadle
from tests.architecture.test_shape import ROOT
from tests.e2e.process import Program
from tests.ready import treadle as program

CLIENT = {"terminal": True, "fs": {"readTextFile": True, "writeTextFile": True}, "_meta": {"terminal-auth": True}}
"""What the check of the registry says that it can."""


def written(folder: Path) -> tuple[dict[str, Any], str]:
    subprocess.run([sys.executable, ROOT / "scripts" / "registry_row.py", folder], check=True, capture_output=True)
    place = folder / "treadle"
    row: dict[str, Any] = json.loads((place / "agent.json").read_text())
    return row, (place / "icon.svg").read_text()


def test_the_row_says_this_version_and_the_icon_takes_the_colour_of_its_place(tmp_path: Path) -> None:
    row, icon = written(tmp_path)
    assert set(row) >= {"id", "name", "version", "description", "distribution"}
    assert re.fullmatch(r"[a-z][a-z0-9-]*", row["id"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", row["version"])
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert row["distribution"] == {"uvx": {"package": f"treadle=={treadle.__version__}", "args": ["acp"]}}
    assert "treadle" in scripts  # the command that is run where a row names none
    picture = ET.fromstring(icon)
    assert (picture.get("width"), picture.get("height"), picture.get("viewBox")) == ("16", "16", "0 0 16 16")
    colours = {one.get(name) for one in picture.iter() for name in ("fill", "stroke")} - {None}
    assert colours == {"currentColor"}
    assert "<!--" not in icon
    assert "style" not in icon


def test_the_agent_says_without_any_setting_how_one_signs_in(tmp_path: Path) -> None:
    row, _ = written(tmp_path)
    asked = {"protocolVersion": 1, "clientInfo": {"name": "check", "version": "1"}, "clientCapabilities": CLIENT}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": asked})
    ended = subprocess.run(
        [*program(), *row["distribution"]["uvx"]["args"]],
        input=f"{line}\n",
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=Program(tmp_path / "home", {"TERM": "dumb"}).environment,
        cwd=tmp_path,
    )
    answers = [json.loads(said) for said in ended.stdout.splitlines()]
    (method,) = answers[0]["result"]["authMethods"]
    assert method.get("type", "agent") in ("agent", "terminal")
    assert answers[0]["result"]["agentInfo"]["version"] == treadle.__version__
