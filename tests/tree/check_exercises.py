"""Are the answers of the tutorial's exercises right? Computes each with the program and compares it with the text.

Usage: check_exercises.py PROGRAM SOURCE_DIR. An answer is a <details> of docs/tutorial/*.md. Its first **bold** words are
what is compared: a number, true to its last written digit, or a word. How it is computed stands in it:

    <!-- exercise -->
    ```console
    $ dculab show z100 --format json
    peak = .values[] | select(.key == "peaks.f16.vector") | .value
    answer = peak / 1e12
    ```

A line that starts with a dot right of the `=` is a path into the JSON of the command above it, in jq's words: `.key`,
`."dotted.key"`, `[]`, `[0]` and `select(.key == VALUE)`. "21.6 TFLOP/s" becomes 21.6e12. Other lines are arithmetic.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ANSWER = re.compile(r"<details>\n(.*?)</details>", re.S)
RECIPE = re.compile(r"<!-- exercise -->\n+```console\n(.*?)^```$", re.S | re.M)
STEP = re.compile(r'\."([^"]+)"|\.(\w+)|\[(\d*)\]')
SELECT = re.compile(r"select\((\S+) == (.+)\)")
QUANTITY = re.compile(r"([-+\d.e]+)(?: ([kMGTP]?)(?:B|FLOP)/s)?")
PREFIX = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
FUNCTIONS = {"min": min, "max": max, "len": len, "zip": zip}


def walk(path: str, values: list) -> list:
    """The values at a path without bars, in each of `values`."""
    if STEP.sub("", path):
        raise ValueError(f"no path: {path}")
    for quoted, key, index in STEP.findall(path):
        if quoted or key:
            values = [each[quoted or key] for each in values]
        elif index:
            values = [each[int(index)] for each in values]
        else:
            values = [item for each in values for item in each]
    return values


def number(value):
    """A word that is a number, or a rate with its unit, as a number."""
    found = QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return float(found[1]) * PREFIX[found[2] or ""] if found else value


def look_up(path: str, document):
    """What the path finds: a value, or a list when there are several."""
    values = [document]
    for part in path.split(" | "):
        wanted = SELECT.fullmatch(part.strip())
        if wanted:
            values = [each for each in values if walk(wanted[1], [each])[0] == json.loads(wanted[2])]
        else:
            values = walk(part.strip(), values)
    if not values:
        raise ValueError(f"nothing at {path}")
    values = [number(each) for each in values]
    return values[0] if len(values) == 1 else values


def run(program: str, root: pathlib.Path, command: str):
    environment = {key: value for key, value in os.environ.items() if key != "DCULAB_DATA"}
    done = subprocess.run([program, *shlex.split(command)[1:]], cwd=root, env=environment, capture_output=True,
                          text=True, encoding="utf-8", timeout=120, check=False)
    if done.returncode:
        raise ValueError(f"{command}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def compute(recipe: str, program: str, root: pathlib.Path):
    document, names = None, {}
    for line in recipe.replace("\\\n", " ").splitlines():
        if line.startswith("$ dculab "):
            document = run(program, root, line[2:])
            continue
        name, _, right = line.partition(" = ")
        if right.startswith("."):
            names[name] = look_up(right, document)
        elif right:
            names[name] = eval(right, {"__builtins__": FUNCTIONS}, names)
    return names["answer"]


def agrees(written: str, actual) -> bool:
    """A number may differ by half a unit of its last written digit, a word not at all."""
    if isinstance(actual, str):
        return written == actual
    digits = re.match(r"\d+(?:\.(\d+))?", written)
    if not digits:
        return False
    return abs(float(digits[0]) - actual) <= 0.5000001 * 10 ** -len(digits[1] or "")


def check(answer: str, program: str, root: pathlib.Path):
    """What is wrong with an answer, or nothing."""
    recipe, written = RECIPE.search(answer), re.search(r"\*\*(.+?)\*\*", answer)
    if not recipe or not written:
        return "an answer needs **bold** words and an <!-- exercise --> block"
    try:
        actual = compute(recipe[1], program, root)
    except (ValueError, KeyError, TypeError, IndexError, NameError, SyntaxError) as wrong:
        return f"cannot be computed: {wrong!r}"
    return None if agrees(written[1], actual) else f"the text says {written[1]}, the program {actual}"


def main() -> int:
    program, root = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    count, complaints = 0, []
    for path in sorted((root / "docs/tutorial").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        answers = list(ANSWER.finditer(text))
        if not answers:
            complaints.append(f"{path.name}: no exercise with an answer")
        for answer in answers:
            count += 1
            wrong = check(answer[1], program, root)
            if wrong:
                complaints.append(f"{path.name}:{text[: answer.start()].count(chr(10)) + 1}: {wrong}")
    if count == 0:
        complaints.append("no exercises found")
    print("\n".join(complaints) if complaints else f"{count} answers, all right")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
