"""The SAPPHIRE kernels on machines without AMX: their machine code over an emulator of its instructions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import uform

HERE = Path(__file__).parent
NEEDS = {"avx512_bf16", "avx512vbmi"}


def flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()


@pytest.mark.skipif("amx_bf16" in flags(), reason="the machine has AMX: test_encode.py runs the class natively")
@pytest.mark.skipif(not flags() >= NEEDS, reason="the emulator needs the rest of the class in hardware")
def test_sapphire_over_an_emulator(tmp_path: Path) -> None:
    with pytest.raises(uform.UnsupportedError, match="SAPPHIRE"):
        uform.Model.load_ram(uform.default_checkpoint(), cpu_class=uform.CPUClass.SAPPHIRE)

    emulator = tmp_path / "amx_emulator.so"
    source = HERE / "c" / "amx_emulator.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", str(source), "-o", str(emulator), "-lm"], check=True)
    environment = os.environ | {"LD_PRELOAD": str(emulator), "UFORM_ASSUME_CPU_CLASS": "SAPPHIRE"}
    # pytest's faulthandler would take the signal that the emulator lives on.
    chosen = "SAPPHIRE and (same_bits or (oracle and narrow) or (test_maxsim and BF16))"
    plugins = ["-p", "no:cacheprovider", "-p", "no:faulthandler"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "-k", chosen]
    command += [str(HERE / name) for name in ("test_encode.py", "test_rank.py")]
    outcome = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    # Two scalars of weights against the oracle, and the bits; late interaction of six widths.
    assert "9 passed" in outcome.stdout
