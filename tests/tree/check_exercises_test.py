"""Does check_exercises.py take right answers and refuse wrong ones? With a program that prints one fixed JSON."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).with_name("check_exercises.py")
PROGRAM = """#!/bin/sh
echo '{"peak": "3 TFLOP/s", "ops": [{"op": "a", "n": 2, "x.y": "7"}, {"op": "b", "n": 4, "x.y": "9"}]}'
"""
CHAPTER = """<details>
<summary>Answer</summary>

**{written}**, since.

<!-- exercise -->
```console
$ dculab show something
{recipe}
```

</details>
"""


def verdict(written: str, recipe: str) -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs/tutorial").mkdir(parents=True)
        (root / "docs/tutorial/1-a.md").write_text(CHAPTER.format(written=written, recipe=recipe))
        program = root / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        return subprocess.run([sys.executable, CHECKER, program, root], stdout=subprocess.DEVNULL).returncode


class Exercises(unittest.TestCase):
    def test_number_must_be_true_to_its_last_digit(self):
        ratio = 'n = .ops[] | select(.op == "a") | .n\nanswer = n / 3'
        self.assertEqual(0, verdict("0.67", ratio))
        self.assertEqual(1, verdict("0.66", ratio))
        self.assertEqual(1, verdict("0.7000", ratio))

    def test_lists_words_and_units(self):
        self.assertEqual(0, verdict("4", "n = .ops[].n\nanswer = max(n)"))
        self.assertEqual(0, verdict("16", 'n = .ops[]."x.y"\nanswer = n[0] + n[1]'))
        self.assertEqual(0, verdict("b", "answer = .ops[1].op"))
        self.assertEqual(1, verdict("a", "answer = .ops[1].op"))
        self.assertEqual(0, verdict("3 TFLOP/s", "peak = .peak\nanswer = peak / 1e12"))

    def test_answer_that_cannot_be_computed_is_refused(self):
        self.assertEqual(1, verdict("1", "answer = .missing"))
        self.assertEqual(1, verdict("1", 'n = .ops[] | select(.op == "c") | .n\nanswer = n'))
        self.assertEqual(1, verdict("1", "n = .ops[0].n"))


if __name__ == "__main__":
    unittest.main()
