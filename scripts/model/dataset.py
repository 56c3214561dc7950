"""Turns corpus files into rows of token ids, with a weight for every token to be predicted."""

import random

import numpy as np
from tokenizers import Tokenizer

END = "<|endoftext|>"
ANSWER_WEIGHT = 4.0


def answer_weights(ids, answer, colon, newline):
    """Weight 4 on what follows "Answer:" up to the end of the line: this is what must be looked up."""
    weights, inside = np.ones(len(ids), dtype=np.float32), False
    for i in range(2, len(ids)):
        if ids[i - 2] == answer and ids[i - 1] == colon:
            inside = True
        elif ids[i] == newline:
            inside = False
        if inside:
            weights[i] = ANSWER_WEIGHT
    return weights


def encode(tokenizer, path):
    """Yields (ids, weights) of each document; the end mark stands before every document."""
    end, answer, colon, newline = (tokenizer.token_to_id(t) for t in (END, "Answer", ":", "Ċ"))
    documents = [d.strip() for d in open(path, encoding="utf-8").read().split(END)]
    for coded in tokenizer.encode_batch([d for d in documents if d]):
        ids = [end] + coded.ids
        yield np.array(ids, dtype=np.int16), answer_weights(ids, answer, colon, newline)


def pack(tokenizer_file, path, length, seed):
    """Rows of `length` tokens, each beginning with a document; the last document of a row is cut off.

    Every second row lacks the end mark at its beginning, because users' prompts lack it as well.
    """
    rng = random.Random(seed)
    rows, weights, row, weight = [], [], [], []
    for ids, w in encode(Tokenizer.from_file(str(tokenizer_file)), path):
        skip = 1 if not row and rng.random() < 0.5 else 0
        row.append(ids[skip:])
        weight.append(w[skip:])
        if sum(map(len, row)) >= length:
            rows.append(np.concatenate(row)[:length])
            weights.append(np.concatenate(weight)[:length])
            row, weight = [], []
    return np.stack(rows), np.stack(weights)
