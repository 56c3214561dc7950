#!/usr/bin/env python3
"""Reads what every compiled GPU kernel asks of a compute unit from its code object: registers, LDS, scratch, spills.

Usage: kernel_resources.py --llvm DIR (--output FILE | --check FILE) OBJECT...

OBJECT: object files of hipcc, or bare code objects. DIR holds llvm-objcopy, llvm-readelf, llvm-cxxfilt and
clang-offload-bundler. --check compares with FILE's rows of the targets that were compiled, and exits with 1 when they are
out of date, or a kernel spills on gfx906.
"""

import argparse
import csv
import io
import pathlib
import re
import subprocess
import sys
import tempfile

COLUMNS = ["target", "kernel", "threads", "vgprs", "agprs", "sgprs", "lds_bytes", "scratch_bytes", "vgpr_spills",
           "sgpr_spills"]
KEYS = {
    ".max_flat_workgroup_size": "threads",
    ".vgpr_count": "vgprs",
    ".agpr_count": "agprs",
    ".sgpr_count": "sgprs",
    ".group_segment_fixed_size": "lds_bytes",
    ".private_segment_fixed_size": "scratch_bytes",
    ".vgpr_spill_count": "vgpr_spills",
    ".sgpr_spill_count": "sgpr_spills",
}


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def short_name(demangled):
    """void dculab::kernels::gpu::hip_build::rms_norm_kernel<64>(...) -> rms_norm_kernel<64>"""
    name = re.sub(r"dculab::(kernels::gpu::)?((hip|cuda|host)_build::)?", "", demangled)
    name = re.sub(r"^(void|auto) ", "", name)
    depth = 0
    for place, letter in enumerate(name):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "(" and depth == 0:
            return name[:place]
    return name


def code_objects(llvm, path, folder):
    """The (file, target) pairs of the GPU code in an object file; the file itself if it is bare GPU code."""
    if "amdgcn" in run(llvm / "llvm-readelf", "--notes", path):
        yield path
        return
    bundle = folder / "bundle"
    subprocess.run([llvm / "llvm-objcopy", f"--dump-section=.hip_fatbin={bundle}", path, "/dev/null"],
                   capture_output=True)
    if not bundle.exists():
        return
    for target in run(llvm / "clang-offload-bundler", "--list", "--type=o", f"--input={bundle}").split():
        if target.startswith("hip"):
            out = folder / target
            run(llvm / "clang-offload-bundler", "--unbundle", "--type=o", f"--input={bundle}", f"--targets={target}",
                f"--output={out}")
            yield out
    bundle.unlink()


def kernels(llvm, code_object):
    notes = run(llvm / "llvm-readelf", "--notes", code_object)
    match = re.search(r"amdhsa\.target:\s+'?amdgcn-amd-amdhsa--([\w:+-]+)", notes)
    if not match:
        return
    for text in re.split(r"\n  - (?=\.)", notes)[1:]:
        values = dict(re.findall(r"^\s*(\.\w+):[ \t]+(\S+)$", text, flags=re.M))
        if ".name" not in values:
            continue
        row = {column: int(values.get(key, 0)) for key, column in KEYS.items()}
        row["target"] = match.group(1)
        row["kernel"] = short_name(run(llvm / "llvm-cxxfilt", values[".name"]).strip())
        yield row


def table(llvm, objects):
    rows = []
    for path in objects:
        with tempfile.TemporaryDirectory() as folder:
            for code_object in code_objects(llvm, path, pathlib.Path(folder)):
                rows += kernels(llvm, code_object)
    # A kernel that two objects use stands in both.
    rows = sorted({(row["target"], row["kernel"]): row for row in rows}.values(),
                  key=lambda row: (row["target"], row["kernel"]))
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return rows, out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llvm", type=pathlib.Path, required=True)
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--output", type=pathlib.Path)
    goal.add_argument("--check", type=pathlib.Path)
    parser.add_argument("objects", nargs="+", type=pathlib.Path)
    args = parser.parse_args()

    rows, text = table(args.llvm, args.objects)
    if not rows:
        sys.exit("no GPU kernel was found in the objects")
    if args.output:
        args.output.write_text(text)
        print(f"{len(rows)} kernels -> {args.output}")
        return
    targets = {row["target"] for row in rows} | {"target"}
    committed = [line for line in args.check.read_text().splitlines() if line.split(",")[0] in targets]
    if committed != text.splitlines():
        sys.exit(f"{args.check} is out of date: build the target kernel_resources and commit it")
    spilling = [row for row in rows if row["target"].startswith("gfx906") and row["vgpr_spills"] + row["scratch_bytes"]]
    if spilling:
        sys.exit("spills on gfx906: " + ", ".join(row["kernel"] for row in spilling))
    names = ", ".join(sorted(targets - {"target"}))
    print(f"{len(rows)} kernels, table up to date for {names}, no spills on gfx906")


if __name__ == "__main__":
    main()
