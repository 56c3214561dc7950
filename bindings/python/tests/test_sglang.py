"""The predictor for SGLang's simulator, against what its source asks of one, as sglang_contract.json has it."""

import dataclasses
import inspect
import json
import pathlib
from types import SimpleNamespace

import pytest

import dculab
from dculab.sglang import DculabTimePredictor

DATA = pathlib.Path(dculab.__file__).parent / "data"
CONTRACT = json.loads((pathlib.Path(__file__).parent / "sglang_contract.json").read_text())


@dataclasses.dataclass
class Request:
    extend_length: int = 0
    past_kv_length: int = 0


@dataclasses.dataclass
class Batch:
    reqs: list = dataclasses.field(default_factory=list)


def llama():
    return SimpleNamespace(hf_config=json.loads((DATA / "scenarios/models/llama-3-8b/config.json").read_text()))


def config(**fields):
    return SimpleNamespace(**{"tp_size": 1, "ep_size": 1, "dp_size": 1, "pp_size": 1, "data_type": None,
                              "kv_cache_data_type": None, **fields})


def hardware(name="H100-SXM"):
    return SimpleNamespace(name=name)


def signature(method):
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(each.kind, "") + each.name for each in inspect.signature(method).parameters.values()]


def test_the_methods_that_the_simulator_calls():
    for name, parameters in CONTRACT["methods"].items():
        ours = signature(getattr(DculabTimePredictor, name))
        # The constructor has more, by keyword.
        assert [each for each in ours if each in parameters] == parameters, name
    predictor = DculabTimePredictor(llama(), hardware(), config())
    for name in CONTRACT["attributes"]:
        assert hasattr(predictor, name)


def test_the_recorded_contract_is_the_simulators():
    base = pytest.importorskip("sglang_simulator.time_predictor.base")
    for name, parameters in CONTRACT["methods"].items():
        assert signature(getattr(base.InferTimePredictor, name)) == parameters
    for kind in ("batch", "request"):
        made = getattr(base, CONTRACT[kind]["class"])()
        assert all(hasattr(made, name) for name in CONTRACT[kind]["attributes"])
    assert issubclass(DculabTimePredictor, base.InferTimePredictor)


@pytest.mark.parametrize("stack", ["sglang", "vllm"])
def test_uniform_batches_are_steps_of_predict(stack):
    predictor = DculabTimePredictor(llama(), hardware(), config(), stack=stack)
    decode = predictor.predict_infer_time(Batch([Request(1, 999)] * 8))
    assert decode == dculab.predict("llama-3-8b", "h100-sxm", stack=stack, batch=8, context=1000).step_seconds
    prefill = predictor.predict_infer_time(Batch([Request(512, 0)] * 2))
    asked = dculab.predict("llama-3-8b", "h100-sxm", stack=stack, phase="prefill", batch=2, context=512)
    assert prefill == asked.step_seconds


def test_any_batch():
    predictor = DculabTimePredictor(llama(), hardware(), config(), machine="k100-ai")
    assert predictor.predict_infer_time(Batch()) == 0.0
    decodes = [Request(1, 100 + each) for each in range(8)]
    alone = predictor.predict_infer_time(Batch(decodes))
    mixed = predictor.predict_infer_time(Batch([*decodes, Request(300, 200)]))
    other_way = predictor.predict_infer_time(Batch([Request(300, 200), *decodes]))
    assert mixed == other_way > alone > 0
    assert isinstance(mixed, float)
    with pytest.raises(dculab.InputError, match="max_position_embeddings"):
        predictor.predict_infer_time(Batch([Request(1, 10000)]))


def test_metrics():
    predictor = DculabTimePredictor(llama(), hardware(), config())
    seconds = predictor.predict_infer_time(Batch([Request(1, 50)]))
    assert predictor.get_metrics() == {"dculab_batches": 1, "dculab_seconds": seconds}
    predictor.reset_metrics()
    assert predictor.get_metrics() == {"dculab_batches": 0, "dculab_seconds": 0.0}


def test_what_the_schedulers_configuration_says():
    batch = Batch([Request(1, 500)] * 4)
    one = DculabTimePredictor(llama(), hardware(), config())
    two = DculabTimePredictor(llama(), hardware(), config(tp_size=2))
    fp8 = DculabTimePredictor(llama(), hardware(), config(data_type=SimpleNamespace(name="FP8_TENSOR")))
    small_cache = DculabTimePredictor(llama(), hardware(), config(kv_cache_data_type="FP8"))
    assert two.predict_infer_time(batch) < one.predict_infer_time(batch)
    assert fp8.predict_infer_time(batch) < one.predict_infer_time(batch)
    assert small_cache.predict_infer_time(batch) != one.predict_infer_time(batch)
    with pytest.raises(dculab.InputError, match="pp_size"):
        DculabTimePredictor(llama(), hardware(), config(pp_size=2))
    with pytest.raises(dculab.InputError, match="no machine"):
        DculabTimePredictor(llama(), hardware("TPU"), config())
