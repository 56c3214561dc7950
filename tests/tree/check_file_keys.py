"""Do the reference pages say of every key of a file what the program says? Compares their tables with its schemas.

Usage: check_file_keys.py PROGRAM SOURCE_DIR [--update]. A table follows a line `<!-- keys: KIND [PREFIX...] -->`, where
KIND is machine, stack, scenario or trace (`PROGRAM schema KIND`). It has the columns key, value, default and meaning, and one
row for each key that begins with one of its prefixes; of several tables the one with the longest such prefix has it.
Prints each key that is missing, that there is not, or whose value or default is another, and exits with 1 if there is
any. --update rewrites the tables and keeps the meanings that stand there; of a new key it takes the schema's.
"""

import json
import pathlib
import re
import subprocess
import sys

PAGES = {"machine": ["hwmodels/SCHEMA.md"], "stack": ["stacks/SCHEMA.md"],
         "scenario": ["docs/reference/scenario-file.md"], "trace": ["docs/reference/trace-file.md"]}
HEAD = ["| key | value | default | meaning |", "|---|---|---|---|"]
MARK = re.compile(r"<!-- keys: (\w+)((?: \S+)*) -->")
DIMENSIONS = {"s": "time", "B": "size", "B/s": "bandwidth", "FLOP/s": "FLOP rate", "FLOP": "FLOP", "Hz": "frequency",
              "W": "power"}
MANY = 8  # keys of one map that are alike are one row


def number(value) -> str:
    return f"{value:,}" if isinstance(value, int) and abs(value) < 1e9 else f"{value:g}"


def bounds(schema: dict) -> str:
    """", 1 to 256", or nothing."""
    low, above, high = (schema.get(key) for key in ("minimum", "exclusiveMinimum", "maximum"))
    if low is not None and high is not None:
        return f", {number(low)} to {number(high)}"
    if above is not None and high is not None:
        return f", above {number(above)}, to {number(high)}"
    if above is not None:
        return f", above {number(above)}"
    return f", at least {number(low)}" if low is not None else f", at most {number(high)}" if high is not None else ""


def is_map(schema: dict) -> bool:
    return schema.get("type") == "object"


def value(schema: dict) -> str:
    """What a key may be, in a few words: "time, 0 to 1,000 s"."""
    if "anyOf" in schema and not is_map(schema):
        return " or ".join(dict.fromkeys(value(each) for each in schema["anyOf"]))
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    kind, unit = schema.get("type"), schema.get("unit", "")
    if is_map(schema):
        return "map"
    if kind == "array":
        return "list of " + value(schema["items"])
    if kind == "boolean":
        return "`true`, `false`"
    if isinstance(kind, list):
        return "any"
    if kind == "string":
        return f"{DIMENSIONS[unit]}{bounds(schema)} {unit}" if "pattern" in schema else "text"
    what = "whole number" if kind == "integer" else "number"
    if unit == "share":
        what = "share"
    return what + bounds(schema) + (f" {unit}" if unit and unit not in ("share", "count") else "")


def default(schema: dict, required: bool) -> str:
    if required:
        return "required"
    if "absent" in schema:
        return schema["absent"]
    if "default" not in schema:
        return ""
    stated = schema["default"]
    return f"`{json.dumps(stated) if not isinstance(stated, str) else stated}`"


def is_figure(schema: dict) -> bool:
    return {"value", "kind", "source"} <= set(schema.get("properties", {}))


def without(schema: dict) -> dict:
    return {key: each for key, each in schema.items() if key not in ("description", "key")}


def keys_of(schema: dict) -> list[tuple[str, dict, bool]]:
    """The keys of a map: how they are shown, their schemas, and whether they are required."""
    needed = set(schema.get("required", []))
    named = [(key, each, key in needed) for key, each in schema.get("properties", {}).items()]
    return named + [(each.get("key", "*"), each, False) for each in schema.get("patternProperties", {}).values()]


