"""Writes tests/golden/tokenizer_families: small tokenizer.json files built as those of Llama-2, Mistral, BLOOM and Falcon
are, and what the `tokenizers` library makes of many strings with them.

    pip install tokenizers==0.23.3
    python scripts/golden/make_family_tokenizer_goldens.py

The files have the form that make_tokenizer_goldens.py describes.
"""

import argparse
import json
import random
import unicodedata
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from make_tokenizer_goldens import VERSION, answer, fix_ids, patched, write_lines, compact
from tokenizer_texts import questions, training_lines

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden" / "tokenizer_families"
STRINGS = 2000
SPACE = "▁"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
# Source: pre_tokenizer of bigscience/bloom's tokenizer.json.
BLOOM = r" ?[^(\s|[.,!?…。，、।۔،])]+"


def template(tokenizer, begin="<s>"):
    return processors.TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A {begin}:1 $B:1", special_tokens=[(begin, tokenizer.token_to_id(begin))]
    )


def sentencepiece(vocabulary, seed):
    """Characters that the trainer did not keep are spelled in bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, fuse_unk=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["<unk>", "<s>", "</s>", *BYTES], limit_alphabet=130, show_progress=False
    )
    tokenizer.train_from_iterator(training_lines(random.Random(seed), 4000), trainer)
    tokenizer.post_processor = template(tokenizer)
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return tokenizer


def without_byte_tokens_among_added(tokenizer):
    content = json.loads(tokenizer.to_str())
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] not in BYTES]
    return content


def llama2():
    """No pre-tokenizer: the text is one word."""
    tokenizer = sentencepiece(1500, 11)
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend(SPACE), normalizers.Replace(" ", SPACE)])
    content = without_byte_tokens_among_added(tokenizer)
    content["pre_tokenizer"] = None
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    return content


def mistral():
    tokenizer = sentencepiece(1400, 12)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="first", split=False)
    return without_byte_tokens_among_added(tokenizer)


def byte_level(pre_tokenizer, vocabulary, special, seed):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel(add_prefix_space=True, trim_offsets=True, use_regex=True)
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(training_lines(random.Random(seed), 4000), trainer)
    tokenizer.add_special_tokens([AddedToken(each, normalized=False, special=True) for each in special])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return json.loads(tokenizer.to_str())


def bloom():
    split = pre_tokenizers.Split(Regex(BLOOM), "isolated", invert=False)
    steps = [split, pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False)]
    return byte_level(pre_tokenizers.Sequence(steps), 1500, ["<unk>", "<s>", "</s>", "<pad>"], 13)


def falcon():
    """Digits and Split come after ByteLevel: they see the bytes' visible characters."""
    steps = [
        pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=True),
        pre_tokenizers.Digits(individual_digits=False),
        pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated", invert=False),
    ]
    return byte_level(pre_tokenizers.Sequence(steps), 1500, [">>TITLE<<", ">>QUESTION<<", "<|endoftext|>"], 14)


