"""The package's types are right, those of the answers among them."""

import importlib.resources
import subprocess
import sys

import pytest

CHECKED = """
import dculab
from dculab import answers

step = dculab.predict("llama-3-8b", "z100")
seconds: float = step.step_seconds
name: str = step.ops[0].op
low: float = step.interval_seconds.low
rows: dculab.Rows[answers.Op] = step.ops
{wrong}
"""


def check(tmp_path, wrong=""):
    file = tmp_path / "question.py"
    file.write_text(CHECKED.format(wrong=wrong))
    return subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", str(file)], cwd=tmp_path,
                          capture_output=True, text=True, check=False)


def test_the_package_says_that_it_is_typed():
    assert importlib.resources.files("dculab").joinpath("py.typed").is_file()
    assert importlib.resources.files("dculab").joinpath("_dculab.pyi").is_file()


@pytest.mark.whole
def test_a_question_is_checked(tmp_path):
    pytest.importorskip("mypy")
    done = check(tmp_path)
    assert done.returncode == 0, done.stdout
    done = check(tmp_path, "dculab.predict('llama-3-8b', 'z100', batch='many')\nstep.step_sekonds")
    assert "batch" in done.stdout and "step_sekonds" in done.stdout


@pytest.mark.whole
def test_the_package_itself(tmp_path):
    pytest.importorskip("mypy")
    done = subprocess.run([sys.executable, "-m", "mypy", "--ignore-missing-imports", "-p", "dculab"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
