"""Does check_file_keys.py take tables that are so and refuse the rest? With a program that prints one small schema."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).with_name("check_file_keys.py")
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["name"], "properties": {
    "name": {"type": "string", "description": "its name"},
    "kv": {"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 256, "unit": "tokens", "default": 16, "description": "of it"},
        "kind": {"enum": ["a", "b"], "absent": "`a`"}}},
    "latency": {"type": "object", "properties": {
        "value": {"type": "string", "pattern": "^.* (s|ms)$", "unit": "s", "minimum": 0, "maximum": 1000},
        "kind": {"enum": ["spec"]}, "source": {"type": "string"}}}}}
ROWS = ["| `name` | text | required | its name |",
        "| `kv.size` | whole number, 1 to 256 tokens | `16` | of it, in words of one's own |",
        "| `kv.kind` | `a`, `b` | `a` | |",
        "| `latency` | time, 0 to 1,000 s |  | |"]
HEAD = ["<!-- keys: {} -->", "| key | value | default | meaning |", "|---|---|---|---|"]
PAGES = {"machine": "hwmodels/SCHEMA.md", "stack": "stacks/SCHEMA.md", "scenario": "docs/reference/scenario-file.md",
         "trace": "docs/reference/trace-file.md"}


def run(rows: list[str], update: bool = False) -> tuple[int, str, str]:
    """The exit code, what was printed, and the scenario's page after it."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for kind, page in PAGES.items():
            (root / page).parent.mkdir(parents=True, exist_ok=True)
            lines = HEAD + (rows if kind == "scenario" else ROWS)
            (root / page).write_text("\n".join(lines).format(kind) + "\n\nText.\n")
        program = root / "program"
        program.write_text("#!/bin/sh\ncat <<'END'\n" + json.dumps(SCHEMA) + "\nEND\n")
        program.chmod(0o755)
        arguments = [sys.executable, CHECKER, program, root] + (["--update"] if update else [])
        done = subprocess.run(arguments, capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr, (root / PAGES["scenario"]).read_text()


class Tables(unittest.TestCase):
    def test_tables_that_are_so(self):
        self.assertEqual((0, ""), run(ROWS)[:2])

    def refused(self, rows: list[str], complaint: str):
        code, text, _ = run(rows)
        self.assertEqual(1, code, text)
        self.assertIn(complaint, text)

    def test_a_key_that_is_missing(self):
        self.refused(ROWS[1:], "has no row for `name`")

    def test_a_key_that_there_is_not(self):
        self.refused(ROWS + ["| `kv.colour` | text |  | |"], "`kv.colour` is no key")

    def test_another_range_unit_or_default(self):
        for old, new in (("256", "128"), ("tokens", "blocks"), ("`16`", "`32`")):
            self.refused([ROWS[0], ROWS[1].replace(old, new)] + ROWS[2:], "`kv.size` is whole number, 1 to 256 tokens")

    def test_an_update_keeps_meanings(self):
        code, _, page = run([ROWS[1].replace("256", "128")], update=True)
        self.assertEqual(0, code)
        self.assertIn(ROWS[1], page)
        self.assertIn(ROWS[0], page)
        self.assertTrue(page.endswith("\n\nText.\n"))


if __name__ == "__main__":
    unittest.main()
