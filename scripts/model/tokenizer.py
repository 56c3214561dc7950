"""Trains the byte-level BPE tokenizer and writes it in Hugging Face's files.

    python tokenizer.py CORPUS.txt FOLDER [FOLDER ...]
"""

import argparse
import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

END = "<|endoftext|>"
VOCABULARY = 2048


def train(corpus):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train([corpus], trainer)
    return tokenizer


def settings(context):
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END,
        "eos_token": END,
        "unk_token": None,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": context,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--context", type=int, default=1024)
    args = parser.parse_args()
    tokenizer = train(args.corpus)
    print("vocabulary:", tokenizer.get_vocab_size())
    for folder in args.folders:
        folder.mkdir(parents=True, exist_ok=True)
        tokenizer.save(str(folder / "tokenizer.json"))
        (folder / "tokenizer_config.json").write_text(json.dumps(settings(args.context), indent=2) + "\n")


if __name__ == "__main__":
    main()
