"""check_stable.py, on a small tree: what is removed, changed or new is told, and only additions are accepted unasked."""

import json
import pathlib
import subprocess
import sys
import tempfile

SCRIPT = pathlib.Path(__file__).with_name("check_stable.py")
HEADER = """// A comment; with a semicolon
#pragma once
namespace dculab::study {
struct Answer {
  int first = 0;  // in tokens
  std::vector<int> more{};
  [[nodiscard]] bool ok() const { return first > 0; }
};
class Asker {
 public:
  explicit Asker(int count);
 private:
  int hidden_ = 0;
};
enum class Kind : int { one, two };
[[nodiscard]] Answer ask(const std::string& what, int times = 1);
}  // namespace dculab::study
"""
PACKAGE = '__all__ = ["ask"]\ndef ask(what: str, *, times: int = 1) -> Answer: ...\ndef hidden(): ...\n'
SCHEMA = {"properties": {"seconds": {"type": "number", "unit": "s"}, "bound": {"enum": ["DRAM", "L2"]}},
          "required": ["seconds"]}


def write(root: pathlib.Path, schema: dict, header: str, package: str) -> pathlib.Path:
    for path, text in {"study/answer/answer.hpp": header, "bindings/python/dculab/__init__.py": package,
                       "list.json": json.dumps({"schemas": [{"name": "predict"}]}), "predict.json": json.dumps(schema)}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "tests/tree/stable").mkdir(parents=True, exist_ok=True)
    program = root / "program"
    program.write_text(f'#!/bin/sh\nif [ "$2" = predict ]; then cat {root}/predict.json; else cat {root}/list.json; fi\n')
    program.chmod(0o755)
    return program


def check(program: pathlib.Path, root: pathlib.Path, *options: str):
    done = subprocess.run([sys.executable, SCRIPT, program, root, *options], capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        program = write(root, SCHEMA, HEADER, PACKAGE)
        code, told = check(program, root)
        assert code == 1 and "answers.txt: new: predict.seconds: number, s" in told, told
        assert check(program, root, "--accept") == (0, "")
        assert check(program, root) == (0, "")
        stable = root / "tests/tree/stable"
        assert (stable / "headers.txt").read_text() == "".join(
            f"study/answer/answer.hpp: {line}\n" for line in sorted([
                "struct Answer", "struct Answer: int first = 0", "struct Answer: std::vector<int> more{}",
                "struct Answer: [[nodiscard]] bool ok() const", "class Asker", "class Asker: explicit Asker(int count)",
                "enum class Kind : int", "enum class Kind : int: one", "enum class Kind : int: two",
                "[[nodiscard]] Answer ask(const std::string& what, int times = 1)"]))
        assert (stable / "python.txt").read_text() == "ask\nask() -> Answer\nask(*, times: int = 1)\nask(what: str)\n"

        changes = {
            "answers.txt: removed or changed: predict.bound = L2": (SCHEMA | {"properties": SCHEMA["properties"] | {"bound": {"enum": ["DRAM"]}}}, HEADER, PACKAGE),
            "answers.txt: removed or changed: predict.seconds: number, s": (SCHEMA | {"required": []}, HEADER, PACKAGE),
            "python.txt: removed or changed: ask(*, times: int = 1)": (SCHEMA, HEADER, PACKAGE.replace("times", "count")),
            "headers.txt: removed or changed: study/answer/answer.hpp: struct Answer: int first = 0": (SCHEMA, HEADER.replace("first", "last"), PACKAGE),
        }
        for message, tree in changes.items():
            write(root, *tree)
            code, told = check(program, root)
            assert code == 1 and message in told and "--accept" in told, told
            code, told = check(program, root, "--accept")
            assert code == 1 and message in told, told
            write(root, SCHEMA, HEADER, PACKAGE)
            assert check(program, root, "--accept-changes") == (0, "")
        write(root, SCHEMA, HEADER.replace("hidden_", "renamed_"), PACKAGE.replace("hidden", "renamed"))
        assert check(program, root) == (0, "")


if __name__ == "__main__":
    main()