def sentencepiece_patches(vocabulary):
    metaspace = lambda scheme, split, kind="pre_tokenizer": {
        kind: {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": scheme, "split": split}
    }
    for scheme in ("always", "first", "never"):
        for split in (False, True):
            yield {"normalizer": None} | metaspace(scheme, split)
            yield {"normalizer": None} | metaspace(scheme, split) | metaspace(scheme, split, "decoder")
    renamed = ["<0xE2>", "<0x9F>", "e", "t", SPACE, "й"]
    gone = {token: None for token in renamed if token in vocabulary}
    gone |= {f"unused {token}": vocabulary[token] for token in gone}
    model = lambda **changes: {"model": {"vocab": gone, "merges": [], **changes}}
    yield model()
    yield model(fuse_unk=False)
    yield model(byte_fallback=False)
    yield model(byte_fallback=False, fuse_unk=False)
    yield model(byte_fallback=False, unk_token=None)
    yield {"model": {"ignore_merges": True}} | metaspace("first", True) | {"normalizer": None}
    replace = {"type": "Replace", "pattern": {"String": SPACE}, "content": " "}
    fallback, fuse = {"type": "ByteFallback"}, {"type": "Fuse"}
    strip = lambda n: {"type": "Strip", "content": " ", "start": n, "stop": 0}
    for steps in (
        [replace, fallback, fuse],
        [replace, fuse, strip(3)],
        [fallback, fuse],
        [replace, {**replace, "pattern": {"String": "the"}, "content": "THE"}, fallback],
        [replace, fallback, fuse, strip(0)],
    ):
        yield {"decoder": {"type": "Sequence", "decoders": steps}}
    normal = lambda *steps: {"normalizer": {"type": "Sequence", "normalizers": list(steps)}}
    to_mark = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    yield normal(to_mark)
    yield normal({"type": "NFC"}, {"type": "Prepend", "prepend": SPACE}, to_mark)
    yield normal({"type": "Replace", "pattern": {"String": "  "}, "content": "x"}, to_mark)
    split = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    yield {"pre_tokenizer": split, "normalizer": None}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": True, "special": True}
    for i, changes in enumerate(({}, {"lstrip": True}, {"rstrip": True}, {"normalized": False, "special": False})):
        names = ["<unk>", "<s>", "</s>"]
        yield {"added_tokens": [{"id": j, "content": name, **flags, **changes} for j, name in enumerate(names)]}


def punctuation_patches():
    last = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext"):
        steps = [{"type": "Punctuation", "behavior": behavior}, last]
        yield {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps}}
    digits = {"type": "Digits", "individual_digits": True}
    yield {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{**last, "add_prefix_space": True}, digits]}}


def variants(rng, contents):
    strings = questions(rng, 450)[230:] + [
        "a  b   c",
        "  <s> x</s>y  <unk>",
        "<s>▁the the",
        "é€😀 ⟟🂡x\u0378",
        "<0x41> <0x0A>",
        "12345 x²³ 1½ 3¼",
        "¡hola! «a» a+b=c $5 ^~`",
        "йцу тест e t",
        "▁▁ x ▁",
        " ",
        "",
    ]
    patches = [("llama2", patch) for patch in sentencepiece_patches(contents["llama2"]["model"]["vocab"])]
    patches += [("mistral", patch) for patch in [{"pre_tokenizer": {**contents["mistral"]["pre_tokenizer"], "split": True}}]]
    patches += [("falcon", patch) for patch in punctuation_patches()]
    for kind, patch in patches:
        tokenizer = Tokenizer.from_str(json.dumps(patched(contents[kind], patch)))
        patch = fix_ids(patch, tokenizer.get_vocab())
        cases = []
        for text in rng.sample(strings[:-11], 15) + strings[-11:]:
            ids = tokenizer.encode(text).ids
            cases.append([text, ids, tokenizer.decode(ids)])
        yield [kind, patch, cases]


def random_ids(rng, tokenizer):
    """Many byte tokens, which seldom make whole characters."""
    return [
        rng.choice([rng.randrange(3, 259), rng.randrange(3, 259), rng.randrange(tokenizer.get_vocab_size() + 3)])
        for _ in range(rng.randint(1, 12))
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    assert tokenizers.__version__ == VERSION, f"tokenizers {VERSION} is needed, not {tokenizers.__version__}"
    assert unicodedata.unidata_version == "14.0.0", "Python 3.11 is needed for its Unicode tables"

    contents = {"llama2": llama2(), "mistral": mistral(), "bloom": bloom(), "falcon": falcon()}
    trained = {kind: Tokenizer.from_str(json.dumps(content)) for kind, content in contents.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in contents.items():
        (folder / f"{kind}.json").write_text(compact(content) + "\n", encoding="utf-8")
    rng = random.Random(20241101)
    prefixes = {kind: tokenizer.encode("").ids for kind, tokenizer in trained.items()}
    rows = [[text, *(answer(t, text, prefixes[kind]) for kind, t in trained.items())] for text in questions(rng, STRINGS)]
    write_lines(folder / "texts.jsonl", [prefixes, *rows])
    lists = {
        kind: [[ids, t.decode(ids, skip_special_tokens=False)] for ids in (random_ids(rng, t) for _ in range(400))]
        for kind, t in trained.items()
    }
    write_lines(folder / "ids.jsonl", [lists])
    write_lines(folder / "variants.jsonl", variants(rng, contents))
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>9} {path.name}")


if __name__ == "__main__":
    main()
