"""Facts drawn at random, and the questions that only a reader of the facts can answer."""

from dataclasses import dataclass

import lexicon as lex
from stories import finish, pick_pair

NAMES = lex.GIRLS + lex.BOYS
WHEN = (
    "|||||That morning, |Before lunch, |Later that day, |In the evening, |Meanwhile, |After school, |"
    "On Sunday, |The next day, |At noon, "
).split("|")
# Facts of the first kinds are events and may follow words such as "That morning, ".
EVENTS = {"put", "gave", "count", "travel"}


@dataclass(frozen=True)
class Fact:
    kind: str
    key: str  # what the question asks about: unique in a document
    statement: str
    question: str
    answer: str
    pool: tuple  # all answers that would have been as likely

    def said(self, rng):
        """The statement as a sentence of a story."""
        lead = rng.choice(WHEN) if self.kind in EVENTS else ""
        return finish(f"{lead}{self.statement}.")

    def asked(self):
        return f"Question: {self.question}\nAnswer: {self.answer}.\n"


def put(rng, split):
    name, item = pick_pair(rng, NAMES, lex.OBJECTS, split)
    colour, where = rng.choice(lex.COLOURS), rng.choice(lex.LOCATIONS)
    thing = f"the {colour} {item}"
    return Fact("put", item, f"{name} put {thing} {where}", f"Where did {name} put {thing}?", where, tuple(lex.LOCATIONS))


def food(rng, split):
    name, dish = pick_pair(rng, NAMES, lex.FOODS, split)
    question = f"What did {name} like to eat best of all?"
    return Fact("food", name, f"{name} liked to eat {dish} best of all", question, dish, tuple(lex.FOODS))


def pet(rng, split):
    name, called = pick_pair(rng, NAMES, lex.PET_NAMES, split)
    animal = rng.choice(lex.PETS)
    question = f"What was the name of the {animal} of {name}?"
    return Fact("pet", name, f"{name} had a {animal} called {called}", question, called, tuple(lex.PET_NAMES))


def gave(rng, split):
    name, item = pick_pair(rng, NAMES, lex.OBJECTS, split)
    other = rng.choice([n for n in NAMES if n != name])
    thing = f"the {rng.choice(lex.COLOURS)} {item}"
    return Fact("gave", item, f"{name} gave {thing} to {other}", f"Who got {thing} from {name}?", other, tuple(NAMES))


def job(rng, split):
    name, work = pick_pair(rng, NAMES, lex.JOBS, split)
    answer = finish(f"A {work}").replace("A", "a", 1)
    pool = tuple(finish(f"A {w}").replace("A", "a", 1) for w in lex.JOBS)
    return Fact("job", name, f"{name} wanted to become {answer}", f"What did {name} want to become?", answer, pool)


def count(rng, split):
    name, things = pick_pair(rng, NAMES, lex.COUNTED, split)
    number = rng.choice(lex.NUMBERS)
    question = f"How many {things} did {name} count?"
    return Fact("count", f"{name} {things}", f"{name} counted {number} {things}", question, number, tuple(lex.NUMBERS))


def travel(rng, split):
    name, town = pick_pair(rng, NAMES, lex.TOWNS, split)
    how = f"by {rng.choice(lex.VEHICLES)}"
    pool = tuple(f"by {v}" for v in lex.VEHICLES)
    return Fact("travel", f"{name} {town}", f"{name} travelled to {town} {how}", f"How did {name} travel to {town}?", how, pool)


MAKERS = (put, put, put, gave, food, pet, job, count, travel)


def draw_facts(rng, n, split="train", kind=None):
    """Draws n facts whose questions cannot be mixed up with one another."""
    facts, used = [], set()
    while len(facts) < n:
        fact = (kind or rng.choice(MAKERS))(rng, split)
        key = ("item" if fact.kind in ("put", "gave") else fact.kind, fact.key)
        if key not in used:
            used.add(key)
            facts.append(fact)
    return facts


def exercise(rng, n_facts, split="train", kind=None):
    """A short list of facts and a question about one of them: (text of the facts, fact asked, all facts)."""
    facts = draw_facts(rng, n_facts, split, kind)
    text = " ".join(finish(f"{f.statement}.") for f in facts)
    return text, rng.choice(facts), facts


def rivals(rng, n, split="train", kind=None):
    """n facts of one kind, each about another person and with another answer: only the key tells them apart."""
    kind = kind or rng.choice(MAKERS)
    facts, people, answers = [], set(), set()
    while len(facts) < n:
        fact = kind(rng, split)
        person = fact.statement.split()[0]
        if person not in people and fact.answer not in answers:
            people.add(person)
            answers.add(fact.answer)
            facts.append(fact)
    return facts


def distractors(rng, fact, facts, n=3):
    """Wrong answers: the answers of other facts of the same kind in the same text."""
    return rng.sample(sorted({f.answer for f in facts if f.kind == fact.kind} - {fact.answer}), n)
