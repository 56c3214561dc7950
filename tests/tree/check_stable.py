"""Is what docs/reference/stability.md promises still there? Compares the lists in tests/tree/stable with what the program,
the Python package and the headers say now.

Usage: check_stable.py PROGRAM SOURCE_DIR [--accept | --accept-changes]. The lists have one promise a line: answers.txt the
keys of JSON answers, files.txt those of files that people write, python.txt what `import dculab` has with the parameters of functions, and
headers.txt the declarations of dculab::study. Exits with 1 if a line is gone (something was removed or changed) or new.
--accept adds new lines, and still refuses removals. --accept-changes writes the lists anew: a release that does so says
under "Before you upgrade" in CHANGELOG.md what its users must change.
"""

import ast
import json
import pathlib
import re
import subprocess
import sys

FILES = {"machine", "stack", "scenario", "trace"}
HEADERS = ["study/answer/*.hpp", "study/decide/serving_recommendation.hpp", "study/diagnose/diagnosis.hpp",
           "study/scenario/locate.hpp", "study/scenario/load_question.hpp", "study/scenario/resolve.hpp",
           "study/scenario/step_question.hpp", "study/validate/validation.hpp"]


# Keys of documents, from their JSON Schemas.

def type_text(schema: dict) -> str:
    if "$ref" in schema:
        return schema["$ref"].removeprefix("#/$defs/")
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return " or ".join(type_text(each) for each in schema["anyOf"])
    kind = schema.get("type", "string" if "enum" in schema else "object")
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map to {type_text(schema['additionalProperties'])}"
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds:
        return f"list of {type_text(schema['items'])}"
    return " or ".join(kinds) + (f", {schema['unit']}" if "unit" in schema else "")


def object_lines(name: str, schema: dict):
    """"op.seconds: number, s", "op.bound: string", "op.bound = compute"."""
    for key, value in schema.get("properties", {}).items():
        always = "" if key in schema.get("required", []) else " (where there is one)"
        yield f"{name}.{key}: {type_text(value)}{always}"
        for word in value.get("enum", []):
            yield f"{name}.{key} = {word}"
        yield from object_lines(f"{name}.{key}", value)
    for index, each in enumerate(schema.get("anyOf", [])):
        if "properties" in each:
            yield from object_lines(each.get("title", f"{name}[{index}]"), each)


def document_lines(documents: dict):
    for name, schema in documents.items():
        yield from object_lines(name, schema)
        for part, definition in schema.get("$defs", {}).items():
            yield from object_lines(part, definition)


# Parameters of functions, from the source of the Python package.

def function_lines(name: str, function):
    parameters = function.args
    defaults = [None] * (len(parameters.args) - len(parameters.defaults)) + parameters.defaults
    pairs = [*zip(parameters.args, defaults), *zip(parameters.kwonlyargs, parameters.kw_defaults)]
    keywords = {each.arg for each in parameters.kwonlyargs}
    for parameter, default in pairs:
        if parameter.arg in ("self", "cls"):
            continue
        kind = f": {ast.unparse(parameter.annotation)}" if parameter.annotation else ""
        value = f" = {ast.unparse(default)}" if default is not None else ""
        yield f"{name}({'*, ' if parameter.arg in keywords else ''}{parameter.arg}{kind}{value})"
    yield f"{name}() -> {ast.unparse(function.returns) if function.returns else 'Any'}"


def class_lines(name: str, node: ast.ClassDef, classes: dict):
    """Also what it has of its base classes here."""
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and (member.name == "__init__" or not member.name.startswith("_")):
            yield from function_lines(f"{name}.{member.name}", member)
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in classes:
            yield from class_lines(name, classes[base.id], classes)


def package_lines(package: pathlib.Path):
    nodes = [node for path in sorted(package.glob("*.py")) for node in ast.parse(path.read_text(encoding="utf-8")).body]
    exported = next(ast.literal_eval(node.value) for node in nodes
                    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
    classes = {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
    for name in exported:
        yield name
        if name in classes:
            yield from class_lines(name, classes[name], classes)
        if name in functions:
            yield from function_lines(name, functions[name])


# Declarations, from the text of headers.

SCOPE = re.compile(r"^(?:template\s*<[^{]*>\s*)?(?:namespace|struct|class|enum(?: class)?)\b[^(=]*$")


def closing(text: str, opened: int) -> int:
    depth = 0
    for at in range(opened, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("a brace is not closed")


def declarations(text: str, scope: str = ""):
    """"Prediction: StepPlan plan" of every public declaration, without bodies."""
    statement, at, is_public = "", 0, not scope.startswith("class ")
    while at < len(text):
        letter = text[at]
        head = " ".join(statement.split())
        for label in ("public:", "private:", "protected:"):
            if letter == ":" and head + ":" == label:
                is_public, statement, letter = label == "public:", "", ""
        if letter == "{":
            end = closing(text, at)
            body, at = text[at + 1:end], end
            if SCOPE.match(head):
                inner = "" if head.startswith("namespace") else head
                if inner and is_public:
                    yield inner
                yield from (f"{inner}: {word}" for word in enumerators(body)) if "enum" in head else declarations(body, inner)
                statement = ""
            elif re.search(r"\)( const| noexcept| override)*$", head):  # a body
                if is_public:
                    yield f"{scope}: {head}" if scope else head
                statement = ""
            else:
                statement += "{" + " ".join(body.split()) + "}"
        elif letter == ";":
            if head and is_public:
                yield f"{scope}: {head}" if scope else head
            statement = ""
        else:
            statement += letter
        at += 1


def enumerators(body: str):
    return [" ".join(word.split()) for word in body.split(",") if word.strip()]


def header_lines(path: pathlib.Path, root: pathlib.Path):
    text = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
    text = re.sub(r"^#.*$", "", text, flags=re.M)
    for line in declarations(text):
        yield f"{path.relative_to(root)}: {line}"


# The lists, and what they were.

def schema_of(program: str, *name: str):
    return subprocess.run([program, "schema", *name], stdout=subprocess.PIPE, check=True, text=True, encoding="utf-8").stdout


def lists_of(program: str, root: pathlib.Path) -> dict:
    names = [each["name"] for each in json.loads(schema_of(program, "--format", "json"))["schemas"]]
    documents = {name: json.loads(schema_of(program, name)) for name in names}
    return {
        "answers.txt": document_lines({name: each for name, each in documents.items() if name not in FILES}),
        "files.txt": document_lines({name: each for name, each in documents.items() if name in FILES}),
        "python.txt": package_lines(root / "bindings/python/dculab"),
        "headers.txt": (line for glob in HEADERS for path in sorted(root.glob(glob)) for line in header_lines(path, root)),
    }


def main(program: str, source: str, *options: str) -> int:
    root = pathlib.Path(source)
    problems = []
    for name, lines in lists_of(program, root).items():
        file = root / "tests/tree/stable" / name
        before = set(file.read_text(encoding="utf-8").splitlines()) if file.exists() else set()
        now = set(lines)
        gone, new = before - now, now - before
        if "--accept-changes" in options:
            gone, before = set(), now
        elif "--accept" in options:
            before |= new
        if options:
            file.write_text("".join(f"{line}\n" for line in sorted(before)), encoding="utf-8")
            new = set()
        problems += [f"{name}: removed or changed: {line}" for line in sorted(gone)]
        problems += [f"{name}: new: {line}" for line in sorted(new)]
    for problem in problems:
        print(problem)
    if problems:
        print("additions: python3 tests/tree/check_stable.py PROGRAM . --accept; for the rest see docs/reference/stability.md")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
