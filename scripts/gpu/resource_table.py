#!/usr/bin/env python3
"""Prints what the GPU kernels ask of a compute unit, and how many waves that leaves per SIMD, as a Markdown table.

Usage: resource_table.py [--target gfx906] [--each] [--check FILE | --update FILE]

One row for all instances of a kernel, or with --each one per instance, from lower/dculab_gpu/compiled_kernels.csv. --update
puts the table into FILE between the lines <!-- resource-table --> and <!-- /resource-table -->, --check compares.
"""

import argparse
import csv
import pathlib
import re
import sys

TABLE = pathlib.Path(__file__).resolve().parents[2] / "lower/dculab_gpu/compiled_kernels.csv"
MARKED = re.compile(r"(?<=<!-- resource-table -->\n\n).*?(?=\n<!-- /resource-table -->)", re.S)
# Registers per lane, their granule, waves per SIMD at most: those of the targets' machine files.
REGISTERS = {"gfx906": (256, 4, 10), "gfx908": (256, 4, 10), "gfx90a": (512, 8, 8)}
WAVE, SIMDS, LDS, LDS_GRANULE, MOST_WORKGROUPS = 64, 4, 64 * 1024, 512, 16


def up(value, granule):
    return -(-value // granule) * granule


def waves_per_simd(row):
    """lower/occupancy.hpp: the waves of the workgroups that a compute unit holds, per SIMD."""
    file_size, granule, most = REGISTERS[row["target"]]
    sgprs = int(row["sgprs"])
    by_sgprs = 10 if sgprs <= 80 else 9 if sgprs <= 88 else 8 if sgprs <= 100 else 7
    by_registers = min(most, by_sgprs, file_size // max(granule, up(int(row["vgprs"]), granule)))
    waves = up(int(row["threads"]), WAVE) // WAVE
    workgroups = min(SIMDS * by_registers // waves, MOST_WORKGROUPS)
    if int(row["lds_bytes"]) > 0:
        workgroups = min(workgroups, LDS // up(int(row["lds_bytes"]), LDS_GRANULE))
    return workgroups * waves / SIMDS


def kernel(name):
    """Instances under one name; those of decode attention whose lanes work in teams, and those for several tokens, under
    names of their own."""
    kind = ", teams" if "LaneTeam)1" in name else ", several tokens" if "SeveralTokensTile" in name else ""
    return name.split("<")[0] + kind


def span(values, form="{:g}"):
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low}–{high}"


def markdown(rows, of):
    groups = {}
    for row in rows:
        groups.setdefault(of(row["kernel"]), []).append(row)
    yield "| kernel | instances | lanes | VGPRs | SGPRs | LDS KiB | waves per SIMD | spilled VGPRs |"
    yield "|---|---|---|---|---|---|---|---|"
    for name, group in sorted(groups.items()):
        column = {key: [int(row[key]) for row in group] for key in ("threads", "vgprs", "sgprs", "lds_bytes", "vgpr_spills")}
        yield (f"| `{name}` | {len(group)} | {span(column['threads'])} | {span(column['vgprs'])} | {span(column['sgprs'])} | "
               f"{span([each / 1024 for each in column['lds_bytes']], '{:.1f}')} | "
               f"{span([waves_per_simd(row) for row in group])} | {span(column['vgpr_spills'])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=REGISTERS, default="gfx906")
    parser.add_argument("--each", action="store_true")
    goal = parser.add_mutually_exclusive_group()
    goal.add_argument("--check", type=pathlib.Path)
    goal.add_argument("--update", type=pathlib.Path)
    args = parser.parse_args()

    with open(TABLE, encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["target"] == args.target]
    table = "".join(line + "\n" for line in markdown(rows, str if args.each else kernel))
    document = args.check or args.update
    if document is None:
        print(table, end="")
        return
    text = document.read_text(encoding="utf-8")
    found = MARKED.search(text)
    if found is None:
        sys.exit(f"{document} has no lines <!-- resource-table --> and <!-- /resource-table --> around a table")
    if args.update:
        document.write_text(text[: found.start()] + table + text[found.end() :], encoding="utf-8")
    elif found.group() != table:
        sys.exit(f"the table in {document} is out of date: scripts/gpu/resource_table.py --update {document}")


if __name__ == "__main__":
    main()
