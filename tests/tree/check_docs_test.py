"""Does check_docs.py take what is true and refuse the rest? With a program that prints two fixed lines."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).with_name("check_docs.py")
PROGRAM = "#!/bin/sh\necho first line\necho second line\n"
FILE = "model: a\nmachine: b\n"
EXAMPLE = "<!-- tested -->\n```console\n$ dculab show\n{}```\n\n"
COPY = "<!-- file: {} -->\n```yaml\n{}```\n"
TRUE_EXAMPLES = 5 * EXAMPLE.format("first line\nsecond ...\n")


def verdict(text: str, update: bool = False) -> int:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "README.md").write_text(TRUE_EXAMPLES + text)
        (root / "CONTRIBUTING.md").write_text("")
        (root / "question.yaml").write_text(FILE)
        program = root / "program"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        check = [sys.executable, CHECKER, program, root]
        if update:
            subprocess.run([*check, "--update"], stdout=subprocess.DEVNULL)
        return subprocess.run(check, stdout=subprocess.DEVNULL).returncode


class Documents(unittest.TestCase):
    def test_examples_show_what_is_printed(self):
        self.assertEqual(0, verdict(EXAMPLE.format("...\nsecond line\n")))
        self.assertEqual(1, verdict(EXAMPLE.format("first line\n")))
        self.assertEqual(1, verdict(EXAMPLE.format("...\nthird line\n")))

    def test_commands_of_several_lines(self):
        for command in ("show \\\n  --set a=b", "show --set 'a=[b,\n  c]'"):
            text = EXAMPLE.replace("show", command)
            self.assertEqual(0, verdict(text.format("...\nsecond line\n")))
            self.assertEqual(1, verdict(text.format("...\nthird line\n")))

    def test_copies_are_their_files(self):
        self.assertEqual(0, verdict(COPY.format("question.yaml", FILE)))
        self.assertEqual(0, verdict(COPY.format("question.yaml", "...\nmachine: b\n")))
        self.assertEqual(1, verdict(COPY.format("question.yaml", "model: a\n")))
        self.assertEqual(1, verdict(COPY.format("nosuch.yaml", FILE)))

    def test_an_update_shows_what_is_printed(self):
        for lines in ("first lime\n...\n", "first line\n", "first line\nbetween\nsecond line\n"):
            self.assertEqual(0, verdict(EXAMPLE.format(lines), update=True))

    def test_marks_need_their_block(self):
        self.assertEqual(1, verdict("<!-- tested -->\nAnd here it is:\n"))
        self.assertEqual(1, verdict("<!-- tested -->\n```sh\ndculab show\n```\n"))
        self.assertEqual(1, verdict("<!-- file: question.yaml -->\nSee there.\n"))
        self.assertEqual(0, verdict("A block after `<!-- tested -->` is run.\n"))

    def test_links_lead_somewhere(self):
        self.assertEqual(0, verdict("[question](question.yaml)\n"))
        self.assertEqual(1, verdict("[question](nosuch.yaml)\n"))


if __name__ == "__main__":
    unittest.main()
