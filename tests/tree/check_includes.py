"""Who may include whom: holds the include rule of docs/reference/architecture.md against the sources.

Usage: check_includes.py SOURCE_DIR. Prints every forbidden include as file:line and exits with 1 if there is any.
"""

import pathlib
import re
import sys

# Folder -> folders of this project it may include, itself aside.
ALLOWED = {
    "core": set(),
    "fields": {"core"},
    "model": {"fields", "core"},
    "lower": {"model", "core"},
    "sim": {"lower", "model", "core"},
    "kernels": {"lower", "core"},
    "files": {"core"},
    "engine": {"kernels", "lower", "model", "fields", "files", "core"},
    "config": {"sim", "model", "fields", "files", "core"},
    "study": {"config", "sim", "lower", "model", "engine", "fields", "files", "core"},
    "present": {"study", "config", "sim", "lower", "model", "engine", "fields", "files", "core"},
    "cli": {"present", "study", "config", "sim", "model", "engine", "fields", "files", "core"},
}

# Include prefix of a third party -> path prefixes of the files that may use it.
FENCES = {
    "yaml-cpp/": ["config/"],
    "nlohmann/": ["fields/", "config/", "engine/checkpoint/", "present/output/report.hpp", "tests/"],
    "CLI/": ["cli/"],
    "catch2/": ["tests/support/"],
    "hwy/": ["kernels/cpu/"],
    "Eigen/": ["kernels/reference/", "engine/quantize/", "engine/regroup/", "sim/calibration/"],
    "benchmark/": ["tests/bench/"],
    "pcre2.h": ["engine/tokenizer/"],
    "utf8proc.h": ["engine/tokenizer/"],
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


def complaints(root: pathlib.Path, path: pathlib.Path):
    relative = path.relative_to(root).as_posix()
    folder = relative.split("/")[0]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        match = INCLUDE.match(line)
        if not match:
            continue
        target = match.group(2)
        place = f"{relative}:{number}: "
        other = target.split("/")[0]
        if folder in ALLOWED and other in ALLOWED and other != folder and other not in ALLOWED[folder]:
            yield place + f"{folder} must not include {other} ({target})"
        for prefix, places in FENCES.items():
            if target.startswith(prefix) and not any(relative.startswith(each) for each in places):
                yield place + f"{target} is fenced to {', '.join(places)}"
        if target in FORBIDDEN_STANDARD.get(folder, set()):
            yield place + f"{folder} does without <{target}>"
        threads_fenced = folder == "sim" and target in {"thread", "mutex", "atomic"}
        if threads_fenced and not relative.startswith("sim/study/"):
            yield place + "threads in sim are for sim/study only"


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
    found = [text for path in files for text in complaints(root, path)]
    print("\n".join(found) if found else f"{len(files)} files, no forbidden include")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
