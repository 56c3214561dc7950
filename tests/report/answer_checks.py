"""Do the charts agree with the program's answer: on what has no room in memory, on the block size that it recommends, on how
far figures are off, and where no setting meets the SLO?"""

from page_checks import data_of, text_of

HEADS, BLOCK = "model.num_key_value_heads", "kv_cache.block_size"


def said(browser, section):
    return browser.evaluate(f'document.querySelector("#{section} .says").textContent')


def check_room(browser, result, batch):
    """What does not fit on the first machine is hatched and hollow, and not on the front, which has the recommended blocks."""
    machine = result["machines"][0]
    without = sorted((point["choices"][HEADS], point["choices"][BLOCK]) for point in machine["points"]
                     if point["max_sequences"] < batch)
    assert {heads for heads, _ in without} == {"32"}, without
    cells = [each["datum"] for each in data_of(browser, "#heat-map .mark")]
    assert sorted((str(cell["heads"]), str(cell["block"])) for cell in cells if not cell["fits"]) == without
    assert browser.evaluate('document.querySelectorAll("#heat-map .hatched path").length') == len(without)
    marks = browser.evaluate("""Array.from(document.querySelectorAll("#pareto .mark"),
      mark => [mark.__data__, mark.getAttribute("aria-label")])""")
    assert sum(not point["fits"] for point, _ in marks) == len(without)
    front = [point for point, label in marks if "on the front yes" in label]
    assert len(front) == 5 and all(point["fits"] for point in front), front
    assert {point["block"] for point in front} == {str(machine["recommendation"]["block_size"])}
    blocks = f"blocks of {machine['recommendation']['block_size']}"
    assert blocks in said(browser, "heat-map") and "16 KV heads instead of 1" in said(browser, "pareto")


def check_sensitivities(browser, machine, leans_on):
    """Lines are halved and doubled, all else is changed by 10 %; the most important figure comes first."""
    rows = dict(browser.evaluate("""Array.from(document.querySelectorAll("#assumptions tbody tr"),
      row => [row.cells[0].textContent, row.cells[3].textContent])"""))
    assert any(each["key"].endswith(".line") for each in leans_on), machine
    for each in leans_on:
        assert rows[each["key"]].endswith("(halved or doubled)" if each["key"].endswith(".line") else "(by 10 %)"), rows
    assert sum(change != "" for change in rows.values()) == len(leans_on)
    assert f"depends most on {leans_on[0]['key']}" in said(browser, "assumptions")


def check_shares(browser):
    """A prefill beside a decode: bars of one length first, or bars in time."""
    options = browser.evaluate("""Array.from(document.querySelector("#time-by-bound select[data-choice='bars']").options,
      option => option.value)""")
    assert options == ["share of the step", "time"], options
    lengths = {}
    for mark in data_of(browser, "#time-by-bound .mark"):
        row = mark["datum"]["row"]
        lengths[row] = lengths.get(row, 0) + mark["box"][2]
    assert len(lengths) == 2 and max(lengths.values()) - min(lengths.values()) < 8, lengths


def check_missed_search(browser, result):
    """No setting meets the SLO; of block sizes that tie, the answer's has the ring."""
    sizes = result["block_sizes"][0]
    assert len(sizes["indistinguishable"]) == 2, sizes
    points = {point["point"]: point["choices"] for point in result["served_points"]}
    (ring,) = [each["datum"]["point"] for each in data_of(browser, "#throughput-latency .ring")]
    best = {**result["best"][0]["choices"], BLOCK: sizes["choice"]}
    assert points[ring] == best, (points[ring], best)
    text = said(browser, "throughput-latency")
    assert text.startswith("No setting serves this load within the SLO."), text
    assert "max_num_seqs · max_num_batched_tokens · block size" in text, text
    met = sum(point["meets_constraints"] for point in result["served_points"])
    assert f"{met} of the {len(points)} points meet the search's constraints" in text, text


def check_other_model(browser, result):
    """Another model than the scenario's: no heading has the old one, and each chart names what was predicted."""
    assert "llama" not in text_of(browser, "h1").lower() + text_of(browser, "title").lower(), result["question"]
    about = "qwen3-8b on z100, 16 sequences of 2048 tokens, f16"
    assert text_of(browser, "#about") == about, text_of(browser, "#about")
    caption = text_of(browser, "#roofline .caption")
    assert caption == "qwen3-8b on z100, prefill and decode, 16 sequences of 2048 tokens, f16", caption
