"""Options of the tests, ``pytest python/tests --long``, and the program that the package is compared with."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Runs the program with arguments.
Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def program() -> Program:
    path = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "debug/topocoll"
    if not path.exists():
        pytest.skip("the program is not built")
    # As wide as it needs.
    environment = {**os.environ, "COLUMNS": "200"}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([path, *arguments], capture_output=True, text=True, check=False, env=environment)

    return run


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run the tests that take minutes")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes minutes")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--long"):
        skip = pytest.mark.skip(reason="only with --long")
        for item in items:
            if "long" in item.keywords:
                item.add_marker(skip)
