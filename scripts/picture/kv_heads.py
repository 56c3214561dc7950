"""The picture of the READMEs, from the table that README.md quotes: step time by number of KV heads."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE_STARTS = "KV heads at block size 16"
ROW = re.compile(r"^ *(\d+)( \*)? +([\d.]+) ms .*?([\d.]+) ms +([\d.]+ [MG]iB)")
WORDS = {
    "kv-heads.svg": {
        "title": "Llama-3-8B on a K100-AI: one decode step of 16 sequences of 2000 tokens",
        "heads": "{} KV heads", "own": " (as published)", "attention": "attention", "rest": "everything else",
        "value": "{} ms, KV cache {}",
        "source": "predicted by: dculab study llama3_on_dcu"},
    "kv-heads.zh-CN.svg": {
        "title": "Llama-3-8B 在 K100-AI 上的一个解码步：16 条序列，每条 2000 个 token",
        "heads": "{} 个 KV 头", "own": "（原模型）", "attention": "注意力", "rest": "其余算子",
        "value": "{} ms，KV 缓存 {}",
        "source": "预测命令：dculab study llama3_on_dcu"},
}
STYLE = """text { font: 14px system-ui, sans-serif; fill: #1f2328 } .title { font-size: 16px; font-weight: 600 }
    .page { fill: #ffffff } .attention { fill: #d55e00 } .rest { fill: #0072b2 } .source { font-size: 12px; fill: #59636e }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .page { fill: #0d1117 } .rest { fill: #56b4e9 } .source { fill: #9198a1 } }"""
WIDTH, LEFT, BARS, TOP, PITCH, THICKNESS = 880, 205, 420, 84, 38, 24


def rows():
    """(KV heads, whether they are the model's own, step in ms, attention in ms, KV bytes) of the quoted table."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.split(TABLE_STARTS, 1)[1].split("```", 1)[0].splitlines()
    found = [match for match in map(ROW.match, lines) if match]
    if not found:
        sys.exit("pictures: README.md quotes no table of KV heads")
    return [(row[1], row[2] is not None, float(row[3]), float(row[4]), row[5]) for row in found]


def picture(words, table):
    scale = BARS / max(step for _, _, step, _, _ in table)
    height = TOP + PITCH * len(table) + 32
    parts = [f'<rect class="page" width="{WIDTH}" height="{height}"/>',
             f'<text class="title" x="20" y="32">{words["title"]}</text>',
             '<rect class="rest" x="20" y="48" width="14" height="14"/>',
             f'<text x="40" y="60">{words["rest"]}</text>',
             '<rect class="attention" x="205" y="48" width="14" height="14"/>',
             f'<text x="225" y="60">{words["attention"]}</text>']
    for index, (heads, own, step, attention, kv_bytes) in enumerate(table):
        y = TOP + PITCH * index
        baseline = y + THICKNESS - 7
        rest = (step - attention) * scale
        label = words["heads"].format(heads) + (words["own"] if own else "")
        parts += [f'<text x="{LEFT - 10}" y="{baseline}" text-anchor="end">{label}</text>',
                  f'<rect class="rest" x="{LEFT}" y="{y}" width="{rest:.1f}" height="{THICKNESS}"/>',
                  f'<rect class="attention" x="{LEFT + rest:.1f}" y="{y}" width="{attention * scale:.1f}"'
                  f' height="{THICKNESS}"/>',
                  f'<text x="{LEFT + step * scale + 10:.1f}" y="{baseline}">{words["value"].format(step, kv_bytes)}</text>']
    parts.append(f'<text class="source" x="20" y="{height - 14}">{words["source"]}</text>')
    body = "\n  ".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
            f"  <title>{words['title']}</title>\n  <style>\n    {STYLE}\n  </style>\n  {body}\n</svg>\n")


def pictures():
    """The text of each picture, by the name of its file."""
    table = rows()
    return {name: picture(words, table) for name, words in WORDS.items()}
