"""Options and fixtures: `--program FILE` is the dculab program whose answers the module's are compared with."""

import os
import subprocess

import pytest


def pytest_addoption(parser):
    parser.addoption("--program", help="the dculab program to compare with")
    parser.addoption("--whole", action="store_true", help="also what takes longer than five minutes")


def pytest_configure(config):
    config.addinivalue_line("markers", "whole: takes long, and runs with --whole only")


def pytest_collection_modifyitems(config, items):
    if not config.getoption("--whole"):
        skip = pytest.mark.skip(reason="runs with --whole")
        for item in items:
            if "whole" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def program(request):
    """Runs the program: (exit code, standard output, standard error)."""
    file = request.config.getoption("--program")
    if file is None:
        pytest.skip("no --program to compare with")
    file = os.path.abspath(file)

    def run(*arguments):
        done = subprocess.run([file, *map(str, arguments)], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run
