"""Draws loss.csv as an SVG.

    python plot.py FOLDER/loss.csv FOLDER/loss.svg
"""

import csv
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams["svg.hashsalt"] = "dculab"
import matplotlib.pyplot as plt  # noqa: E402  (the backend must be chosen first)


def main(source, target):
    with open(source, encoding="utf-8") as file:
        rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]
    tokens = [r["tokens"] / 1e6 for r in rows]
    figure, axes = plt.subplots(figsize=(7, 3.5))
    axes.plot(tokens, [r["loss"] for r in rows], label="all tokens", linewidth=1)
    axes.plot(tokens, [r["answer_loss"] for r in rows], label="answers only", linewidth=1)
    for before, after in zip(rows, rows[1:]):
        if before["length"] != after["length"]:
            axes.axvline(before["tokens"] / 1e6, color="grey", linewidth=0.8, linestyle="--")
    axes.set(xlabel="tokens read (millions)", ylabel="training loss (nats per token)", yscale="log")
    axes.legend()
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:3])
