"""Writes training text, held-out text and question sets. Same seed, same bytes.

    python corpus.py first OUT.txt --documents 20000 --words 60 --seed 4
    python corpus.py recall-drill OUT.txt --documents 20000 --words 20 --most 3 --seed 4
    python corpus.py mixed OUT.txt --documents 20000 --words 300 --seed 2
    python corpus.py train OUT.txt --documents 20000 --words 300 --seed 1
    python corpus.py held-out OUT.txt --documents 150 --words 600 --seed 9001
    python corpus.py choice OUT.jsonl --documents 200 --seed 9002
    python corpus.py recall OUT.jsonl --documents 400 --words 600 --seed 9003

`choice` and `recall` are JSON lines in the format of ARC; `recall` adds the context and the distance.
"""

import argparse
import json
import random

from questions import MAKERS, distractors, draw_facts, exercise, rivals
from stories import finish, story

END = "<|endoftext|>"
LEANING = set("He She It They But Then So At There This That In First After".split())


def gaps(sentences):
    """Where something else may be said: not before a sentence that leans on the one before it."""
    return [i for i, s in enumerate(sentences) if i > 1 and s.split()[0] not in LEANING] + [len(sentences)]


def told(rng, facts, split):
    """One story with the facts mixed into it. Facts never stand before the opening is over."""
    sentences, _ = story(rng, split)
    for fact in facts:
        sentences.insert(rng.choice(gaps(sentences)), fact.said(rng))
    cut = rng.choice([g for g in gaps(sentences) if 4 < g < len(sentences)] or [4])
    return " ".join(sentences[:cut]) + "\n\n" + " ".join(sentences[cut:])


def dialogue(rng, fact):
    """The same question asked and answered in direct speech."""
    question = fact.question[0].lower() + fact.question[1:]
    return f'"Tell me, {question}" - "{fact.answer[0].upper()}{fact.answer[1:]}," was the answer.\n'


def ask(rng, fact):
    """A question block, sometimes with the full sentence repeated."""
    roll = rng.random()
    if roll < 0.12:
        return dialogue(rng, fact)
    if roll < 0.24:
        return f"Remember: {fact.statement}.\n"
    return fact.asked()


def drill_document(rng, words, split, fewest=2, most=6):
    """Short exercises in ARC's manner: facts and question together after 'Question:'."""
    parts, length = [], 0
    while length < words:
        kind = rng.choice(MAKERS) if rng.random() < 0.4 else None
        text, _, facts = exercise(rng, rng.randint(fewest, most), split, kind)
        asked = rng.sample(facts, rng.randint(1, len(facts)))
        block = f"Question: {text} {asked[0].question}\nAnswer: {asked[0].answer}.\n"
        parts.append(block + "".join(ask(rng, f) for f in asked[1:]))
        length += len(parts[-1].split())
    return "\n".join(parts)


def book_document(rng, words, split):
    """Stories one after another; every fact may be asked for at any later time, also more than once."""
    parts, known, length = [], [], 0
    fresh = iter(draw_facts(rng, 48, split))
    while length < words:
        facts = [next(fresh) for _ in range(rng.randint(2, 4))]
        known += facts
        asked = rng.sample(known, min(len(known), rng.randint(2, 6)))
        parts.append(told(rng, facts, split) + "\n\n" + "".join(ask(rng, f) for f in asked))
        length += len(parts[-1].split())
    return "\n".join(parts)


