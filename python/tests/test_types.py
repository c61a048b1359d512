"""The package, its stubs and the examples pass mypy --strict; every public name has a docstring."""

import inspect
import subprocess
import sys
from pathlib import Path

import topocoll as tc

ROOT = Path(__file__).parents[2]


def mypy(*arguments: str) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.11", *arguments]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "python", check=False)
    assert said.returncode == 0, said.stdout + said.stderr


def test_types_are_strict() -> None:
    mypy("topocoll", "tests", *map(str, sorted((ROOT / "examples" / "python").glob("*.py"))))


def test_stubs_are_those_of_the_module(tmp_path: Path) -> None:
    # Reading the types of other packages takes most of the time.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n[mypy-jax.*,matplotlib.*,networkx.*,pandas.*,tqdm.*]\nfollow_imports = skip\n")
    options = ["--ignore-disjoint-bases", "--mypy-config-file", str(config)]
    said = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "topocoll._core", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stdout + said.stderr


def test_help_opens_with_the_functions_and_is_short() -> None:
    command = [sys.executable, "-c", "import topocoll as tc; help(tc)"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    described = said[said.index("DESCRIPTION") + 1 :]
    functions = ["machine", "select", "schedule", "sweep", "plan", "algorithms", "machines"]
    assert [line.split()[0] for line in described[:7]] == functions and len(said) < 200
    assert sorted(functions) == tc.__all__ and "CLASSES" not in said


def test_every_public_name_is_documented() -> None:
    for name in (name for name in vars(tc) if not name.startswith("_")):
        thing = getattr(tc, name)
        assert inspect.getdoc(thing), name
        if inspect.isclass(thing):
            for own, member in vars(thing).items():
                if callable(member) and not own.startswith("_"):
                    assert inspect.getdoc(member), f"{name}.{own}"


def test_examples_in_docstrings_run() -> None:
    import doctest

    import topocoll._machine
    import topocoll._schedule
    import topocoll._select

    for module in (tc, topocoll._machine, topocoll._schedule, topocoll._select):
        assert doctest.testmod(module).failed == 0


def test_style_is_that_of_ruff() -> None:
    for command in (["check"], ["format", "--check"]):
        said = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--quiet", ".", "../examples/python"],
            capture_output=True,
            text=True,
            cwd=ROOT / "python",
            check=False,
        )
        assert said.returncode == 0, said.stdout + said.stderr