def rows(schema: dict, path: str = ""):
    """(key, value, default, meaning) of every key."""
    keys = keys_of(schema)
    dotted = any("." in shown or shown == "<key>" for shown, each, _ in keys)
    names = frozenset(shown for shown, _, _ in keys)
    if path and (dotted or alike_but_name(keys)):
        others = [(shown, each) for shown, each, _ in keys if shown != "name"]
        what = "a figure" if dotted and others[0][0] != "<key>" else value(others[0][1])
        if not dotted:
            what += ": " + " ".join(f"`{shown}`" for shown, _ in others)
        yield path[:-1] + ".*", what, "", others[0][1].get("description", "")
        return
    for shown, each, required in keys:
        yield from row(path + shown, each, required, names)


def documented(schema: dict) -> list[tuple]:
    """The rows of a file, or of all kinds of lines that it has."""
    return [each for form in ([schema] if is_map(schema) else schema["anyOf"]) for each in rows(form)]


def alike_but_name(keys) -> bool:
    others = [each for shown, each, _ in keys if shown != "name"]
    return len(others) >= MANY and all(without(each) == without(others[0]) for each in others)


def row(key: str, schema: dict, required: bool, siblings: frozenset):
    meaning = schema.get("description", "")
    if is_figure(schema):
        yield key, value(schema["properties"]["value"]), default(schema, required), meaning
        return
    forms = schema["anyOf"] if "anyOf" in schema and not is_map(schema) else [schema]
    maps = [each for each in forms if is_map(each)]
    lists = [each["items"] for each in forms if each.get("type") == "array" and is_map(each["items"])]
    if maps and frozenset(shown for shown, _, _ in keys_of(maps[0])) <= siblings:
        yield key, "map with keys that stand beside it", default(schema, required), meaning
        return
    if len(maps) + len(lists) < len(forms):
        yield key, value(schema), default(schema, required), meaning
    for each in maps:
        yield from rows(each, key + ".")
    for each in lists:
        yield from rows(each, key + "[].")


def tables(lines: list[str]):
    """(kind, prefixes, first line of the table, line behind it) of each."""
    for index, line in enumerate(lines):
        if found := MARK.fullmatch(line.strip()):
            begin = index + 1
            while begin < len(lines) and not lines[begin].strip():
                begin += 1
            end = begin
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            yield found[1], found[2].split() or [""], begin, end


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split(" | ")] if line.startswith("|") else []


def placed(key: str, prefixes: list[list[str]]) -> int:
    """Of which table the key is: an index."""
    lengths = [max((len(each) for each in some if key.startswith(each)), default=-1) for some in prefixes]
    return max(range(len(prefixes)), key=lambda index: lengths[index])


def check(path: pathlib.Path, kind: str, wanted: list[tuple], update: bool) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [each for each in tables(lines) if each[0] == kind]
    if not found:
        return [f"{path}: has no table after a line <!-- keys: {kind} -->"]
    prefixes = [each[1] for each in found]
    complaints = []
    for index in reversed(range(len(found))):
        _, _, begin, end = found[index]
        there = {cell[0].strip("`"): cell for cell in map(cells, lines[begin + 2:end]) if cell}
        mine = [each for each in wanted if placed(each[0], prefixes) == index]
        new = []
        for key, what, otherwise, meaning in mine:
            cell = there.get(key)
            if cell is None:
                complaints.append(f"{path}: has no row for `{key}`: {what}, default {otherwise or 'none'}")
            elif cell[1:3] != [what, otherwise]:
                complaints.append(f"{path}: `{key}` is {what}, default {otherwise or 'none'}, not {' | '.join(cell[1:3])}")
            kept = cell[3] if cell and len(cell) > 3 else meaning
            new.append(f"| `{key}` | {what} | {otherwise} | {kept} |")
        for key in there.keys() - {each[0] for each in mine}:
            complaints.append(f"{path}: `{key}` is no key of a {kind} file, or stands in another table")
        if update:
            lines[begin:end] = HEAD + new
    if update:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return []
    return sorted(complaints)


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    complaints = []
    for kind, pages in PAGES.items():
        text = subprocess.run([program, "schema", kind], capture_output=True, text=True, check=True).stdout
        for page in pages:
            complaints += check(source / page, kind, documented(json.loads(text)), "--update" in sys.argv[3:])
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
