"""Where Treadle keeps its things."""

import os
from pathlib import Path


def data_directory() -> Path:
    """The folder for sessions and logs: `$TREADLE_HOME`, or the platform's data folder for the user."""
    home = os.environ.get("TREADLE_HOME")
    if home:
        return Path(home).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("treadle", appauthor=False))


def config_file() -> Path:
    """The user's settings: `config.toml` in `$TREADLE_HOME`, or in the platform's configuration folder."""
    home = os.environ.get("TREADLE_HOME")
    if home:
        return Path(home).expanduser().absolute() / "config.toml"
    import platformdirs

    return Path(platformdirs.user_config_dir("treadle", appauthor=False)) / "config.toml"


def servers_file() -> Path:
    """The user's MCP servers, in the form of `.mcp.json`: beside their settings, for them alone to read."""
    return config_file().with_name("mcp.json")


def database() -> Path:
    """The event log."""
    return data_directory() / "sessions.db"


def outputs() -> Path:
    """Where the files of long outputs are, in a folder for each session."""
    return data_directory() / "output"


def program_log() -> Path:
    """Where the details of unexpected errors are written."""
    return data_directory() / "treadle.log"
