"""The code of the chapter and of the README runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    """Return the Python code of a page."""
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def run(code: str, folder: Path, **environment: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={**os.environ, "MPLBACKEND": "agg", **environment},
    )
    assert said.returncode == 0, said.stderr[-3000:]


def test_the_chapter_runs(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    first, own, *_ = blocks("docs/src/python.md")
    run(first + own, tmp_path)
    assert (tmp_path / "schedule.goal").stat().st_size > 0


@pytest.mark.long
def test_the_code_for_jax_runs(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    made = 'import numpy as np, topocoll as tc\ns = tc.schedule("torus:8x8", "bruck")\n'
    made += "x = np.arange(64.0 * 64).reshape(64, 64)\n"
    code = made + blocks("docs/src/python.md")[2] + "assert (y == x.swapaxes(0, 1)).all()\n"
    run(code, tmp_path, JAX_PLATFORMS="cpu", XLA_FLAGS="--xla_force_host_platform_device_count=64")


def test_the_readme_runs(tmp_path: Path) -> None:
    (code,) = blocks("README.md")
    run(code, tmp_path)
