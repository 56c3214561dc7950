"""Who may include whom: holds the include rule of docs/reference/architecture.md against the sources.

Usage: check_includes.py SOURCE_DIR. Prints every forbidden include as file:line and exits with 1 if there is any.
Includes between the folders of a folder go one way, too: a cycle is printed with the includes that make it.
"""

import collections
import pathlib
import re
import sys

# Folder -> folders of this project it may include, itself aside.
ALLOWED = {
    "core": set(),
    "fields": {"core"},
    "model": {"fields", "files", "core"},
    "lower": {"model", "core"},
    "sim": {"lower", "model", "fields", "core"},
    "kernels": {"lower", "core"},
    "files": {"core"},
    "engine": {"kernels", "lower", "model", "fields", "files", "core"},
    "config": {"sim", "model", "fields", "files", "core"},
    "study": {"config", "sim", "lower", "model", "engine", "fields", "files", "core"},
    "present": {"study", "config", "sim", "lower", "model", "engine", "fields", "files", "core"},
    "bindings": {"present", "study", "config", "sim", "lower", "model", "engine", "fields", "files", "core"},
    "cli": {"bindings", "present", "study", "config", "sim", "model", "engine", "fields", "files", "core"},
}

# Of these, arrows for one part of the folder only, (folder, the other one) -> path prefix.
PARTS = {
    ("model", "files"): "model/folder/",
    ("study", "engine"): "study/measure/",
    ("present", "engine"): "present/measure/",
    ("bindings", "engine"): "bindings/http/",
}

# Include prefix of a third party -> path prefixes of the files that may use it.
FENCES = {
    "yaml-cpp/": ["config/"],
    "sqlite3.h": ["config/profile/"],
    "zlib.h": ["files/"],
    "nlohmann/": ["fields/", "config/", "engine/checkpoint/", "present/output/report.hpp", "tests/"],
    "CLI/": ["cli/"],
    "nanobind/": ["bindings/python/"],
    "catch2/": ["tests/support/"],
    "hwy/": ["kernels/cpu/"],
    "Eigen/": ["kernels/reference/", "engine/quantize/", "engine/regroup/", "sim/calibration/"],
    "benchmark/": ["tests/bench/"],
    "pcre2.h": ["engine/tokenizer/"],
    "utf8proc.h": ["engine/tokenizer/", "engine/chat/"],
    "httplib.h": ["bindings/http/"],
    "boost/": ["kernels/gpu/host/"],
    "hip/": ["kernels/gpu/runtime.hpp"],
    "cuda": ["kernels/gpu/runtime.hpp"],
    "rocblas/": ["kernels/gpu/runtime_blas.hpp"],
    "cublas": ["kernels/gpu/runtime_blas.hpp"],
}

# Headers of the standard library that a folder must do without: it also compiles to WebAssembly, or has no policy.
FORBIDDEN_STANDARD = {
    "core": {"fstream", "filesystem", "thread", "mutex", "iostream"},
    "model": {"fstream", "filesystem", "thread", "mutex", "chrono", "iostream"},
    "lower": {"fstream", "filesystem", "thread", "mutex", "chrono", "iostream"},
    "sim": {"fstream", "filesystem", "chrono", "iostream"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".hpp", ".cpp", ".h"}


def includes_of(path: pathlib.Path):
    """(line, what it includes) of a source."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if match := INCLUDE.match(line):
            yield number, match.group(2)


def complaints(relative: str, includes: list[tuple[int, str]]):
    folder = relative.split("/")[0]
    for number, target in includes:
        place = f"{relative}:{number}: "
        other = target.split("/")[0]
        if folder in ALLOWED and other in ALLOWED and other != folder and other not in ALLOWED[folder]:
            yield place + f"{folder} must not include {other} ({target})"
        part = PARTS.get((folder, other), folder)
        if not relative.startswith(part):
            yield place + f"of {folder}, {part} alone may include {other} ({target})"
        measured = folder == "present" and target.startswith("study/measure/")
        if measured and not relative.startswith("present/measure/"):
            yield place + f"of present, present/measure/ alone may include {target}"
        for prefix, places in FENCES.items():
            if target.startswith(prefix) and not any(relative.startswith(each) for each in places):
                yield place + f"{target} is fenced to {', '.join(places)}"
        reads_files = relative.startswith(PARTS["model", "files"])
        if target in FORBIDDEN_STANDARD.get(folder, set()) and not (reads_files and target == "filesystem"):
            yield place + f"{folder} does without <{target}>"
        threads_fenced = folder == "sim" and target in {"thread", "mutex", "atomic"}
        if threads_fenced and not relative.startswith("sim/study/"):
            yield place + "threads in sim are for sim/study only"


def between_folders(sources: dict[str, list[tuple[int, str]]]):
    """Of each folder: (a folder in it, another one) -> the includes that lead from the first to the second. Files that
    lie directly in it are its own interface, which those folders may include and be included by."""
    arrows = collections.defaultdict(lambda: collections.defaultdict(list))
    for relative, includes in sources.items():
        parts = relative.split("/")
        for number, target in includes:
            others = target.split("/")
            shared = next((i for i, (one, other) in enumerate(zip(parts, others)) if one != other), 0)
            if 0 < shared < min(len(parts), len(others)) - 1:
                arrows["/".join(parts[:shared])][parts[shared], others[shared]].append(f"{relative}:{number}: {target}")
    return arrows


def way(arrows: dict[tuple[str, str], list[str]], start: str, end: str) -> list[str]:
    """The folders of a shortest way along the arrows, with both ends; empty where there is none."""
    ways = collections.deque([[start]])
    seen = {start}
    while ways:
        folders = ways.popleft()
        for one, other in arrows:
            if one != folders[-1] or other in seen:
                continue
            if other == end:
                return [*folders, other]
            seen.add(other)
            ways.append([*folders, other])
    return []


def cycles(sources: dict[str, list[tuple[int, str]]]):
    for folder, arrows in sorted(between_folders(sources).items()):
        told = set()  # arrows
        for one, other in sorted(arrows):
            folders = [one, *way(arrows, other, one)]
            if len(folders) == 1 or (one, other) in told:
                continue
            told.update(zip(folders, folders[1:]))
            yield f"{folder}: {' -> '.join(folders)}"
            for pair in zip(folders, folders[1:]):
                yield from (f"    {include}" for include in arrows[pair])


def main() -> int:
    root = pathlib.Path(sys.argv[1]).resolve()
    files = [
        path
        for folder in [*ALLOWED, "tests"]
        for path in sorted((root / folder).rglob("*"))
        if path.suffix in SUFFIXES
    ]
    if len(files) < 20:
        print(f"{root}: only {len(files)} sources found, the check would prove nothing")
        return 1
    sources = {path.relative_to(root).as_posix(): list(includes_of(path)) for path in files}
    found = [text for relative, includes in sources.items() for text in complaints(relative, includes)]
    found += cycles(sources)
    print("\n".join(found) if found else f"{len(files)} files, no forbidden include")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
