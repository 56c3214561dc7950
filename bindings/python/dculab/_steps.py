"""Questions about a step, a layer or a thing: each answers as the program's command of the same name does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dculab._ask import ask
from dculab._keywords import Named, Settings, file_names, texts
from dculab._things import MachineLike, ModelLike, PathLike, StackLike, machine_of, model_of, stack_of

if TYPE_CHECKING:
    from dculab import answers


def predict(
    model: ModelLike,
    machine: MachineLike,
    *,
    stack: StackLike | None = None,
    phase: str = "decode",
    batch: int = 1,
    context: int = 1024,
    block_size: int | None = None,
    kv_heads: int | None = None,
    kv_cache_dtype: str | None = None,
    weights: str | None = None,
    activations: str | None = None,
    set: Settings = None,
) -> answers.PredictAnswer:
    """How long one step takes on one machine, op by op.

    `phase`: "prefill" or "decode"; `context`: tokens of each sequence once the step is done; `kv_heads`: instead of the
    model's own; `weights`: "int4", "gptq-int4" ... instead of the checkpoint's own.
    """
    named = Named(set)
    named.add("model", model_of(model))
    named.add("machine", machine_of(machine))
    if stack is not None:
        named.add("stack", stack_of(stack))
    return ask(
        "predict",
        phase=phase,
        batch=batch,
        context=context,
        block_size=block_size,
        kv_heads=kv_heads,
        kv_cache_dtype=kv_cache_dtype,
        weights=weights,
        activations=activations,
        **named.all(),
    )


def _stated(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def _per_token(measured: Mapping[int | tuple[int, int], float] | None) -> list[str] | None:
    if measured is None:
        return None
    places = [(key if isinstance(key, tuple) else (None, key), time) for key, time in measured.items()]
    return [f"{'' if batch is None else f'{batch}x'}{context}={time!r} s" for (batch, context), time in places]


def diagnose(
    model: ModelLike | None = None,
    machine: MachineLike | None = None,
    *,
    files: PathLike | Sequence[PathLike] | None = None,
    tokens_per_second: float | None = None,
    tpot: float | None = None,
    at: Mapping[int | tuple[int, int], float] | None = None,
    prefill_tokens_per_second: float | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    stack: StackLike | None = None,
    phase: str = "decode",
    batch: int = 1,
    context: int = 1024,
    block_size: int | None = None,
    kv_heads: int | None = None,
    kv_cache_dtype: str | None = None,
    weights: str | None = None,
    activations: str | None = None,
    tensor_parallel_size: int | None = None,
    enforce_eager: bool | None = None,
    desc_act: bool | None = None,
    set: Settings = None,
) -> answers.DiagnoseAnswer:
    """Why a measured step is slower than predicted: the causes that can explain it, ranked.

    Measured: `tokens_per_second` of all sequences of `batch`; `tpot`, seconds per token of one; `at`: seconds per token by
    context, or by (batch, context); `prefill_tokens_per_second` of prompts of `context` tokens; `files`: results of
    benchmark tools; `prompt_tokens` and `output_tokens` of their requests where a file lacks them. `enforce_eager`:
    kernels are launched one by one; `desc_act`: GPTQ's act-order; None: not known.
    """
    named = Named(set)
    if model is not None:
        named.add("model", model_of(model))
    if machine is not None:
        named.add("machine", machine_of(machine))
    if stack is not None:
        named.add("stack", stack_of(stack))
    return ask(
        "diagnose",
        files=file_names(files),
        tokens_per_second=None if tokens_per_second is None else float(tokens_per_second),
        tpot=None if tpot is None else f"{tpot!r} s",
        at=_per_token(at),
        prefill_tokens_per_second=None if prefill_tokens_per_second is None else float(prefill_tokens_per_second),
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        phase=phase,
        batch=batch,
        context=context,
        block_size=block_size,
        kv_heads=kv_heads,
        kv_cache_dtype=kv_cache_dtype,
        weights=weights,
        activations=activations,
        tensor_parallel_size=tensor_parallel_size,
        enforce_eager=_stated(enforce_eager),
        desc_act=_stated(desc_act),
        **named.all(),
    )


def show(what: PathLike, *, set: Settings = None) -> answers.ShowAnswer:
    """Every effective value of a machine, a stack, a model or a scenario, and where it came from."""
    return ask("show", what=os.fspath(what), set=texts(set))


def intensity(
    model: ModelLike,
    *,
    phase: str = "prefill",
    tokens: int = 2048,
    batch: int = 1,
    kv_heads: int | None = None,
    layer: int = 0,
    dtype: str = "f16",
    lecture: bool = False,
    machine: PathLike | Sequence[PathLike] | None = None,
) -> answers.TablesIntensityAnswer:
    """FLOP, bytes and FLOP/byte of every op of a layer.

    `phase`: "prefill", "decode" or "both"; `tokens`: of the prompt, or cached so far; `dtype`: of weights, activations
    and KV; `lecture`: MHA and a plain MLP of width 4D; `machine`: whose ridge points are asked for.
    """
    thing = model_of(model)
    return ask(
        "tables-intensity",
        model=thing.name,
        phase=phase,
        tokens=tokens,
        batch=batch,
        kv_heads=kv_heads,
        layer=layer,
        dtype=dtype,
        lecture=lecture,
        machine=file_names(machine),
    )


def footprint(
    model: ModelLike,
    *,
    tokens: int = 2048,
    batch: int = 1,
    kv_heads: int | None = None,
    dtype: str = "checkpoint",
    kv_dtype: str = "f16",
    lecture: bool = False,
    machine: PathLike | Sequence[PathLike] | None = None,
) -> answers.TablesFootprintAnswer:
    """Memory of weights and KV cache, for every number of KV heads and for latents.

    `dtype` is of the weights; `"checkpoint"`: as config.json says. `machine`: whose memory is left for how much context.
    """
    thing = model_of(model)
    return ask(
        "tables-footprint",
        model=thing.name,
        machine=file_names(machine),
        tokens=tokens,
        batch=batch,
        kv_heads=kv_heads,
        dtype=dtype,
        kv_dtype=kv_dtype,
        lecture=lecture,
    )
