"""The devices of GPUs in the sandbox: there where the user wants them, and nothing else with them."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.workspace.sandbox.running import Box, bubblewrap, landlock

from treadle.app.config.layers import load_settings
from treadle.app.config.sections import Settings
from treadle.app.reports.doctor_report import examine
from treadle.app.session import first_use
from treadle.protocol.errors import ConfigError
from treadle.workspace import gpus
from treadle.workspace.gpus import gpu_devices, gpu_words

DEVICE = "/dev/kmsg"
"""A device that this machine has and that no command sees; it takes the place of a GPU's."""

needs_device = pytest.mark.skipif(not os.access(DEVICE, os.R_OK), reason=f"{DEVICE} cannot be read here")


def test_only_devices_and_folders_of_theirs_are_found(tmp_path: Path) -> None:
    (tmp_path / "dri").mkdir()
    (tmp_path / "nvidia-caps").mkdir()
    (tmp_path / "nvidia0").write_text("a file")
    (tmp_path / "kfd").symlink_to("/etc/passwd")
    (tmp_path / "sda").mkdir()
    assert gpu_devices(tmp_path) == (f"{tmp_path}/dri", f"{tmp_path}/nvidia-caps")
    assert gpu_devices(tmp_path / "nowhere") == ()
    assert gpu_words(()) == ""


@needs_device
async def test_a_device_is_there_where_it_is_wanted_and_only_then(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    box = Box(tmp_path, bubblewrap())
    line = f"test -c {DEVICE} && test -r {DEVICE} && echo there; ls /dev | wc -l"
    status, without = await box.run(line)
    assert (status, without.startswith("there")) == (0, False)
    status, beside = await box.run(line, replace(box.profile(), devices=(DEVICE, "/dev/gone")))
    assert status == 0
    assert beside == f"there\n{int(without) + 1}\n"
    status, refused = await box.run("echo x > /dev/new", replace(box.profile(), devices=(DEVICE,)))
    assert (status, "Read-only" in refused) == (1, True)


@pytest.mark.skipif(not os.access("/dev/tty0", os.W_OK), reason="/dev/tty0 cannot be written here")
async def test_landlock_lets_a_device_be_written_where_it_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    box = Box(tmp_path, landlock())
    line = "exec 3<>/dev/tty0 && echo open"
    assert (await box.run(line))[0] == 1
    assert await box.run(line, replace(box.profile(), devices=("/dev/tty0",))) == (0, "open\n")


async def test_the_doctor_and_the_model_are_told_which_and_no_project_sets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREADLE_HOME", str(tmp_path))
    (tmp_path / "dri").mkdir()
    words = gpu_words(gpu_devices(tmp_path))
    assert words == f"Commands can use the GPU devices {tmp_path}/dri."
    assert first_use.gpu_line(Settings()) == ""
    (tmp_path / "config.toml").write_text("gpu = true\n")
    assert first_use.gpu_line(load_settings({})) == gpu_words(gpus.gpu_devices())
    found = {check.name: check.found async for check in examine(offline=True)}
    assert found["GPU devices"] == gpu_words(gpu_devices()) or "none are on this machine" in found["GPU devices"]
    (tmp_path / "ws" / ".treadle").mkdir(parents=True)
    (tmp_path / "ws" / ".treadle" / "config.toml").write_text("gpu = true\n")
    with pytest.raises(ConfigError, match="may not set gpu"):
        load_settings({}, workspace=tmp_path / "ws", trusted=True)
