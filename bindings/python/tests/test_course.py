"""The notebook of the course runs, and its figures are those of the tutorial's commands."""

import json
import pathlib

import pytest

import dculab

NOTEBOOK = pathlib.Path(__file__).parents[1] / "course.ipynb"
CHAPTERS = 11


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    read = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path_factory.mktemp("course")
    nbclient.NotebookClient(read, timeout=900, resources={"metadata": {"path": str(folder)}}).execute()
    return read


def outputs_of(notebook, chapter):
    """The results of the code cells below its title."""
    found, is_inside = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            is_inside = cell.source.startswith(f"## {chapter}. ")
        elif is_inside:
            found += [each.data for each in cell.outputs if each.output_type == "execute_result"]
    return found


def test_the_notebook_is_stored_without_outputs():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in cells)


@pytest.mark.whole
def test_every_chapter_answers(notebook):
    for chapter in range(1, CHAPTERS + 1):
        assert outputs_of(notebook, chapter), chapter
    titles = [cell.source for cell in notebook.cells if cell.source.startswith("## ")]
    assert len(titles) == CHAPTERS


@pytest.mark.whole
def test_answers_are_shown_as_tables(notebook):
    for chapter in (2, 3, 4, 7, 8, 10, 11):
        assert any("<table>" in each.get("text/html", "") for each in outputs_of(notebook, chapter)), chapter


@pytest.mark.whole
def test_figures_are_those_of_the_commands(notebook, program):
    step = json.loads(program("predict", "--model", "llama-3-8b", "--machine", "z100", "--weights", "f16", "--context",
                              "2048", "--format", "json")[1])
    assert repr(step["step_seconds"]) in outputs_of(notebook, 1)[0]["text/plain"]
    footprint = json.loads(program("tables", "footprint", "--model", "llama-2-7b", "--tokens", "2048", "--batch", "16",
                                   "--format", "json")[1])
    assert outputs_of(notebook, 4)[1]["text/plain"] == repr(footprint["kv_bytes_per_token"])
    advice = program("recommend", "--model", "llama-3-8b", "--machine", "z100", "--weights", "f16")[1]
    assert "bound by" in advice
    assert dculab.recommend(model="llama-3-8b", machine="z100", weights="f16").heading[0] in advice
