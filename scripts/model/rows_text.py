"""Writes rows of token ids, as self_generated.py makes them, as text: what `dculab quantize --calibration` reads.

    python rows_text.py FOLDER ROWS.npy OUT.txt
"""

import argparse
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("rows", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--most", type=int, default=32, help="rows")
    args = parser.parse_args()
    tokenizer = Tokenizer.from_file(str(args.folder / "tokenizer.json"))
    rows = np.load(args.rows)[: args.most].tolist()
    args.out.write_text("\n".join(tokenizer.decode(ids) for ids in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
