"""An environment of Harbor without containers: bubblewrap around a folder, the system below it only to be read.

Harbor loads it in a Python of its own. `programs` are folders that are there under their own paths.
"""

import asyncio
import shutil
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment, ExecResult

_OWN = ("app", "logs", "tests", "solution", "installed-agent", "tmp", "root", "home")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")


class BubblewrapEnvironment(BaseEnvironment):
    """One folder with what the container would have; its commands see it as `/`."""

    def __init__(self, *args: Any, programs: str = "", path: str = "", **more: Any) -> None:
        self._programs = programs.split(":") if programs else []
        self._path = path
        super().__init__(*args, **more)

    @staticmethod
    def type() -> str:
        return "bubblewrap"

    def _validate_definition(self) -> None:
        """Nothing is built."""

    @property
    def _root(self) -> Path:
        return Path(self.trial_paths.trial_dir, "bubblewrap")

    async def start(self, force_build: bool) -> None:
        for name in _OWN:
            (self._root / name).mkdir(parents=True, exist_ok=True)
        for name in ("agent", "verifier", "artifacts"):
            (self._root / "logs" / name).mkdir(exist_ok=True)

    async def stop(self, delete: bool) -> None:
        if delete:
            shutil.rmtree(self._root, ignore_errors=True)

    def _place(self, path: str) -> Path:
        return self._root / path.lstrip("/")

    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        self._place(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source_path, self._place(target_path))

    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        shutil.copytree(source_dir, self._place(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        shutil.copy2(self._place(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        shutil.copytree(self._place(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        words = ["bwrap", "--unshare-pid", "--die-with-parent", "--proc", "/proc", "--dev", "/dev", "--clearenv"]
        for place in _SYSTEM:
            words += ["--ro-bind-try", place, place]
        for name in _OWN:
            words += ["--bind", str(self._root / name), f"/{name}"]
        for place in self._programs:
            words += ["--ro-bind", place, place]
        variables = {"PATH": f"{self._path}:/usr/bin:/bin", "HOME": "/home", **(self._merge_env(env) or {})}
        for name, value in variables.items():
            words += ["--setenv", name, value]
        words += ["--chdir", cwd or "/app", "bash", "-c", command]
        process = await asyncio.create_subprocess_exec(
            *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), timeout_sec)
        except BaseException:
            process.kill()
            raise
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode or 0)
