#!/usr/bin/env python3
"""Asks clang 19 how many waves per SIMD each GPU kernel can have, for tests/golden/occupancy/clang19.csv.

Usage: compiler_occupancy.py OUTPUT [TARGET...]      (default targets: gfx906 gfx908 gfx90a)

Needs Debian's clang-19, clang-tools-19, lld-19, llvm-19, libamdhip64-dev and rocm-device-libs. clang 15, which hipcc
uses, gets the figure wrong where LDS limits it (256 lanes with 16, 32 and 64 KiB: 10, 8, 4 instead of 4, 2, 1).
"""

import csv
import pathlib
import re
import subprocess
import sys
import tempfile

import kernel_resources

ROOT = pathlib.Path(__file__).resolve().parents[2]
LLVM = pathlib.Path("/usr/lib/llvm-19/bin")
DEVICE_LIBRARIES = "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode"
COLUMNS = ["target", "kernel", "threads", "vgprs", "agprs", "sgprs", "lds_bytes", "waves_per_simd"]


def compile_with_remarks(source, target, out):
    command = [LLVM / "clang++", "-x", "hip", f"--offload-arch={target}", "--cuda-device-only",
               "--no-gpu-bundle-output", "--rocm-path=/usr", f"--rocm-device-lib-path={DEVICE_LIBRARIES}",
               "-D__HIP_PLATFORM_AMD__", "-std=c++20", "-O3", f"-I{ROOT}", "-Rpass-analysis=kernel-resource-usage",
               "-c", source, "-o", out]
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def waves(remarks):
    """Demangled kernel -> waves per SIMD"""
    found = re.findall(r"Function Name: (\S+).*?Occupancy \[waves/SIMD\]: (\d+)", remarks, flags=re.S)
    names = kernel_resources.run(LLVM / "llvm-cxxfilt", *[name for name, _ in found]).splitlines() if found else []
    return {kernel_resources.short_name(name): int(count) for name, (_, count) in zip(names, found)}


def rows_of(source, target):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "code"
        occupancy = waves(compile_with_remarks(source, target, out))
        for row in kernel_resources.kernels(LLVM, out):
            yield {**{key: row[key] for key in COLUMNS[:-1]}, "waves_per_simd": occupancy[row["kernel"]]}


def main():
    output, targets = pathlib.Path(sys.argv[1]), sys.argv[2:] or ["gfx906", "gfx908", "gfx90a"]
    sources = sorted((ROOT / "kernels/gpu/launch").glob("*.cpp"))
    rows = [row for target in targets for source in sources for row in rows_of(source, target)]
    rows = sorted({(row["target"], row["kernel"]): row for row in rows}.values(),
                  key=lambda row: (row["target"], row["kernel"]))
    with output.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"{len(rows)} kernels -> {output}")


if __name__ == "__main__":
    main()
