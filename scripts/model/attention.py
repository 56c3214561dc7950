"""Teaches some heads where to look, which makes looking up a fact far quicker to discover.

One head of every layer is taught. In the first half of the layers it looks at the name before: so a
fact's answer and a question know whom they are about. In the second half it looks, from where an answer
must be written, at the same words in the fact about the same person. The lesson is only an additional
loss; the model stays an ordinary Llama.
"""

import numpy as np
import torch

import lexicon as lex

HEAD = 0


def name_ids(tokenizer):
    """True for every token that is a first name; shape (vocabulary,)."""
    table = torch.zeros(tokenizer.get_vocab_size(), dtype=torch.bool)
    table[[tokenizer.token_to_id("Ġ" + name) for name in lex.GIRLS + lex.BOYS]] = True
    return table


def last_names(ids, is_name):
    """Position of the last name strictly before every position, or -1; shape (rows, length)."""
    places = torch.where(is_name[ids], torch.arange(ids.shape[1]), -1).cummax(1).values
    return torch.nn.functional.pad(places[:, :-1], (1, 0), value=-1)


def find(row, people, words, person, first, last):
    """First place in row[first:last] where all the words stand and are about the person, or None."""
    n = len(words)
    return next((s for s in range(first, last - n + 1) if people[s] == person and row[s : s + n] == words), None)


def sources_of_row(row, people, looked_up):
    """For every position, where the next token stands in the fact if it belongs to an answer, or -1."""
    found, start = [-1] * len(row), 0
    for i in range(1, len(row)):
        if row[i] == 0:
            start = i
        if looked_up[i] and not looked_up[i - 1]:
            end = next((e for e in range(i, len(row)) if not looked_up[e]), len(row))
            for words in (row[i:end], row[i : end - 1]):  # most facts end with the answer and the full stop
                place = find(row, people, words, people[i], start, i) if words else None
                if place is not None:
                    found[i - 1 : i - 1 + len(words)] = range(place, place + len(words))
                    break
    return found


def sources(ids, weights, names):
    people = torch.where(names < 0, -1, ids.gather(1, names.clamp(min=0)))
    rows = zip(ids.tolist(), people.tolist(), (weights > 1).tolist())
    return torch.from_numpy(np.array([sources_of_row(*r) for r in rows]))


def lesson_loss(attentions, names, sources):
    """Mean of -log(attention paid to the taught position), averaged over the taught heads."""
    total = 0.0
    for layer, attention in enumerate(attentions):
        places = names if 2 * layer < len(attentions) else sources
        taught = places >= 0
        paid = attention[:, HEAD].float().gather(2, places.clamp(min=0)[:, :, None])[:, :, 0]
        total = total - ((paid + 1e-6).log() * taught).sum() / taught.sum().clamp(min=1)
    return total / len(attentions)
