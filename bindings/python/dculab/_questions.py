"""The questions: each answers as the program's command of the same name does."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from dculab._ask import ask
from dculab._progress import Progress
from dculab._things import MachineLike, ModelLike, PathLike, StackLike, machine_of, model_of, stack_of

if TYPE_CHECKING:
    from dculab import answers

# Keys of a scenario with other values: {"deployment.tensor_parallel_size": 2}, or ["deployment.tensor_parallel_size=2"]
Settings = Union[Mapping[str, object], Iterable[str], None]
# A file, a name under scenarios, or what a scenario file has, as a mapping.
ScenarioLike = Union[str, "os.PathLike[str]", Mapping[str, Any]]


def _texts(settings: Settings) -> list[str]:
    if settings is None:
        return []
    if isinstance(settings, str):
        return [settings]
    if isinstance(settings, Mapping):
        return [f"{key}={_value(value)}" for key, value in settings.items()]
    return list(settings)


def _value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _several(values: Any) -> list[Any]:
    if values is None:
        return []
    if isinstance(values, (str, os.PathLike, Mapping)) or not isinstance(values, Iterable):
        return [values]
    return list(values)


def _files(files: PathLike | Sequence[PathLike] | None) -> list[str] | None:
    return None if files is None else [os.fspath(file) for file in _several(files)]


def _file(file: PathLike | None) -> str | None:
    return None if file is None else os.fspath(file)


@contextlib.contextmanager
def _scenario_files(scenarios: ScenarioLike | Sequence[ScenarioLike] | None) -> Iterator[list[str]]:
    """Files of all of them: JSON is YAML."""
    with tempfile.TemporaryDirectory(prefix="dculab-") as folder:
        files = []
        for number, scenario in enumerate(_several(scenarios)):
            if isinstance(scenario, Mapping):
                file = pathlib.Path(folder, f"scenario-{number}.yaml")
                file.write_text(json.dumps({"schema": "dculab/scenario/1", **scenario}), encoding="utf-8")
                scenario = file
            files.append(os.fspath(scenario))
        yield files


class _Named:
    """What a question names, with what is changed of it as settings."""

    def __init__(self, settings: Settings):
        self.settings = _texts(settings)
        self.keywords: dict[str, Any] = {}
        self._kept: builtins.list[Any] = []  # folders of models are there until the answer is

    def add(self, key: str, thing: Any) -> None:
        self._kept.append(thing)
        self.settings += thing._settings()
        self.keywords[key] = thing.name

    def all(self) -> dict[str, Any]:
        return {**self.keywords, "set": self.settings}


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
    named = _Named(set)
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
    named = _Named(set)
    if model is not None:
        named.add("model", model_of(model))
    if machine is not None:
        named.add("machine", machine_of(machine))
    if stack is not None:
        named.add("stack", stack_of(stack))
    return ask(
        "diagnose",
        files=_files(files),
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


def _load(
    model: ModelLike | None,
    machine: MachineLike | Sequence[MachineLike] | None,
    stack: StackLike | None,
    set: Settings,
    **load: Any,
) -> tuple[_Named, dict[str, Any]]:
    """A question about requests without a scenario file, or what changes one; and what it names, to be kept until the
    answer."""
    named = _Named(set)
    if model is not None:
        named.add("model", model_of(model))
    names = []
    for each in _several(machine):
        named.add("machine", machine_of(each))
        names.append(named.keywords.pop("machine"))
    if stack is not None:
        named.add("stack", stack_of(stack))
    rate = load.pop("requests_per_second")
    dataset = load.pop("dataset_path")
    return named, {
        "machine": names or None,
        "requests_per_second": None if rate is None else repr(rate),
        "dataset_path": _file(dataset),
        **load,
        **named.all(),
    }


def recommend(
    scenario: PathLike | None = None,
    *,
    model: ModelLike | None = None,
    machine: MachineLike | Sequence[MachineLike] | None = None,
    stack: StackLike | None = None,
    weights: str | None = None,
    requests: int | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    requests_per_second: float | None = None,
    dataset_path: PathLike | None = None,
    concurrency: int | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    kv_cache_dtype: str | None = None,
    block_size: int | None = None,
    devices: int | None = None,
    servers: int | None = None,
    any_kv_heads: bool = False,
    trace: PathLike | None = None,
    set: Settings = None,
    progress: Progress = None,
) -> answers.RecommendAnswer:
    """Which sizes and limits an engine should have on a machine, or on each of several.

    A model and a machine are needed, or a scenario file with requests. `ttft`, `tpot`: with their units, "2 s";
    `dataset_path`: recorded requests; `devices`: of a server, and then how they share the model and how many the load
    takes is chosen, on `servers` at most; `any_kv_heads`: KV heads may change, for the model is retrained; `trace`: steps
    measured on the machine.
    """
    _kept, load = _load(
        model,
        machine,
        stack,
        set,
        weights=weights,
        kv_cache_dtype=kv_cache_dtype,
        requests=requests,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        requests_per_second=requests_per_second,
        dataset_path=dataset_path,
        ttft=ttft,
        tpot=tpot,
    )
    return ask(
        "recommend",
        scenario=_file(scenario),
        concurrency=concurrency,
        block_size=block_size,
        devices=devices,
        servers=servers,
        any_kv_heads=any_kv_heads,
        trace=_file(trace),
        progress=progress,
        **load,
    )


def simulate(
    scenario: ScenarioLike | Sequence[ScenarioLike] | None = None,
    *,
    model: ModelLike | None = None,
    machine: MachineLike | Sequence[MachineLike] | None = None,
    stack: StackLike | None = None,
    weights: str | None = None,
    kv_cache_dtype: str | None = None,
    requests: int | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    requests_per_second: float | None = None,
    dataset_path: PathLike | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    threads: int | None = None,
    intervals: bool = True,
    set: Settings = None,
    progress: Progress = None,
) -> answers.SimulateAnswer:
    """Requests, served under a virtual clock by the engine's own scheduler.

    They are a scenario's, or those of a model, a machine and a load; with a scenario these stand in the place of its
    own. `dataset_path`: recorded requests; `intervals`: of a single simulation's figures, for which it serves the
    requests twice more; `threads`: simulations at a time, all cores if not given.
    """
    _kept, load = _load(
        model,
        machine,
        stack,
        set,
        weights=weights,
        kv_cache_dtype=kv_cache_dtype,
        requests=requests,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        requests_per_second=requests_per_second,
        dataset_path=dataset_path,
        ttft=ttft,
        tpot=tpot,
    )
    with _scenario_files(scenario) as files:
        return ask("simulate", scenario=files, threads=threads, intervals=intervals, progress=progress, **load)


def study(
    scenario: ScenarioLike | Sequence[ScenarioLike] | None = None,
    *,
    model: ModelLike | None = None,
    machine: MachineLike | Sequence[MachineLike] | None = None,
    stack: StackLike | None = None,
    weights: str | None = None,
    kv_cache_dtype: str | None = None,
    requests: int | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    requests_per_second: float | None = None,
    dataset_path: PathLike | None = None,
    ttft: str | None = None,
    tpot: str | None = None,
    host: PathLike | None = None,
    sensitivity: bool = False,
    within: float = 4.0,
    threads: int | None = None,
    journal: PathLike | None = None,
    resume: bool = False,
    yes: bool = False,
    points: PathLike | None = None,
    set: Settings = None,
    progress: Progress = None,
) -> answers.StudyAnswer:
    """The question of a scenario file, predicted; without one that of a model, a machine and a load.

    `host`: the machine file that `machine: host` means; `sensitivity`: which figure of the machine would change the
    answer if it were up to `within` times larger or smaller; of a search `journal` keeps finished points, to `resume`
    it, `yes` starts one of more than 100 million points, and `points` gets every point as CSV.
    """
    _kept, load = _load(
        model,
        machine,
        stack,
        set,
        weights=weights,
        kv_cache_dtype=kv_cache_dtype,
        requests=requests,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        requests_per_second=requests_per_second,
        dataset_path=dataset_path,
        ttft=ttft,
        tpot=tpot,
    )
    with _scenario_files(scenario) as files:
        return ask(
            "study",
            scenario=files,
            host=_file(host),
            sensitivity=sensitivity,
            within=within,
            threads=threads,
            journal=_file(journal),
            resume=resume,
            yes=yes,
            points=_file(points),
            progress=progress,
            **load,
        )


def validate(
    files: PathLike | Sequence[PathLike] | None = None,
    *,
    machine: PathLike | None = None,
    model: PathLike | None = None,
    stack: PathLike | None = None,
    batch: int | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    set: Settings = None,
    points: PathLike | Sequence[PathLike] | None = None,
    calibrate_on: PathLike | Sequence[PathLike] | None = None,
    serving: PathLike | None = None,
    prompts: int | None = None,
    prefix_tokens: int | None = None,
    seed: int | None = None,
    leave_one_out: str | Sequence[str] | None = None,
    progress: Progress = None,
) -> answers.ValidateAnswer:
    """Predicted against measured: results of benchmark tools, traces, published points or served runs.

    `files`: results of vllm bench, SGLang, GuideLLM, AIPerf or llama-bench, folders of them, or traces. `model`,
    `stack`, `batch`, `prompt_tokens`, `output_tokens` and `set` say of a result what its file does not.

    `points`: CSVs; `serving`: a CSV of served runs. `calibrate_on`: points to learn from first; `leave_one_out`: predict
    the points of each "machine", "family", "vendor", "source", "stack" or "software" from those of all others, of
    served runs each "experiment".
    """
    return ask(
        "validate",
        files=_files(files),
        machine=_file(machine),
        model=_file(model),
        stack=_file(stack),
        batch=batch,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        set=_texts(set),
        points=_files(points),
        calibrate_on=_files(calibrate_on),
        serving=_file(serving),
        prompts=prompts,
        prefix_tokens=prefix_tokens,
        seed=seed,
        leave_one_out=leave_one_out,
        progress=progress,
    )


def calibrate(
    files: PathLike | Sequence[PathLike] | None = None,
    *,
    machine: PathLike | None = None,
    model: PathLike | None = None,
    stack: PathLike | None = None,
    batch: int | None = None,
    prompt_tokens: int | None = None,
    output_tokens: int | None = None,
    set: Settings = None,
    machine_file: PathLike | None = None,
    hold_out: float = 0.0,
    seed: int = 1,
    points: PathLike | Sequence[PathLike] | None = None,
    folder: PathLike | None = None,
    progress: Progress = None,
) -> answers.CalibrateAnswer:
    """Fits a machine and its stack to results of benchmark tools, a machine to traces, or many to published points.

    `files`: results or traces, as for `validate`; `machine`: to start from. `folder`: a new one for the machine and stack
    files that results or `points` teach. Of traces: `machine_file`, where the calibrated machine is written, and
    `hold_out`, the share of the steps to score instead of fit.
    """
    return ask(
        "calibrate",
        files=_files(files),
        machine=_file(machine),
        model=_file(model),
        stack=_file(stack),
        batch=batch,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        set=_texts(set),
        machine_file=_file(machine_file),
        hold_out=hold_out,
        seed=seed,
        points=_files(points),
        folder=_file(folder),
        progress=progress,
    )


def show(what: PathLike, *, set: Settings = None) -> answers.ShowAnswer:
    """Every effective value of a machine, a stack, a model or a scenario, and where it came from."""
    return ask("show", what=os.fspath(what), set=_texts(set))


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
) -> answers.TablesIntensityAnswer:
    """FLOP, bytes and FLOP/byte of every op of a layer.

    `tokens`: of the prompt, or cached so far; `dtype`: of weights, activations and KV; `lecture`: MHA and a plain MLP
    of width 4D.
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
) -> answers.TablesFootprintAnswer:
    """Memory of weights and KV cache, for every number of KV heads and for latents.

    `dtype` is of the weights; `"checkpoint"`: as config.json says."""
    thing = model_of(model)
    return ask(
        "tables-footprint",
        model=thing.name,
        tokens=tokens,
        batch=batch,
        kv_heads=kv_heads,
        dtype=dtype,
        kv_dtype=kv_dtype,
        lecture=lecture,
    )
