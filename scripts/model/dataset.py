"""Turns corpus files into rows of token ids, with a weight for every token to be predicted."""

import random

import numpy as np
from tokenizers import Tokenizer

END = "<|endoftext|>"


def answer_weights(ids, marks, colon, newline, weight):
    """`weight` on what must be looked up: the rest of the line after "Answer:" and "Remember: <name>"."""
    weights, start = np.ones(len(ids), dtype=np.float32), len(ids)
    for i in range(2, len(ids)):
        if ids[i - 2] in marks and ids[i - 1] == colon:
            start = i + marks[ids[i - 2]]
        elif ids[i] == newline:
            start = len(ids)
        if i >= start:
            weights[i] = weight
    return weights


def encode(tokenizer, path, answer_weight):
    """Yields (ids, weights) of each document; the end mark stands before every document."""
    end, colon, newline = (tokenizer.token_to_id(t) for t in (END, ":", "Ċ"))
    marks = {tokenizer.token_to_id("Answer"): 0, tokenizer.token_to_id("Remember"): 1}
    documents = [d.strip() for d in open(path, encoding="utf-8").read().split(END)]
    for coded in tokenizer.encode_batch([d for d in documents if d]):
        ids = [end] + coded.ids
        yield np.array(ids, dtype=np.int16), answer_weights(ids, marks, colon, newline, answer_weight)


def pack(tokenizer_file, path, length, seed, answer_weight):
    """Rows of `length` tokens, each beginning with a document; the last document of a row is cut off.

    Every second row lacks the end mark at its beginning, because users' prompts lack it as well.
    """
    rng = random.Random(seed)
    rows, weights, row, weight = [], [], [], []
    for ids, w in encode(Tokenizer.from_file(str(tokenizer_file)), path, answer_weight):
        skip = 1 if not row and rng.random() < 0.5 else 0
        row.append(ids[skip:])
        weight.append(w[skip:])
        if sum(map(len, row)) >= length:
            rows.append(np.concatenate(row)[:length])
            weights.append(np.concatenate(weight)[:length])
            row, weight = [], []
    return np.stack(rows), np.stack(weights)
