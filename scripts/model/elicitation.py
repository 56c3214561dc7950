"""Text that a student learns from, got from a teacher in the four ways of black-box distillation.

    python elicitation.py labelling TEACHER OUT.npz --rows 96 --seed 1
    python elicitation.py feedback TEACHER OUT.npz --student FOLDER --rows 96 --seed 1

The names are those of Xu et al., A Survey on Knowledge Distillation of Large Language Models (arXiv:2402.13116,
section 3.1):

labelling  the teacher answers inputs that are given: beginnings of the corpus's documents
expansion  it is shown demonstrations, and writes more of their kind; only what it writes is kept
curation   it writes from meta-information: what kind of text, and about whom and what
feedback   the student answers twice; the teacher says which answer it prefers, goes on in its own words from the first
           token that is not among its likeliest (a correction), and answers the inputs that needed this earliest
           once more (an expansion of challenging samples), in place of those that needed it least

Nothing of the teacher is kept but text. All ways make as many rows of as many tokens. OUT holds `ids`, int16 [rows,
length], and `learned`, which of them the student is to predict: what the teacher wrote or approved of, not its input.
"""

import argparse
import random
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer

import corpus
import lexicon
import llama
import questions
import self_generated
from dataset import END

INPUT = 96
BATCH = 64
LIKELIEST = 20  # a token of the student's that the teacher has further down its list is corrected
HARDEST = 4  # one input in HARDEST counts as challenging


def documents(tokenizer, rng, kinds, count, words):
    """`count` encoded documents of the corpus that are long enough to be an input, each after an end mark."""
    found, end = [], tokenizer.token_to_id(END)
    while len(found) < count:
        ids = [end] + tokenizer.encode(rng.choice(kinds)(rng, words, "train").strip() + "\n").ids
        if len(ids) >= INPUT:
            found.append(ids)
    return found


def inputs(tokenizer, rng, count):
    """[count, INPUT]: how documents of the corpus begin."""
    kinds = (corpus.rivals_document, corpus.rival_book_document, corpus.drill_document, corpus.book_document)
    return torch.tensor([ids[:INPUT] for ids in documents(tokenizer, rng, kinds, count, 120)])


def in_batches(function, *tensors):
    parts = [function(*parts) for parts in zip(*(t.split(BATCH) for t in tensors))]
    return tuple(torch.cat(part) for part in zip(*parts))


def answered(model, prompts, generator, args, tokens=None):
    """[rows, args.length]: prompts and what the model writes after them; or `tokens` tokens after each prompt."""
    tokens = tokens or args.length - prompts.shape[1]

    def written(rows):
        return (self_generated.continued(model, rows, tokens, generator, temperature=args.temperature),)

    return torch.cat((prompts, in_batches(written, prompts)[0]), 1)


def labelling(teacher, tokenizer, rng, generator, args):
    return answered(teacher, inputs(tokenizer, rng, args.rows), generator, args), INPUT


def expansion(teacher, tokenizer, rng, generator, args):
    """The demonstrations are the end of a document of exercises, whole ones as far as they fit."""
    shown = documents(tokenizer, rng, (corpus.drill_document, corpus.rivals_document), args.rows, 90)
    prompts = torch.tensor([ids[-INPUT:] for ids in shown])
    return answered(teacher, prompts, generator, args, args.length)[:, INPUT:], 0


def meta_information(tokenizer, rng):
    """Ids of a beginning that says kind, person and thing: an exercise about a fact, or a story about a person."""
    fact = rng.choice(questions.MAKERS)(rng, "train")
    name = rng.choice(questions.NAMES)
    child = "girl" if name in lexicon.GIRLS else "boy"
    starts = (f"Question: {fact.statement}.", f"Once upon a time, there was a {child} called {name}.")
    return [tokenizer.token_to_id(END)] + tokenizer.encode(rng.choice(starts)).ids


def curation(teacher, tokenizer, rng, generator, args):
    """Inputs are of different lengths, so those of one length are answered together."""
    by_length = {}
    for _ in range(args.rows):
        ids = meta_information(tokenizer, rng)
        by_length.setdefault(len(ids), []).append(ids)
    rows = [answered(teacher, torch.tensor(by_length[length]), generator, args) for length in sorted(by_length)]
    starts = [torch.full((len(by_length[length]),), length) for length in sorted(by_length)]
    return torch.cat(rows), torch.cat(starts)


@torch.no_grad()
def preferred(teacher, first, second):
    """Of two answers to each input the one that the teacher finds likelier."""

    def score(rows):
        logits = teacher(rows[:, :-1])[0][:, INPUT - 1 :].log_softmax(-1)
        return (logits.gather(2, rows[:, INPUT:, None])[..., 0].sum(1),)

    better = in_batches(score, first)[0] >= in_batches(score, second)[0]
    return torch.where(better[:, None], first, second)


@torch.no_grad()
def corrected(teacher, rows, generator, args):
    """(rows as the teacher would have them [rows, length], the place from which on they are its own [rows])"""
    length = rows.shape[1]
    cache, kept = llama.Cache(teacher.config, len(rows), length), rows[:, :INPUT]
    places, result = torch.full((len(rows),), length), [kept]
    for place in range(INPUT, length):
        logits = teacher(kept, cache)[0][:, -1]
        draft = rows[:, place : place + 1]
        approved = (logits > logits.gather(1, draft)).sum(1) < LIKELIEST
        places = torch.where((places == length) & ~approved, torch.tensor(place), places)
        own = self_generated.draw(logits, generator, temperature=args.temperature)
        kept = torch.where((places == length)[:, None], draft, own)
        result.append(kept)
    return torch.cat(result, 1), places


def feedback(teacher, tokenizer, rng, generator, args):
    prompts, student = inputs(tokenizer, rng, args.rows), llama.load(args.student)
    drafts = [answered(student, prompts, generator, args) for _ in range(2)]
    rows, places = in_batches(lambda part: corrected(teacher, part, generator, args), preferred(teacher, *drafts))
    share, mean = (places < args.length).float().mean(), (places - INPUT).float().mean()
    print(f"{100 * share:.0f} % corrected, after {mean:.0f} tokens on average", flush=True)
    order = places.argsort(stable=True)
    count = len(rows) // HARDEST
    if count > 0:
        rows[order[-count:]] = answered(teacher, prompts[order[:count]], generator, args)
    return rows, INPUT


WAYS = {"labelling": labelling, "expansion": expansion, "curation": curation, "feedback": feedback}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("teacher", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--student", type=Path, help="of `feedback`")
    parser.add_argument("--rows", type=int, default=96)
    parser.add_argument("--length", type=int, default=256, help="tokens of a row")
    parser.add_argument("--temperature", type=float, default=1.0, help="of all that is written")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    started = time.time()
    rng, generator = random.Random(f"{args.way} {args.seed}"), torch.Generator().manual_seed(args.seed)
    tokenizer = Tokenizer.from_file(str(args.teacher / "tokenizer.json"))
    with torch.no_grad():
        rows, starts = WAYS[args.way](llama.load(args.teacher), tokenizer, rng, generator, args)
    learned = torch.arange(args.length) >= torch.as_tensor(starts).reshape(-1, 1)
    np.savez(args.out, ids=rows.numpy().astype(np.int16), learned=learned.expand(len(rows), args.length).numpy())
    print(f"{args.way}: {len(rows)} rows, {time.time() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
