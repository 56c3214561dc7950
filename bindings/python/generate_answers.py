"""Writes the classes of the answers, from the schemas of their JSON.

Usage: generate_answers.py SCHEMAS OUTPUT. SCHEMAS has the JSON Schema of each command's document, by command. Every
object of them becomes a frozen dataclass: its keys are fields, with their types, what they mean and their units.
"""

import json
import keyword
import pathlib
import re
import sys
import textwrap

HEADER = '''"""The classes of the answers, made of the schemas of their JSON by bindings/python/generate_answers.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from dculab._rows import Interval, Part, Rows, as_is, interval, mapping, one_of, optional, part, rows, values
from dculab._answer import Answer

'''


def class_name(name: str) -> str:
    return "".join(word[:1].upper() + word[1:] for word in re.split(r"[^A-Za-z0-9]+", name) if word)


def attribute(key: str) -> str:
    name = re.sub(r"\W", "_", key)
    return name + "_" if keyword.iskeyword(name) else name


class Type:
    """What a schema is in Python: how it is written, and what makes it of the value that JSON has."""

    def __init__(self, text: str, reader: str):
        self.text = text
        self.reader = reader


SIMPLE = {"string": "str", "number": "float", "integer": "int", "boolean": "bool"}


def optional(kind: Type) -> Type:
    return Type(f"{kind.text} | None", f"optional({kind.reader})" if kind.reader != "as_is" else "as_is")


def union(kinds: list[Type]) -> Type:
    if all(kind.reader == "as_is" for kind in kinds):
        return Type(" | ".join(dict.fromkeys(kind.text for kind in kinds)), "as_is")
    return Type(" | ".join(kind.text for kind in kinds), f"one_of({', '.join(kind.reader for kind in kinds)})")


def type_of(schema: dict) -> Type:
    if "$ref" in schema:
        name = class_name(schema["$ref"].removeprefix("#/$defs/"))
        return Type(name, f"part(lambda: {name})")
    if "const" in schema:
        return Type("str", "as_is")
    if "anyOf" in schema:
        null = {"type": "null"}
        kinds = [type_of(each) for each in schema["anyOf"] if each != null]
        kind = kinds[0] if len(kinds) == 1 else union(kinds)
        return optional(kind) if null in schema["anyOf"] else kind
    kind = schema["type"]
    if isinstance(kind, list):  # [..., "null"]
        return optional(type_of({**schema, "type": kind[0]}))
    if kind == "array":
        return list_type(schema)
    if kind == "object":
        items = type_of(schema["additionalProperties"])
        return Type(f"Mapping[str, {items.text}]", f"mapping({items.reader})")
    return Type(SIMPLE[kind], "as_is")


def list_type(schema: dict) -> Type:
    items = type_of(schema["items"])
    if schema.get("maxItems") == 2:
        return Type("Interval", "interval")
    if items.reader.startswith(("part", "one_of")):
        return Type(f"Rows[{items.text}]", f"rows({items.reader})")
    return Type(f"tuple[{items.text}, ...]", f"values({items.reader})")


def told(schema: dict) -> str:
    text = schema.get("description", "")
    if unit := schema.get("unit"):
        text += f" [{unit}]"
    if words := schema.get("enum"):
        text += f" ({', '.join('null' if word is None else word for word in words)})"
    return text.strip()


def field_lines(key: str, schema: dict, is_required: bool) -> list[str]:
    kind = type_of(schema)
    text = kind.text if is_required or kind.text.endswith("| None") else kind.text + " | None"
    default = "" if is_required else "default=None, "
    metadata = f"{{'key': {key!r}, 'unit': {schema.get('unit')!r}, 'doc': {schema.get('description', '')!r}}}"
    lines = [f"    {attribute(key)}: {text} = field({default}metadata={metadata})"]
    return lines + docstring(told(schema), 4)


def docstring(text: str, indent: int) -> list[str]:
    if not text:
        return []
    quoted = text.replace("\\", "\\\\").replace('"""', "'''")
    lines = textwrap.wrap(quoted, 116 - indent)
    blanks = " " * indent
    if len(lines) == 1:
        return [f'{blanks}"""{lines[0]}"""']
    return [f'{blanks}"""{lines[0]}', *(blanks + line for line in lines[1:]), f'{blanks}"""']


def class_lines(name: str, schema: dict, base: str) -> list[str]:
    lines = ["@dataclass(frozen=True, kw_only=True, repr=False)", f"class {name}({base}):"]
    lines += docstring(schema.get("description", ""), 4) + [""]
    readers = []
    for key, value in schema["properties"].items():
        lines += field_lines(key, value, key in schema["required"])
        readers.append(f"    {key!r}: ({attribute(key)!r}, {type_of(value).reader}),")
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        lines += [f"    others: Mapping[str, {type_of(others).text}] = field(default_factory=dict)"]
        lines += docstring("Keys that are data, and their values.", 4)
    return [*lines, "", "", f"{name}._readers = {{", *readers, "}",
            f"{name}._required = frozenset({sorted(schema['required'])!r})",
            *([f"{name}._others = staticmethod({type_of(others).reader})"] if isinstance(others, dict) else []), "", ""]


def documents_of(command: str, schema: dict):
    """(class, schema) of every object that a command may answer with."""
    if "anyOf" not in schema:
        yield class_name(command) + "Answer", schema
        return
    for each in schema["anyOf"]:
        yield class_name(each["title"]) + "Answer", each


def module_text(schemas: dict) -> str:
    parts: dict[str, dict] = {}
    for schema in schemas.values():
        for name, definition in schema.get("$defs", {}).items():
            if parts.setdefault(name, definition) != definition:
                raise SystemExit(f"two structs are named {name}")
    lines, table = [], []
    names = [class_name(name) for name in parts]
    names += [name for command, schema in schemas.items() for name, _ in documents_of(command, schema)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SystemExit(f"several classes would be named {', '.join(sorted(twice))}")
    for name, definition in parts.items():
        lines += class_lines(class_name(name), definition, "Part")
    for command, schema in schemas.items():
        documents = list(documents_of(command, schema))
        for name, document in documents:
            lines += class_lines(name, document, "Answer")
        names = [name for name, _ in documents]
        if len(names) > 1:
            lines += [f"{class_name(command)}Answer = Union[{', '.join(names)}]", "", ""]
        table.append(f"    {command!r}: ({', '.join(names)},),")
    classes = ["# By command.", "ANSWERS: dict[str, tuple[type[Answer], ...]] = {", *table, "}", ""]
    return HEADER + "\n" + "\n".join(lines + classes)


def main() -> None:
    schemas = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    pathlib.Path(sys.argv[2]).write_text(module_text(schemas), encoding="utf-8")


if __name__ == "__main__":
    main()
