"""`antiphon calibrate` from its start to the file it writes, with the real models."""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from realtime.deployment import DEFAULT_FILE, load


@pytest.mark.full
@pytest.mark.real_models
@pytest.mark.timeout(300)
async def test_a_quick_calibration_writes_seats_beside_its_deployment(tmp_path: Path) -> None:
    file = tmp_path / "voice.yaml"
    shutil.copy(DEFAULT_FILE, file)
    generous = ("--bar", "turn_p95_ms=20000", "--bar", "underruns=1000", "--bar", "cut_off_share=1")
    command = (sys.executable, "-m", "realtime.cli", "calibrate", "--quick", "--deployment", str(file), *generous)
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    said, _ = await process.communicate()
    assert process.returncode == 0
    assert b"2 sessions of kind voice hold their bars" in said
    seats = load(file).seats["voice"]
    assert seats.seats == 2
    assert seats.measured["unanswered"] == 0
    assert seats.machine
