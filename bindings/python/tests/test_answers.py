"""Answers as dataclasses, rows, tables and pages."""

import dataclasses
import json

import pytest

import dculab
from dculab import answers

FEW_REQUESTS = {"workload.requests": 20, "workload.requests_per_second": 1}


@pytest.fixture(scope="module")
def prediction():
    return dculab.predict("llama-3-8b", "k100-ai", batch=16, context=2048)


def as_json(value):
    """What the JSON of a part must be, from its fields alone."""
    if dataclasses.is_dataclass(value):
        found = {}
        for each in dataclasses.fields(value):
            inner = getattr(value, each.name)
            if each.name == "others":
                found.update(as_json(inner))
            elif inner is not None or each.default is dataclasses.MISSING:
                found[each.metadata["key"]] = as_json(inner)
        return found
    if hasattr(value, "items"):
        return {key: as_json(inner) for key, inner in value.items()}
    return [as_json(inner) for inner in value] if isinstance(value, tuple) else value


@pytest.mark.parametrize(
    "ask",
    [
        lambda: dculab.predict("deepseek-v3", "h200", set={"deployment.tensor_parallel_size": 8}),
        lambda: dculab.recommend(model="llama-3-8b", machine="z100", weights="f16"),
        lambda: dculab.simulate("serving/llama3_on_z100", set=FEW_REQUESTS),
        lambda: dculab.study("llama3_on_dcu"),
        lambda: dculab.study(["block_size", "group_size"]),
        lambda: dculab.study("dcu_design"),
        lambda: dculab.study("speculation_on_dcu"),
        lambda: dculab.study("attention_kinds"),
        lambda: dculab.show("z100"),
    ],
)
def test_fields_have_all_of_the_json(ask):
    answer = ask()
    assert as_json(answer) == json.loads(answer.json)


def test_answers_are_frozen_and_typed(prediction):
    assert type(prediction) is answers.PredictAnswer
    assert type(prediction.ops[0]) is answers.Op
    assert isinstance(prediction.step_seconds, float)
    assert prediction.interval_seconds.low < prediction.step_seconds < prediction.interval_seconds.high
    with pytest.raises(dataclasses.FrozenInstanceError):
        prediction.step_seconds = 0.0
    with pytest.raises(TypeError):
        prediction.ops[0].bytes["L2"] = 0.0
    assert prediction == dculab.predict("llama-3-8b", "k100-ai", batch=16, context=2048)


def test_fields_say_what_they_are(prediction):
    found = {each.name: each.metadata for each in dataclasses.fields(prediction)}
    assert found["step_seconds"]["unit"] == "s"
    assert found["step_seconds"]["doc"] == "predicted time of the step"
    assert answers.Op.__doc__.startswith("An op of a step.")


def test_variants_have_classes_of_their_own():
    assert type(dculab.study("block_size")) is not type(dculab.study(["block_size", "group_size"]))
    assert set(answers.ANSWERS) >= {"predict", "recommend", "simulate", "study", "validate", "calibrate"}


def test_printed_it_is_what_the_program_prints(prediction):
    text = str(prediction)
    assert "llama-3-8b" in text and "attention" in text
    assert len(repr(prediction)) < 200


def test_in_notebooks(prediction):
    page = prediction._repr_html_()
    assert page.count("<table>") == len(prediction.tables) > 0
    assert "&lt;" not in prediction.tables[0].title and "<script" not in page
    assert "qkv_proj" in prediction.ops._repr_html_()
    assert "k100-ai" in dculab.Machine("k100-ai")._repr_html_()


def test_texts_of_files_are_no_html(tmp_path):
    folder = tmp_path / "<b>bold"
    folder.mkdir()
    (folder / "config.json").write_text((dculab_data() / "scenarios/models/llama-3-8b/config.json").read_text())
    page = dculab.predict(folder, "z100")._repr_html_()
    assert "<b>" not in page and "&lt;b&gt;bold" in page


def dculab_data():
    import pathlib

    return pathlib.Path(dculab.__file__).parent / "data"


def test_pages_with_charts(prediction, tmp_path):
    prediction.write_page(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html") and "dculab/predict/1" in page


def test_pandas(prediction):
    pandas = pytest.importorskip("pandas")
    frame = prediction.ops.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert len(frame) == len(prediction.ops)
    assert list(frame["seconds"]) == [op.seconds for op in prediction.ops]
    level = next(iter(prediction.ops[0].bytes))
    assert frame[f"bytes.{level}"][0] == prediction.ops[0].bytes[level]
    table = prediction.to_pandas()
    assert len(table) == len(prediction.tables[0].rows)
    sweep = dculab.recommend(model="llama-3-8b", machine="z100", weights="f16").recommendations.to_pandas()
    assert len(sweep) == 1


def test_intervals_are_two_columns():
    pytest.importorskip("pandas")
    answer = dculab.simulate("serving/llama3_on_z100", set=FEW_REQUESTS)
    columns = answer.simulations.to_pandas().columns
    assert any(column.endswith(".low") for column in columns)
