"""A process that is forked after its parent used the package uses it too."""

import subprocess
import sys

import pytest

CODE = """
import multiprocessing, sys
import topocoll as tc

def work(block):
    found = tc.select("torus:8x8", block=block)
    schedule = found.best.schedule()
    return found.best.named, schedule.verify().delivered, schedule.simulate("steps").time

if __name__ == "__main__":
    wanted = [work(block) for block in (64, 1024)]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map_async(work, [64, 1024]).get(timeout=15) == wanted
    print("equal")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="without fork")
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_a_pool_uses_the_package_after_its_parent(method: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    program = tmp_path_factory.mktemp("fork") / "pool.py"
    program.write_text(CODE)
    said = subprocess.run([sys.executable, program, method], capture_output=True, text=True, check=False, timeout=20)
    assert said.stdout == "equal\n", said.stderr[-2000:]
