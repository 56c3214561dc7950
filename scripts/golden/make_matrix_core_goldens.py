"""Writes tests/golden/kernels/matrix_cores.txt: where lanes hold the matrices of AMD's MFMA instructions.

A line is the instruction's shape and values, the matrix, the number of a row, and for each column of the row the lane and
which of the lane's values of that matrix it is: "32X32X8F16 A 0: 0.0 0.1 0.2 0.3 32.0 ...". They are what AMD's Matrix
Instruction Calculator says.

    pip install tabulate==0.10.0 typing_extensions
    git clone https://github.com/ROCm/amd_matrix_instruction_calculator && git -C amd_matrix_instruction_calculator checkout 2ef9189
    python scripts/golden/make_matrix_core_goldens.py amd_matrix_instruction_calculator/matrix_calculator.py
"""

import pathlib
import re
import subprocess
import sys

OUTPUT = pathlib.Path(__file__).parents[2] / "tests/golden/kernels/matrix_cores.txt"
INSTRUCTIONS = [("cdna1", "32x32x8f16"), ("cdna1", "16x16x16f16"), ("cdna1", "32x32x4bf16"), ("cdna1", "16x16x8bf16"),
                ("cdna2", "32x32x8bf16_1k"), ("cdna2", "16x16x16bf16_1k")]


def place(cell):
    """v1{33}.[31:16], of two values in a register -> 33.3; v1{33}, of one -> 33.1"""
    register, lane, low = re.fullmatch(r"v(\d+)\{(\d+)\}(?:\.\[\d+:(\d+)\])?", cell).groups()
    return f"{lane}.{register if low is None else 2 * int(register) + int(low) // 16}"


def main():
    lines = []
    for architecture, instruction in INSTRUCTIONS:
        for matrix in "ABD":
            said = subprocess.run([sys.executable, sys.argv[1], "-a", architecture, "-i", f"v_mfma_f32_{instruction}", "-R",
                                   f"-{matrix}", "-c"], check=True, capture_output=True, text=True).stdout
            for row in re.findall(r"^(\d+),(.*)$", said, flags=re.M):
                lines.append(f"{instruction.upper()} {matrix} {row[0]}: {' '.join(map(place, row[1].split(',')))}\n")
    OUTPUT.write_text("".join(lines))


main()
