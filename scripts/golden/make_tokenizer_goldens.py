"""Writes tests/golden/tokenizer: small tokenizer.json files of three kinds, and what the `tokenizers` library makes of
many strings with them.

    pip install tokenizers==0.23.3
    python scripts/golden/make_tokenizer_goldens.py

Unicode properties differ between releases: the strings hold only what Python 3.11 (Unicode 14) knows.

texts.jsonl     first line: {kind: ids that add_special_tokens=True puts before a text}
                then one line per string: [text, answer of each kind in that order]; an answer is the ids,
                or {ids, shown, skipped} where decoding with or without special tokens does not give the text
ids.jsonl       {kind: [[ids, decoded], ...]}: random ids, which seldom make whole characters
variants.jsonl  [kind, JSON merge patch of its tokenizer.json, [[text, ids, decoded without special tokens], ...]]
"""

import argparse
import json
import random
import unicodedata
from pathlib import Path

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tokenizer_texts import SPECIAL, questions, sentence, training_lines

VERSION = "0.23.3"
FOLDER = Path(__file__).resolve().parents[2] / "tests" / "golden" / "tokenizer"
STRINGS = 10_200
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def train(vocabulary, pre_tokenizer, normalizer=None, seed=0):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(training_lines(random.Random(seed), 4000), trainer)
    return tokenizer


def split_then_bytes(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated", invert=False),
            pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=True, use_regex=False),
        ]
    )


def gpt2():
    """One special token; merges written as "a b", as in GPT-2's own file."""
    tokenizer = train(1600, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens([AddedToken("<|endoftext|>", normalized=True, special=True)])
    content = json.loads(tokenizer.to_str())
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    content["model"] |= {"unk_token": "", "continuing_subword_prefix": "", "end_of_word_suffix": ""}
    return content


def llama3():
    """ignore_merges, with tokens that no merge leads to; BOS from a template."""
    tokenizer = train(2000, split_then_bytes(LLAMA3), seed=1)
    begin = "<|begin_of_text|>"
    tokenizer.add_special_tokens([begin, "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    template = processors.TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A {begin}:1 $B:1", special_tokens=[(begin, tokenizer.token_to_id(begin))]
    )
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    content = json.loads(tokenizer.to_str())
    merges = content["model"]["merges"]
    dropped = set(random.Random(2).sample(range(300, len(merges)), 150))
    content["model"]["merges"] = [merge for i, merge in enumerate(merges) if i not in dropped]
    content["model"]["ignore_merges"] = True
    return content


def qwen2():
    tokenizer = train(1800, split_then_bytes(QWEN2), normalizers.NFC(), seed=3)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False), AddedToken("</tool_call>", normalized=False)])
    return json.loads(tokenizer.to_str())


def pre_tokenizer_patches():
    digits = lambda individual: {"type": "Digits", "individual_digits": individual}
    split = lambda pattern, behavior, invert=False: {
        "type": "Split",
        "pattern": pattern,
        "behavior": behavior,
        "invert": invert,
    }
    regex, string = {"Regex": r"[\s,]"}, {"String": " t"}
    first = [
        [digits(True)],
        [digits(False)],
        [split(string, "Removed")],
        [split({"Regex": r"\w+|[^\w\s]+"}, "Removed", True)],
        [split({"Regex": r"\d{1,2}(?=\D|$)|x*"}, "Isolated")],
        [split({"Regex": r"^\S+|\p{Greek}+|\p{Han}"}, "Isolated")],
    ]
    first += [
        [split(regex, behavior, invert)]
        for invert in (False, True)
        for behavior in ("Isolated", "Removed", "Contiguous", "MergedWithPrevious", "MergedWithNext")
    ]
    first += [[split(regex, "Isolated"), digits(True)]]
    for steps in first:
        for prefix in (False, True):
            last = {"type": "ByteLevel", "add_prefix_space": prefix, "trim_offsets": True, "use_regex": prefix}
            yield {"pre_tokenizer": {"type": "Sequence", "pretokenizers": [*steps, last]}}


def added_token_patches(next_id):
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens = lambda *entries: {
        "added_tokens": [{"id": next_id + i, **flags, **entry} for i, entry in enumerate(entries)]
    }
    for name in ("single_word", "lstrip", "rstrip", "normalized"):
        yield tokens(
            {"content": "the", name: True}, {"content": "<|endoftext|>", name: True}, {"content": "<|end", name: True}
        )
    yield tokens({"content": "e", "single_word": True, "lstrip": True, "rstrip": True, "special": False})
    yield tokens(
        {"content": "cafe\u0301", "normalized": True, "special": False}, {"content": "Å"}, {"content": "\u1112\u1161"}
    )
    yield tokens(
        {"content": "th"},
        {"content": "the "},
        {"content": "he"},
        {"content": "the b", "special": False},
        {"content": "😀"},
    )
    yield tokens({"content": "two words", "special": False}, {"content": "Ġof"}, {"content": "é", "special": False})


