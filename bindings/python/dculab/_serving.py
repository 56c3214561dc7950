"""Questions about requests: each answers as the program's command of the same name does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dculab._ask import ask
from dculab._keywords import Named, ScenarioLike, Settings, file_name, scenario_files, several
from dculab._progress import Progress
from dculab._things import MachineLike, ModelLike, PathLike, StackLike, machine_of, model_of, stack_of

if TYPE_CHECKING:
    from dculab import answers


def _load(
    model: ModelLike | None,
    machine: MachineLike | Sequence[MachineLike] | None,
    stack: StackLike | None,
    set: Settings,
    **load: Any,
) -> tuple[Named, dict[str, Any]]:
    """A question about requests without a scenario file, or what changes one; and what it names, to be kept until the
    answer."""
    named = Named(set)
    if model is not None:
        named.add("model", model_of(model))
    names = []
    for each in several(machine):
        named.add("machine", machine_of(each))
        names.append(named.keywords.pop("machine"))
    if stack is not None:
        named.add("stack", stack_of(stack))
    rate = load.pop("requests_per_second")
    dataset = load.pop("dataset_path")
    return named, {
        "machine": names or None,
        "requests_per_second": None if rate is None else repr(rate),
        "dataset_path": file_name(dataset),
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
    decode_machine: PathLike | None = None,
    any_kv_heads: bool = False,
    trace: PathLike | None = None,
    set: Settings = None,
    progress: Progress = None,
) -> answers.RecommendAnswer:
    """Which sizes and limits an engine should have on a machine, or on each of several.

    A model and a machine are needed, or a scenario file with requests. `ttft`, `tpot`: with their units, "2 s";
    `dataset_path`: recorded requests; `devices`: of a server, and then how they share the model and how many the load
    takes is chosen, on `servers` at most; `decode_machine`: a name or a file, with decode replicas on it and prefill
    replicas on `machine`; `any_kv_heads`: KV heads may change, for the model is retrained; `trace`: steps
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
        scenario=file_name(scenario),
        concurrency=concurrency,
        block_size=block_size,
        devices=devices,
        servers=servers,
        decode_machine=file_name(decode_machine),
        any_kv_heads=any_kv_heads,
        trace=file_name(trace),
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
    with scenario_files(scenario) as files:
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
    with scenario_files(scenario) as files:
        return ask(
            "study",
            scenario=files,
            host=file_name(host),
            sensitivity=sensitivity,
            within=within,
            threads=threads,
            journal=file_name(journal),
            resume=resume,
            yes=yes,
            points=file_name(points),
            progress=progress,
            **load,
        )
