"""Is every shipped machine, stack and scenario as its JSON Schema says, and every trace; does the schema refuse others?

Usage: check_file_schemas.py PROGRAM SOURCE_DIR. Validates hwmodels/, stacks/ and scenarios/ with `PROGRAM schema KIND`,
and the first lines of the traces in tests/data/traces/ with `PROGRAM schema trace`. Of each file it also tries one with a key that there is not in every map; the schema must refuse each. Prints every file
that is not as expected and exits with 1 if there is any.
"""

import copy
import gzip
import itertools
import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml

FOLDERS = {"machine": "hwmodels", "stack": "stacks", "scenario": "scenarios"}
LINES = 3  # of a trace


class Loader(yaml.SafeLoader):
    """Words as YAML 1.2 has them, so that `no`, `1e3` and 2026-01-01 are what the program takes them for."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in (("bool", r"true|false", "tf"), ("int", r"-?(0|[1-9][0-9]*)", "-0123456789"),
                            ("float", r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]+)?", "-0123456789"),
                            ("null", r"~|null|", ["~", "n", ""])):
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(f"^(?:{pattern})$"), list(first))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


def maps(document, path=()):
    """The places of all maps of a document."""
    if isinstance(document, dict):
        yield path
        for key, value in document.items():
            yield from maps(value, path + (key,))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from maps(value, path + (index,))


def with_unknown_key(document, path):
    changed = copy.deepcopy(document)
    place = changed
    for step in path:
        place = place[step]
    place["colour"] = "red"
    return changed


def is_open(path) -> bool:
    """Maps whose keys are data, of any stack, kernel or feature; and a section that is a value of an axis."""
    return path[:1] == ("sweep",) and isinstance(path[-1], int) or path[-1:] in (("reached",), ("parameters",), ("domain",), ("intervals",)) or path[-2:-1] == ("parameters",)


def complaints(path: pathlib.Path, document, validator):
    for error in validator.iter_errors(document):
        yield f"{path}: {'.'.join(map(str, error.absolute_path))}: {error.message[:300]}"
    for place in maps(document):
        if not is_open(place) and validator.is_valid(with_unknown_key(document, place)):
            yield f"{path}: a key 'colour' in {'.'.join(map(str, place)) or 'the file'} is as the schema says"


def validator_of(program: str, kind: str):
    text = subprocess.run([program, "schema", kind], capture_output=True, text=True, check=True).stdout
    schema = json.loads(text)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    found = []
    for kind, folder in FOLDERS.items():
        validator = validator_of(program, kind)
        # Scenarios lie beside files of other kinds.
        files = [path for path in sorted((source / folder).rglob("*.yaml"))
                 if f"schema: dculab/{kind}/1" in path.read_text(encoding="utf-8")]
        if len(files) < 10:
            found.append(f"{folder}: has {len(files)} files of a {kind} only")
        for path in files:
            found += complaints(path, yaml.load(path.read_text(encoding="utf-8"), Loader), validator)
    validator = validator_of(program, "trace")
    traces = sorted((source / "tests/data/traces").rglob("*.jsonl.gz"))
    if len(traces) < 10:
        found.append(f"tests/data/traces: has {len(traces)} traces only")
    for path in traces:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in itertools.islice(lines, LINES):
                document = json.loads(line)
                found += complaints(path, document, validator)
                for run in document.get("batch", []):  # as older traces have it
                    run["needs_logits"] = run.pop("num_logits") > 0
                found += complaints(path, document, validator)
    for each in found:
        print(each)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
