"""Machines, models and stacks as objects, and what is wrong with a question."""

import json
import pathlib

import pytest

import dculab

DATA = pathlib.Path(dculab.__file__).parent / "data"


def test_what_is_shipped():
    assert dculab.Machine("k100-ai") in dculab.machines()
    assert dculab.Model("llama-3-8b") in dculab.models()
    assert dculab.Stack("vllm-dtk") in dculab.stacks()
    assert "llama3_on_dcu" in dculab.scenarios()
    assert not list(DATA.rglob("*.safetensors"))


def test_figures_of_a_machine():
    machine = dculab.Machine("k100-ai")
    assert machine["clock"].endswith("Hz")
    assert machine.figures["clock"].kind in ("spec", "measured", "assumed")
    slower = machine.replace(clock="700 MHz")
    assert slower["clock"] == "700 MHz" and machine["clock"] != "700 MHz"
    assert slower != machine
    by_object = dculab.predict("llama-3-8b", slower, phase="prefill")
    by_setting = dculab.predict("llama-3-8b", "k100-ai", phase="prefill", set={"machine.clock": "700 MHz"})
    assert by_object.json == by_setting.json
    assert by_object.step_seconds > dculab.predict("llama-3-8b", machine, phase="prefill").step_seconds


def test_a_machine_of_ones_own(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text((DATA / "hwmodels/z100.yaml").read_text().replace("name: z100\n", "name: mine\n"))
    assert dculab.predict("llama-3-8b", file).machine == "mine"
    shipped = dculab.predict("llama-3-8b", "z100")
    assert dculab.predict("llama-3-8b", dculab.Machine(file)).step_seconds == shipped.step_seconds


def test_a_model_from_its_config():
    config = json.loads((DATA / "scenarios/models/llama-3-8b/config.json").read_text())
    shipped = dculab.predict("llama-3-8b", "z100")
    assert dculab.predict(config, "z100").step_seconds == shipped.step_seconds
    named = dculab.Model({**config, "num_key_value_heads": 2}, name="llama-3-8b-gqa2")
    answer = dculab.predict(named, "z100")
    assert answer.model == "llama-3-8b-gqa2"
    assert answer.step_seconds == dculab.predict("llama-3-8b", "z100", kv_heads=2).step_seconds
    assert dculab.Model("llama-3-8b").replace(num_key_value_heads=2).changes == {"num_key_value_heads": 2}
    changed = dculab.predict(dculab.Model("llama-3-8b").replace(num_key_value_heads=2), "z100")
    assert changed.step_seconds == answer.step_seconds


def test_names_on_the_hub():
    shipped = dculab.predict("llama-3-8b", "z100")
    for name in ("Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B"):
        assert dculab.predict(name, "z100") == shipped


def test_stacks():
    ours = dculab.predict("llama-3-8b", "z100")
    theirs = dculab.predict("llama-3-8b", "z100", stack=dculab.Stack("vllm"))
    assert ours.stack == "dculab" and theirs.stack.startswith("vllm")
    assert dculab.Stack("vllm-dtk").show().values


def test_scenarios_as_mappings():
    scenario = {
        "question": "How long does a decode take?",
        "model": "llama-3-8b",
        "machines": ["z100", "k100-ai"],
        "workload": {"phase": "decode", "batch": 16, "context_tokens": 2048},
        "sweep": {"kv_cache.block_size": [16, 64]},
    }
    answer = dculab.study(scenario)
    assert [each.machine for each in answer.machines] == ["z100", "k100-ai"]
    scenario["machines"] = "z100"
    with pytest.raises(dculab.InputError, match="machines"):
        dculab.study(scenario)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"batch": 0}, "batch"),
        ({"batch": "many"}, "batch: must be a whole number, not 'many'"),
        ({"batch": True}, "batch: must be a whole number, not True"),
        ({"context": 1.5}, "context: must be a whole number, not 1.5"),
        ({"phase": "training"}, "phase"),
        ({"stack": "no-such"}, "no-such"),
        ({"set": {"workload.btach": 1}}, "btach"),
    ],
)
def test_bad_questions(keywords, message):
    with pytest.raises(dculab.InputError, match=message) as raised:
        dculab.predict("llama-3-8b", "z100", **keywords)
    assert isinstance(raised.value, ValueError)


def test_missing_questions():
    with pytest.raises(dculab.InputError, match="needs --machine"):
        dculab.recommend(model="llama-3-8b")
    with pytest.raises(dculab.InputError, match="nothing to validate"):
        dculab.validate()
    with pytest.raises(dculab.InputError, match="nothing to learn from"):
        dculab.calibrate()
    with pytest.raises(dculab.InputError, match="no_such_scenario"):
        dculab.simulate("no_such_scenario")