def model_patches(vocabulary):
    renamed = ("a", "Ġ", "Ã")  # bytes without a token, but no hole in the ids: there the library gives one id twice
    without = {token: None for token in renamed} | {f"unused {token}": vocabulary[token] for token in renamed}
    gone = {"vocab": without, "merges": [], "unk_token": None}
    yield {"model": gone}
    yield {"model": gone | {"unk_token": "e", "fuse_unk": False}}
    yield {"model": gone | {"unk_token": "e", "fuse_unk": True}}
    yield {"model": gone | {"ignore_merges": True}}
    template = lambda name, ids: {
        "type": "TemplateProcessing",
        "pair": [],
        "special_tokens": {name: {"id": name, "ids": ids, "tokens": ["x"] * len(ids)}},
        "single": [
            {"SpecialToken": {"id": name, "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": name, "type_id": 0}},
        ],
    }
    yield {"post_processor": template("s", [5, 6])}
    yield {
        "post_processor": {
            "type": "Sequence",
            "processors": [template("t", [7]), {"type": "ByteLevel", "trim_offsets": True, "add_prefix_space": True}],
        }
    }


def variants(rng, contents):
    strings = questions(rng, 450)[230:] + [
        "the café the",
        "the\u200dthe",
        "x the  <|endoftext|>\u3000the",
        "1 22 333, x4y5 6,,7  8",
        "two words Ġof é",
        "theb the b",
        "cafe\u0301s caf\u00e9",
        "ααα 漢字 x漢y\nζ ω",
        "e é e\u0301 e, ee",
        "\u1112\u1161\u11ab",
    ]
    size = {kind: max(t["id"] for t in content["added_tokens"]) + 1 for kind, content in contents.items()}
    patches = [
        ("gpt2", patch) for patch in [*pre_tokenizer_patches(), *model_patches(contents["gpt2"]["model"]["vocab"])]
    ]
    for kind in ("gpt2", "qwen2"):
        base = size[kind] - len(contents[kind]["added_tokens"])
        patches += [(kind, patch) for patch in added_token_patches(base)]
    for kind, patch in patches:
        content = patched(contents[kind], patch)
        tokenizer = Tokenizer.from_str(json.dumps(content))
        patch = fix_ids(patch, tokenizer.get_vocab())
        cases = []
        for text in rng.sample(strings[:-10], 20) + strings[-10:]:
            ids = tokenizer.encode(text).ids
            cases.append([text, ids, tokenizer.decode(ids)])
        yield [kind, patch, cases]


def fix_ids(patch, vocabulary):
    """The library gives out its own ids, whatever the file says."""
    if "added_tokens" not in patch:
        return patch
    return {"added_tokens": [token | {"id": vocabulary[token["content"]]} for token in patch["added_tokens"]]}


def patched(value, patch):
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(value) if isinstance(value, dict) else {}
    for key, inner in patch.items():
        if inner is None:
            result.pop(key, None)
        else:
            result[key] = patched(result.get(key), inner)
    return result


def answer(tokenizer, text, prefix):
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    assert tokenizer.encode(text, add_special_tokens=True).ids == prefix + ids
    shown, skipped = (tokenizer.decode(ids, skip_special_tokens=skip) for skip in (False, True))
    return ids if shown == skipped == text else {"ids": ids, "shown": shown, "skipped": skipped}


def compact(value):
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def write_lines(path, rows):
    path.write_text("".join(compact(row) + "\n" for row in rows), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    folder = parser.parse_args().folder
    assert tokenizers.__version__ == VERSION, f"tokenizers {VERSION} is needed, not {tokenizers.__version__}"
    assert unicodedata.unidata_version == "14.0.0", "Python 3.11 is needed for its Unicode tables"

    contents = {"gpt2": gpt2(), "llama3": llama3(), "qwen2": qwen2()}
    trained = {kind: Tokenizer.from_str(json.dumps(content)) for kind, content in contents.items()}
    folder.mkdir(parents=True, exist_ok=True)
    for kind, content in contents.items():
        (folder / f"{kind}.json").write_text(compact(content) + "\n", encoding="utf-8")

    rng = random.Random(20240607)
    prefixes = {kind: tokenizer.encode("").ids for kind, tokenizer in trained.items()}
    texts = questions(rng, STRINGS)
    rows = [[text, *(answer(t, text, prefixes[kind]) for kind, t in trained.items())] for text in texts]
    write_lines(folder / "texts.jsonl", [prefixes, *rows])

    random_ids = lambda t: [
        rng.choice([rng.randrange(256), rng.randrange(t.get_vocab_size() + 3)]) for _ in range(rng.randint(1, 12))
    ]
    lists = {
        kind: [[ids, t.decode(ids, skip_special_tokens=False)] for ids in (random_ids(t) for _ in range(400))]
        for kind, t in trained.items()
    }
    write_lines(folder / "ids.jsonl", [lists])
    write_lines(folder / "variants.jsonl", variants(rng, contents))
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:>9} {path.name}")


if __name__ == "__main__":
    main()
