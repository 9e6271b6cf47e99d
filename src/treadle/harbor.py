"""Treadle as an agent of Harbor, which runs it in a task's environment: `--agent treadle.harbor:TreadleAgent`.

Harbor and its Python 3.12 are needed for it (https://www.harborframework.com/docs/agents); nothing else imports this.
"""

import json
import shlex
from pathlib import Path
from typing import Any

from harbor.agents.installed.base import BaseInstalledAgent, NonZeroAgentExitCodeError, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

_PLACE = "/installed-agent"
_TASK = f"{_PLACE}/instruction.txt"
_SHOWN = 2_000


class TreadleAgent(BaseInstalledAgent):
    """Works on the instruction with `treadle -p`, in the mode `full`: the environment is what confines it.

    `wheel` is one of Treadle on this machine, which is installed where the environment has no Treadle; that takes its
    Python 3.11 and an index. `mode` is another mode, `flags` are further words for `treadle -p`.
    """

    def __init__(self, logs_dir: Path, *, wheel: str = "", mode: str = "full", flags: str = "", **more: Any) -> None:
        super().__init__(logs_dir, **more)
        self._wheel = Path(wheel).expanduser() if wheel else None
        self._mode = mode
        self._more = shlex.split(flags)
        self._program = "treadle"

    @staticmethod
    def name() -> str:
        """Name the agent."""
        return "treadle"

    def get_version_command(self) -> str:
        """Give what prints the version in the environment."""
        return f"{self._program} --version"

    def parse_version(self, stdout: str) -> str:
        """Read the version."""
        return stdout.strip().partition(" ")[0]

    async def install(self, environment: BaseEnvironment) -> None:
        """Install the wheel, unless Treadle is there. Raises `RuntimeError`."""
        if await self.is_requested_version_installed(environment):
            return
        if self._wheel is None or not self._wheel.is_file():
            raise RuntimeError(
                f"The environment has no treadle {self.version() or ''}".strip()
                + ". Use an image that has it, or give a wheel: --agent-kwarg wheel=/path/to/treadle.whl"
            )
        target = f"{_PLACE}/{self._wheel.name}"
        await environment.upload_file(self._wheel, target)
        pip = f"{_PLACE}/venv/bin/pip install --quiet --disable-pip-version-check {shlex.quote(target)}"
        await self.exec_as_root(environment, f"python3 -m venv {_PLACE}/venv && {pip}")
        self._program = f"{_PLACE}/venv/bin/treadle"

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Work on the instruction, and keep the result and the log of the session.

        Raises `NonZeroAgentExitCodeError` where the program or the model's provider failed; that the model did not
        come to an end, as at a limit, is for the verifier to judge.
        """
        task = self.logs_dir / "instruction.txt"
        task.write_text(instruction, encoding="utf-8")
        await environment.upload_file(task, _TASK)
        model = ("--model", self.model_name) if self.model_name else ()
        words = ("--output-format", "json", "--mode", self._mode, *model, *self._more)
        done = await environment.exec(f'{self._program} -p "$(cat {_TASK})" {shlex.join(words)}')
        said = done.stderr or ""
        (self.logs_dir / "treadle.txt").write_text(said, encoding="utf-8")
        result = _result(done.stdout or "")
        if result is None:
            raise NonZeroAgentExitCodeError(f"treadle ended with {done.return_code}: {said[-_SHOWN:]}")
        (self.logs_dir / "result.json").write_text(json.dumps(result), encoding="utf-8")
        _tell(result, context)
        log = f"{self.environment_logs_dir}/session.json"
        await environment.exec(
            shlex.join((self._program, "export", result["session_id"], "--format", "json", "-o", log))
        )
        if (error := result["error"]) is not None:
            raise NonZeroAgentExitCodeError(
                f"The model could not be called ({error['kind']}): {error.get('message', '')}"
            )


def _result(printed: str) -> dict[str, Any] | None:
    """Read the object that `treadle -p` printed; None where there is none."""
    for line in reversed(printed.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict) and found.get("type") == "result":
            return found
    return None


def _tell(result: dict[str, Any], context: AgentContext) -> None:
    """Say what it used; an unknown cost stays None."""
    usage = result["usage"]  # without what is 0
    cached = usage.get("cache_read_tokens", 0)
    context.n_input_tokens = usage.get("input_tokens", 0) + cached + usage.get("cache_write_tokens", 0)
    context.n_cache_tokens = cached
    context.n_output_tokens = usage.get("output_tokens", 0)
    context.cost_usd = result["cost"]
    context.metadata = {name: result[name] for name in ("session_id", "stop", "exit_code", "steps", "denied")}
