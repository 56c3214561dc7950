"""Do the documents tell the truth? Runs the commands of their tested examples, compares their copies of files with the
files, and follows their links.

Usage: check_docs.py PROGRAM SOURCE_DIR [--update]. An example is a ```console block right after <!-- tested -->:

    $ dculab tables footprint --model llama-2-7b
    what it prints; a line "..." stands for any lines, and "..." at the end of a line for the rest of it

`dculab` is PROGRAM, run in SOURCE_DIR; "[exit 2]" as the last line of an output says that the command fails. A copy is a
block right after <!-- file: scenarios/quickstart.yaml -->, elided in the same way. With --update the shown lines are
replaced by the lines of the real output, or file, that resemble them most; elisions stay.
"""

import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys

EXAMPLE = re.compile(r"^<!-- tested -->\n+```console\n(.*?)^```$", re.S | re.M)
COPY = re.compile(r"^<!-- file: (\S+) -->\n+```\w*\n(.*?)^```$", re.S | re.M)
MARK = re.compile(r"^<!-- (?:tested|file:.*) -->$", re.M)
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
ELIDED = "..."
FEWEST_EXAMPLES = 5


def documents(root: pathlib.Path):
    tops = [*sorted(root.glob("README*.md")), root / "CONTRIBUTING.md"]
    return [*tops, *sorted((root / "docs").rglob("*.md"))]


def commands(block: str):
    """(command, [lines of output]) for each "$ " line; a backslash or an open quote continues the command."""
    found = []
    continues = False
    for line in block.splitlines():
        if continues:
            found[-1][0] += " " + line.strip().rstrip("\\")
        elif line.startswith("$ "):
            found.append([line[2:].rstrip("\\"), []])
        elif found:
            found[-1][1].append(line.rstrip())
            continue
        continues = line.endswith("\\") or (bool(found) and found[-1][0].count("'") % 2 == 1)
    return found


def run(program: str, root: pathlib.Path, command: str):
    words = shlex.split(command)
    if words[0] != "dculab":
        return [f"only dculab can be tested, not {words[0]}"]
    environment = {key: value for key, value in os.environ.items() if key != "DCULAB_DATA"}
    done = subprocess.run([program, *words[1:]], cwd=root, env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, encoding="utf-8", timeout=120, check=False)
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return lines + ([f"[exit {done.returncode}]"] if done.returncode else [])


def pattern(expected):
    """A regular expression for the shown lines."""
    parts = []
    for line in expected:
        if line == ELIDED:
            parts.append(r"(?:.*\n)*?")
        elif line.endswith(ELIDED):
            parts.append(re.escape(line[: -len(ELIDED)].rstrip()) + r".*\n")
        else:
            parts.append(re.escape(line) + r"\n")
    return "".join(parts)


def refreshed(expected, actual):
    """The shown lines with the figures of the real output; all of it where nothing is elided."""
    if not any(line.endswith(ELIDED) for line in expected):
        return actual
    result = []
    start = 0
    for line in expected:
        rest = actual[start:]
        if line == ELIDED or not rest:
            result.append(line)
            continue
        cut = len(line[: -len(ELIDED)].rstrip()) if line.endswith(ELIDED) else None
        likeness = [difflib.SequenceMatcher(None, line[:cut], each[:cut]).ratio() for each in rest]
        index = likeness.index(max(likeness))
        result.append(rest[index] if cut is None else rest[index][:cut].rstrip() + " " + ELIDED)
        start += index + 1
    return result


def first_difference(expected, actual):
    for count in range(1, len(expected) + 1):
        if not re.match(pattern(expected[:count]), "\n".join(actual) + "\n"):
            return f"not in the output: {expected[count - 1]}"
    return "the output goes on after the last line shown"


def claims(text: str, program: str, root: pathlib.Path):
    """Of each example and each copy of a file: (its block, what it is, the shown lines, the real ones)."""
    for block in EXAMPLE.finditer(text):
        for command, expected in commands(block.group(1)):
            yield block, command, expected, run(program, root, command)
    for block in COPY.finditer(text):
        file = root / block.group(1)
        actual = file.read_text(encoding="utf-8").splitlines() if file.is_file() else ["no such file"]
        yield block, f"copy of {block.group(1)}", block.group(2).splitlines(), actual


def line_of(found: re.Match) -> int:
    return found.string[: found.start()].count("\n") + 1


def check_claims(path: pathlib.Path, text: str, program: str, root: pathlib.Path, update: bool):
    count, untrue = 0, []
    for block, what, expected, actual in claims(text, program, root):
        count += 1
        if not re.fullmatch(pattern(expected), "".join(each + "\n" for each in actual)):
            untrue.append((block, what, expected, actual))
    if not update:
        return count, [f"{path.relative_to(root)}:{line_of(block)}: {what}\n    {first_difference(expected, actual)}"
                       for block, what, expected, actual in untrue]
    for block, _, expected, actual in sorted(untrue, key=lambda each: -each[0].start()):
        before, rest = text[: block.start()], text[block.start() :]
        text = before + rest.replace("\n".join(expected), "\n".join(refreshed(expected, actual)), 1)
    path.write_text(text, encoding="utf-8")
    return count, []


def check_marks(path: pathlib.Path, text: str, root: pathlib.Path):
    """A mark that no block follows would test nothing."""
    read = {block.start() for form in (EXAMPLE, COPY) for block in form.finditer(text)}
    return [f"{path.relative_to(root)}:{line_of(mark)}: no block of its kind follows {mark.group()}"
            for mark in MARK.finditer(text) if mark.start() not in read]


def check_links(path: pathlib.Path, text: str, root: pathlib.Path):
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    targets = [target for target in LINK.findall(prose) if "://" not in target]
    missing = [target for target in targets if not (path.parent / target).exists()]
    return [f"{path.relative_to(root)}: links to {target}, which is not there" for target in missing]


def main() -> int:
    program, root = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    total, complaints = 0, []
    for path in documents(root):
        text = path.read_text(encoding="utf-8")
        count, found = check_claims(path, text, program, root, "--update" in sys.argv[3:])
        total += count
        complaints += found + check_marks(path, text, root) + check_links(path, text, root)
    if total < FEWEST_EXAMPLES:
        complaints.append(f"only {total} examples and copies found, the check would prove little")
    print("\n".join(complaints) if complaints else f"{total} examples and copies, all true")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
