"""Step times for SGLang's simulator: its scheduler and caches, our prices.

The simulator is sgl-project/sglang, tools/sglang-simulator. What it asks of a predictor is `InferTimePredictor` in
src/sglang_simulator/time_predictor/base.py at commit 2f070b1bf46268e51498d579a062e8e933eb1b25: the constructor takes
(model: ModelInfo, hw: AcceleratorInfo, config: SchedulerConfig, *args, **kwargs), `predict_infer_time(batch)` returns
seconds for a ScheduleBatch, whose `reqs` have `extend_length` new tokens after `past_kv_length` cached ones, and
`get_metrics()` and `reset_metrics()` are for what the predictor itself wants to tell.

    import dculab.sglang
    dculab.sglang.install(machine="k100-ai")   # before the simulator makes its predictor

and in the simulator's configuration `"predictor": {"name": "dculab"}`, with "machine", "stack" or "set" beside it where
`install` did not say them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dculab import _dculab
from dculab._keywords import Settings, texts
from dculab._things import MachineLike, ModelLike, StackLike, machine_of, model_of, stack_of

try:
    from sglang_simulator.time_predictor.base import InferTimePredictor
except ImportError:  # the simulator is not there; the class below works without it

    class InferTimePredictor:  # type: ignore[no-redef]
        """What the simulator's own class keeps."""

        def __init__(self, model: Any, hw: Any, config: Any, *args: Any, **kwargs: Any):
            self.model = model
            self.hw = hw
            self.config = config


# Their names of data types (src/sglang_simulator/spec/data_type.py), and ours.
DTYPES = {"FP16": "f16", "BF16": "bf16", "FP8": "fp8_e4m3", "INT8": "int8", "INT4": "int4"}


class DculabTimePredictor(InferTimePredictor):
    """An `InferTimePredictor` that prices every batch as `dculab.predict` prices a step.

    `machine`: its name or file, without it the accelerator's name in small letters; `stack`: whose kernels, SGLang's if
    not given; `dculab_model`: a model in the place of the simulator's, which is its config.json.
    """

    def __init__(
        self,
        model: Any,
        hw: Any,
        config: Any,
        *args: Any,
        machine: MachineLike | None = None,
        stack: StackLike = "sglang",
        dculab_model: ModelLike | None = None,
        set: Settings = None,
        **kwargs: Any,
    ):
        super().__init__(model, hw, config, *args, **kwargs)
        self._model = model_of(dculab_model if dculab_model is not None else _model_of(model))
        self._machine = machine_of(machine if machine is not None else str(hw.name).lower())
        self._stack = stack_of(stack)
        settings = [f"{key}={value}" for key, value in _settings_of(config)]
        for thing in (self._model, self._machine, self._stack):
            settings += thing._settings()
        self._times = _dculab.StepTimes(
            self._model.name, self._machine.name, self._stack.name, settings + texts(set)
        )
        self.reset_metrics()

    def predict_infer_time(self, batch: Any) -> float:
        """Seconds of a step; 0 of an empty batch. Raises dculab.InputError for one that the model cannot have."""
        sequences = [(int(request.extend_length), int(request.past_kv_length)) for request in batch.reqs]
        seconds = self._times.seconds(sequences)
        self._batches += 1
        self._seconds += seconds
        return seconds

    def get_metrics(self) -> dict[str, Any]:
        """How many batches were predicted since the last reset, and their time together."""
        return {"dculab_batches": self._batches, "dculab_seconds": self._seconds}

    def reset_metrics(self) -> None:
        self._batches = 0
        self._seconds = 0.0


def _model_of(model: Any) -> Any:
    if getattr(model, "hf_config", None):
        config = model.hf_config
        return config if isinstance(config, Mapping) else config.to_dict()
    if getattr(model, "model_path", None):
        return model.model_path
    raise _dculab.InputError("model: ModelInfo has neither hf_config nor model_path; give dculab_model")


def _settings_of(config: Any) -> Iterable[tuple[str, Any]]:
    """What a SchedulerConfig says of the deployment and of formats."""
    tensor_parallel = getattr(config, "tp_size", 1) or 1
    if tensor_parallel > 1:
        yield "deployment.tensor_parallel_size", tensor_parallel
    for name in ("pp_size", "cp_size", "dp_size"):
        if (getattr(config, name, 1) or 1) > 1:
            raise _dculab.InputError(f"{name}: devices that divide the model in this way are not modelled; give 1")
    if (getattr(config, "ep_size", 1) or 1) > 1:
        yield "deployment.expert_parallel_size", config.ep_size
    weights = DTYPES.get(_name(getattr(config, "data_type", None)))
    if weights is not None:
        yield "weights", weights
    kv_dtype = DTYPES.get(_name(getattr(config, "kv_cache_data_type", None)))
    if kv_dtype is not None:
        yield "kv_cache.dtype", kv_dtype


def _name(data_type: Any) -> str:
    return str(getattr(data_type, "name", data_type)).removesuffix("_TENSOR").upper()


def install(**options: Any) -> None:
    """Lets the simulator's configuration name "dculab" as its predictor. `options` go to `DculabTimePredictor`; what
    the configuration says beside the name comes first."""
    from sglang_simulator.simulation.manager.config import ConfigManager

    others = ConfigManager.get_inference_time_predictor.__func__

    def choose(cls: Any, model: Any, hw: Any, sched_config: Any) -> Any:
        asked = dict(cls._get_raw_config().get("predictor", {}))
        if asked.pop("name", None) != "dculab":
            return others(cls, model, hw, sched_config)
        return DculabTimePredictor(model, hw, sched_config, **{**options, **asked})

    ConfigManager.get_inference_time_predictor = classmethod(choose)
