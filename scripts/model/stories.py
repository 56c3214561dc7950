"""Writes one short English story from the plot file, as a list of sentences."""

import random
import re
import zlib
from pathlib import Path

import lexicon as lex

PRONOUNS = {
    "girl": dict(he="she", He="She", him="her", his="her", His="Her", child="girl"),
    "boy": dict(he="he", He="He", him="him", his="his", His="His", child="boy"),
}
ARTICLE = re.compile(r"\b([Aa]) (?=[aeiouAEIOU]|honest)")


def load_plots(path=Path(__file__).with_name("plots.txt")):
    """Returns {plot name: [step, ...]}, where a step is a list of alternative sentences."""
    plots = {}
    for block in path.read_text().split("# ")[1:]:
        name, body = block.split("\n", 1)
        plots[name] = [step.strip().split("\n") for step in body.strip().split("\n\n")]
    return plots


PLOTS = load_plots()
STORY_PLOTS = [name for name in PLOTS if name not in ("opening", "closing")]


def held_out(*words):
    """True for the tenth of all word combinations that training text never contains."""
    return zlib.crc32("|".join(words).encode()) % 10 == 0


def pick_pair(rng, first, second, split):
    """Draws (a, b) that the split may use: training never sees the held-out pairs."""
    while True:
        pair = rng.choice(first), rng.choice(second)
        if split == "any" or held_out(*pair) == (split == "held-out"):
            return pair


def sex_of(name):
    return "girl" if name in lex.GIRLS else "boy"


def cast(rng, split):
    """Chooses who and what the story is about."""
    hero = rng.choice(lex.GIRLS + lex.BOYS)
    friend = rng.choice([n for n in lex.GIRLS + lex.BOYS if n != hero])
    trait, trait2 = rng.sample(lex.TRAITS, 2)
    place, place2 = rng.sample(lex.PLACES, 2)
    food, food2 = rng.sample(lex.FOODS, 2)
    # The plot and the object belong together: some combinations are only in held-out text.
    plot, item = pick_pair(rng, STORY_PLOTS, lex.OBJECTS, split)
    roles = dict(H=hero, F=friend, trait=trait, trait2=trait2, place=place, place2=place2)
    roles.update(E=rng.choice(lex.ELDER_WOMEN + lex.ELDER_MEN), food=food, food2=food2)
    roles.update(c=rng.choice(lex.COLOURS), o=item, a=rng.choice(lex.WILD))
    roles.update(size=rng.choice(lex.SIZES), weather=rng.choice(lex.WEATHERS), lesson=rng.choice(lex.LESSONS))
    roles.update(PRONOUNS[sex_of(hero)])
    pronouns = PRONOUNS[sex_of(friend)]
    roles.update(fhe=pronouns["he"], fhim=pronouns["him"], fhis=pronouns["his"], child2=pronouns["child"])
    return plot, roles


def finish(sentence):
    """Repairs articles and the capital letter at the start of the sentence."""
    sentence = ARTICLE.sub(r"\1n ", sentence)
    sentence = re.sub(r"([.!?]\"? )(the )", lambda m: m[1] + "The ", sentence)
    return sentence[0].upper() + sentence[1:]


def story(rng, split="train"):
    """Returns (sentences, roles) of one story; each sentence follows sensibly from the one before."""
    plot, roles = cast(rng, split)
    steps = PLOTS["opening"] + PLOTS[plot]
    sentences = [finish(rng.choice(step).format(**roles)) for step in steps]
    for line in rng.sample(PLOTS["closing"][0], rng.choice((1, 1, 2))):
        sentences.append(finish(line.format(**roles)))
    return sentences, roles


if __name__ == "__main__":
    print(" ".join(story(random.Random(1))[0]))