def story_document(rng, words, split):
    """Nothing but stories."""
    return "\n\n".join(told(rng, [], split) for _ in range(max(1, words // 260)))


def rivals_document(rng, words, split, fewest=2, most=6):
    """Facts of one kind and questions about all of them: only the key in the question tells the answer."""
    parts, length = [], 0
    while length < words:
        facts = rivals(rng, rng.randint(fewest, most), split)
        asked = rng.sample(facts, len(facts)) + [rng.choice(facts)]
        text = " ".join(finish(f"{f.statement}.") for f in facts)
        block = f"Question: {text} {asked[0].question}\nAnswer: {asked[0].answer}.\n"
        for fact in asked[1:]:
            block += f"Remember: {fact.statement}.\n" if rng.random() < 0.25 else fact.asked()
        parts.append(block)
        length += len(block.split())
    return "\n".join(parts)


def rival_book_document(rng, words, split):
    """Stories with facts of one or two kinds mixed in, each asked for at any later time."""
    pools = [rivals(rng, 12, split, kind) for kind in rng.sample(sorted(set(MAKERS), key=str), rng.randint(1, 2))]
    fresh = rng.sample([f for pool in pools for f in pool], 12)
    parts, known, length = [], [], 0
    while length < words and fresh:
        facts = [fresh.pop() for _ in range(min(len(fresh), rng.randint(2, 4)))]
        known += facts
        asked = rng.sample(known, min(len(known), rng.randint(3, 6)))
        parts.append(told(rng, facts, split) + "\n\n" + "".join(ask(rng, f) for f in asked))
        length += len(parts[-1].split())
    return "\n".join(parts)


def first_text(rng, documents, words):
    """For the very beginning of training: exercises that are easy enough to discover copying by."""
    for _ in range(documents):
        yield drill_document(rng, words, "train", fewest=1, most=2).strip() + "\n" + END + "\n"


def rivals_text(rng, documents, words, most):
    """Nothing but telling facts of one kind apart."""
    for _ in range(documents):
        yield rivals_document(rng, words, "train", most=most).strip() + "\n" + END + "\n"


def mixed_text(rng, documents, words, split="train"):
    """Whole documents of all five kinds, half of them about telling facts apart."""
    kinds = (rivals_document, rival_book_document, drill_document, book_document, story_document)
    for _ in range(documents):
        kind = rng.choices(kinds, (0.2, 0.3, 0.1, 0.2, 0.2))[0]
        yield kind(rng, rng.randint(words // 3, words), split).strip() + "\n" + END + "\n"


def text(rng, documents, words, split):
    """Yields whole documents of all three kinds, of about the given number of words at most."""
    kinds = (drill_document, book_document, story_document)
    for _ in range(documents):
        kind = rng.choices(kinds, (0.3, 0.5, 0.2))[0]
        yield kind(rng, rng.randint(words // 3, words), split).strip() + "\n" + END + "\n"


def arc_item(name, stem, right, wrong, rng, **more):
    """One question in ARC's JSON format."""
    options = [right] + wrong
    rng.shuffle(options)
    choices = [{"text": t, "label": label} for t, label in zip(options, "ABCD")]
    item = {"id": name, "question": {"stem": stem, "choices": choices}, "answerKey": "ABCD"[options.index(right)]}
    return item | more


def choice_items(rng, documents):
    """Multiple choice: the stem holds the facts, the wrong answers are true of somebody else."""
    for i in range(documents):
        facts = rivals(rng, rng.randint(4, 6), "held-out", MAKERS[i % len(MAKERS)])
        fact = rng.choice(facts)
        stem = " ".join(finish(f"{f.statement}.") for f in facts) + f" {fact.question}"
        yield arc_item(f"dculab-choice-{i:04d}", stem, fact.answer, distractors(rng, fact, facts), rng)


def recall_items(rng, documents, words):
    """Long contexts: stories with three facts each, two of them of the kind that is asked for."""
    for i in range(documents):
        near = rivals(rng, 12, "held-out", MAKERS[i % len(MAKERS)])
        far = [f for f in draw_facts(rng, 30, "held-out") if f.kind != near[0].kind]
        context, told_facts, limit = "", [], rng.randint(words // 2, words)
        while len(told_facts) < 4 or len(context.split()) < limit:
            told_facts += near[:2]
            context += told(rng, near[:2] + far[:1], "held-out") + "\n\n"
            near, far = near[2:], far[1:]
        fact = rng.choice(told_facts[: rng.randint(1, len(told_facts))] if i % 2 else told_facts)
        distance = len(context[context.index(fact.statement[1:]) :].split())
        more = {"context": context.strip() + "\n\n", "distance_words": distance}
        wrong = distractors(rng, fact, told_facts)
        yield arc_item(f"dculab-recall-{i:04d}", fact.question, fact.answer, wrong, rng, **more)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("first", "recall-drill", "mixed", "train", "held-out", "choice", "recall"))
    parser.add_argument("out")
    parser.add_argument("--documents", type=int, default=200)
    parser.add_argument("--words", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=6, help="facts in one exercise of `recall-drill`")
    args = parser.parse_args()
    rng = random.Random(f"{args.what} {args.seed}")
    texts = {
        "first": lambda: first_text(rng, args.documents, args.words),
        "recall-drill": lambda: rivals_text(rng, args.documents, args.words, args.most),
        "mixed": lambda: mixed_text(rng, args.documents, args.words),
        "train": lambda: text(rng, args.documents, args.words, "train"),
        "held-out": lambda: text(rng, args.documents, args.words, "held-out"),
    }
    with open(args.out, "w", encoding="utf-8") as out:
        if args.what in texts:
            out.writelines(texts[args.what]())
            return
        items = choice_items(rng, args.documents) if args.what == "choice" else recall_items(rng, args.documents, args.words)
        out.writelines(json.dumps(item) + "\n" for item in items)


if __name__ == "__main__":
    main()
