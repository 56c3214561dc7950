"""What the generators of golden models share: pinned versions, prompts, and the logits and greedy tokens that a model
gives for them."""

import safetensors.torch
import torch
import transformers

PROMPT_LENGTHS = (37, 5, 21)  # ragged, and longer than a KV block of 16
NEW_TOKENS = 24
MARGIN = 1e-2  # between best and second logit of a greedy token: no rounding may turn the choice


def require_pinned(versions):
    """`versions`: {module: version}. Other releases may compute other bits."""
    for package, version in versions.items():
        if package.__version__.split("+")[0] != version:
            raise SystemExit(f"{package.__name__} {version} is pinned, not {package.__version__}")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)


def greedy(model, prompt, count=NEW_TOKENS):
    """Greedy tokens without stopping at eos, and the smallest margin of any choice."""
    tokens, margin = prompt.clone(), float("inf")
    for _ in range(count):
        best = model(tokens[None]).logits[0, -1].topk(2)
        margin = min(margin, (best.values[0] - best.values[1]).item())
        tokens = torch.cat([tokens, best.indices[:1]])
    return tokens[len(prompt):], margin


def expected_tensors(model, lengths=PROMPT_LENGTHS):
    """For random prompt i `prompt.i` [n], `greedy.i` [m] (I32) and `logits.i` [n, vocab_size] (F32); None when a greedy
    choice is not clear."""
    tensors = {}
    for index, length in enumerate(lengths):
        prompt = torch.randint(3, model.config.vocab_size, (length,))
        tokens, margin = greedy(model, prompt)
        if margin < MARGIN:
            return None
        tensors[f"prompt.{index}"] = prompt.to(torch.int32)
        tensors[f"greedy.{index}"] = tokens.to(torch.int32)
        tensors[f"logits.{index}"] = model(prompt[None]).logits[0].contiguous()
    return tensors


def write_expected(folder, tensors):
    """expected.safetensors beside the model; whatever was saved there becomes readable for all."""
    safetensors.torch.save_file(tensors, folder / "expected.safetensors")
    for file in folder.iterdir():
        file.chmod(0o644)


def largest_logit(tensors):
    return max(tensor.abs().max().item() for name, tensor in tensors.items() if name.startswith("logits"))
