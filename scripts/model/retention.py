"""Prints one Markdown table: what a model loses by each policy of its KV cache where all load as many bytes.

    python retention.py dculab-tiny --share 0.25 --block-size 16

Critical blocks load `--share` of the bytes of the whole F16 cache, bounds of keys included. All others keep as many
bytes, windows up to three tokens more, for they go in blocks of 4; sinks are 4 tokens of them, heavy hitters half. Sizes
are those at the length of a measure's longest text: at every shorter context critical blocks load less than the others.
Beside the perplexity stands that of the tokens with most before them, beside shares of right answers their standard
error, in points. Figures go to standard error as they are found.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EVAL = ROOT / "scenarios/models/dculab-tiny/eval"
SINKS, SMALL_BLOCK = 4, 4


def measures(args):
    """What each is called, options of `dculab evaluate`, tokens of the longest text."""
    return (
        ("perplexity", ("--text", EVAL / "held-out.txt", "--window", "1024"), 1024),
        ("recall", ("--choices", args.recall), 964),
        ("choice", ("--choices", EVAL / "choice.jsonl"), 77),
    )


def figure(row):
    if row["text"]:
        last = [part for part in row["text"]["by_position"] if part["tokens"] > 0][-1]
        return f"{row['text']['perplexity']:.3f}, after {last['begin']} tokens {math.exp(last['loss']):.3f}"
    (found,) = row["choices"]
    share, items = found["accuracy"], found["items"]
    return f"{100 * share:.1f} ± {100 * math.sqrt(share * (1 - share) / items):.1f} %"


def evaluate(args, measure, options):
    """The only row of an evaluation, token by token."""
    _, judged_by, context = measure
    command = [args.dculab, "evaluate", "--model", args.model, "--stream", "--decode-steps", 0, "--format", "json"]
    command += ["--threads", args.threads, "--decode-context", context, *judged_by, *options]
    out = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    (row,) = json.loads(out)["rows"]
    print(row["kv_retention"], figure(row), file=sys.stderr, flush=True)
    return row


def others(tokens):
    """Policies that keep `tokens` tokens, with their sizes."""
    half = tokens // 2
    return (
        ("window", ("--window-tokens", tokens)),
        ("sinks", ("--sink-tokens", SINKS, "--window-tokens", tokens - SINKS)),
        ("heavy-hitters", ("--heavy-hitter-tokens", half, "--window-tokens", tokens - half)),
    )


def rows_of(args, measure):
    """By policy, with all others at the bytes that critical blocks load."""
    blocks = ("--block-size", args.block_size)
    budget = args.share - 1 / args.block_size  # bounds have the bytes of a token in each block
    rows = {"all": evaluate(args, measure, blocks)}
    critical = ("--kv-retention", "critical-blocks", "--kv-budget", budget)
    rows["critical-blocks"] = evaluate(args, measure, (*blocks, *critical))
    tokens = round(rows["critical-blocks"]["kv_bytes_loaded"] / rows["all"]["kv_bytes_per_token"])
    for policy, sizes in others(tokens):
        rows[policy] = evaluate(args, measure, ("--block-size", SMALL_BLOCK, "--kv-retention", policy, *sizes))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--share", type=float, default=0.25, help="bytes loaded, of those of the whole cache")
    parser.add_argument("--block-size", type=int, default=16, help="of critical blocks, in tokens")
    parser.add_argument("--recall", type=Path, default=EVAL / "recall.jsonl", help="or its first lines")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dculab", default=ROOT / "build/release/cli/dculab")
    args = parser.parse_args()
    found = [rows_of(args, measure) for measure in measures(args)]
    names = [f"{name} | loaded of {context} tokens" for name, _, context in measures(args)]
    print("| kept | " + " | ".join(names) + " |")
    print("|---" * (1 + 2 * len(names)) + "|")
    for policy in found[0]:
        cells = [
            f"{figure(rows[policy])} | {rows[policy]['kv_bytes_loaded'] / rows[policy]['kv_bytes_per_token']:.0f}"
            for rows in found
        ]
        print(f"| `{policy.replace('-', '_')}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
