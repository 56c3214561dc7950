"""The examples of documents run: those after a line `<!-- tested: scripts/wheel-test -->`."""

import pathlib
import re

import pytest

SOURCES = pathlib.Path(__file__).parents[3]
EXAMPLE = re.compile(r"^<!-- tested: scripts/wheel-test -->\n```python\n(.*?)^```$", re.S | re.M)


@pytest.mark.parametrize("file", ["README.md", "docs/howto/python.md"])
def test_examples(file, capsys):
    examples = EXAMPLE.findall((SOURCES / file).read_text(encoding="utf-8"))
    assert examples
    for example in examples:
        exec(compile(example, file, "exec"), {})
    assert "k100-ai" in capsys.readouterr().out
