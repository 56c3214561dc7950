#!/usr/bin/env python3
"""Reads what every compiled GPU kernel asks of a compute unit from its code object: registers, LDS, scratch, spills.

Usage: kernel_resources.py (--llvm DIR | --cuda DIR) (--output FILE | --check FILE) OBJECT...

OBJECT: object files of hipcc or nvcc, or bare code objects. --llvm holds llvm-objcopy, llvm-readelf, llvm-cxxfilt and
clang-offload-bundler, --cuda cuobjdump; c++filt is the system's. --output keeps FILE's rows of targets that were not
compiled. --check compares with FILE's rows of those that were, and exits with 1 when they are out of date, or a kernel
spills on gfx906.

NVIDIA's tools count registers of a lane as one kind, shared memory with the 1 KiB of each workgroup that the driver takes,
and of spills only the bytes of the stack.
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


TAKEN_BY_DRIVER = 1024  # bytes of shared memory of a workgroup; in what cuobjdump says of sm_90


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def short_name(demangled):
    """void dculab::kernels::gpu::hip_build::rms_norm_kernel<64>(...) -> rms_norm_kernel<64>"""
    name = re.sub(r"dculab::(kernels::gpu::)?((hip|cuda|host)_build::)?", "", demangled)
    name = re.sub(r"^(void|auto) ", "", name).replace("> >", ">>")
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


def cuda_kernels(cuda, path):
    """Of all targets in an object file or cubin of nvcc."""
    attributes = run(cuda / "cuobjdump", "--dump-elf", path)
    threads = {name: int(most, 16) for name, most in
               re.findall(r"\.nv\.info\.(\S+)(?:(?!\.nv\.info\.).)*?EIATTR_MAX_THREADS\s+Format:\s+\S+\s+Value:\s+(0x\w+)",
                          attributes, flags=re.S)}
    target = None
    for line in re.split(r"\n(?=arch = | ?Function )", run(cuda / "cuobjdump", "--dump-resource-usage", path)):
        if match := re.match(r"arch = (sm_\w+)", line):
            target = match[1]
        match = re.match(r" ?Function (\S+):\s+REG:(\d+) STACK:(\d+) SHARED:(\d+)", line)
        if not match or target is None:
            continue
        name, registers, stack, shared = match[1], *map(int, match.groups()[1:])
        shared += TAKEN_BY_DRIVER if target.startswith("sm_8") else 0
        yield dict.fromkeys(COLUMNS, 0) | {
            "target": target, "kernel": short_name(run("c++filt", name).strip()), "threads": threads[name],
            "vgprs": registers, "lds_bytes": shared, "scratch_bytes": stack, "vgpr_spills": -(-stack // 4)}


def hip_kernels(llvm, path):
    with tempfile.TemporaryDirectory() as folder:
        for code_object in code_objects(llvm, path, pathlib.Path(folder)):
            yield from kernels(llvm, code_object)


def table(args, kept):
    """Sorted rows, and the table with the lines of other targets in `kept`."""
    rows = []
    for path in args.objects:
        rows += cuda_kernels(args.cuda, path) if args.cuda else hip_kernels(args.llvm, path)
    # A kernel that two objects use stands in both.
    rows = sorted({(row["target"], row["kernel"]): row for row in rows}.values(),
                  key=lambda row: (row["target"], row["kernel"]))
    targets = {row["target"] for row in rows}
    others = [row for row in csv.DictReader(kept) if row["target"] not in targets]
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted(rows + others, key=lambda row: (row["target"], row["kernel"])))
    return rows, out.getvalue()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tools = parser.add_mutually_exclusive_group(required=True)
    tools.add_argument("--llvm", type=pathlib.Path)
    tools.add_argument("--cuda", type=pathlib.Path)
    goal = parser.add_mutually_exclusive_group(required=True)
    goal.add_argument("--output", type=pathlib.Path)
    goal.add_argument("--check", type=pathlib.Path)
    parser.add_argument("objects", nargs="+", type=pathlib.Path)
    args = parser.parse_args()

    file = args.output or args.check
    rows, text = table(args, file.read_text().splitlines() if file.exists() else [])
    if not rows:
        sys.exit("no GPU kernel was found in the objects")
    if args.output:
        args.output.write_text(text)
        print(f"{len(rows)} kernels -> {args.output}")
        return
    if args.check.read_text() != text:
        sys.exit(f"{args.check} is out of date: build the target kernel_resources and commit it")
    spilling = [row for row in rows if row["target"].startswith("gfx906") and row["vgpr_spills"] + row["scratch_bytes"]]
    if spilling:
        sys.exit("spills on gfx906: " + ", ".join(row["kernel"] for row in spilling))
    names = ", ".join(sorted({row["target"] for row in rows}))
    print(f"{len(rows)} kernels, table up to date for {names}, no spills on gfx906")


if __name__ == "__main__":
    main()
