"""Questions about what was measured: each answers as the program's command of the same name does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dculab._ask import ask
from dculab._keywords import Settings, file_name, file_names, texts
from dculab._progress import Progress
from dculab._things import PathLike

if TYPE_CHECKING:
    from dculab import answers


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
        files=file_names(files),
        machine=file_name(machine),
        model=file_name(model),
        stack=file_name(stack),
        batch=batch,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        set=texts(set),
        points=file_names(points),
        calibrate_on=file_names(calibrate_on),
        serving=file_name(serving),
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
        files=file_names(files),
        machine=file_name(machine),
        model=file_name(model),
        stack=file_name(stack),
        batch=batch,
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        set=texts(set),
        machine_file=file_name(machine_file),
        hold_out=hold_out,
        seed=seed,
        points=file_names(points),
        folder=file_name(folder),
        progress=progress,
    )
