#!/bin/sh
# Makes both models from nothing: corpus, tokenizer, training, evaluation, plot.
#
#   scripts/model/build.sh [WORK]      WORK: folder for large temporary files
#
# PYTHON may name the interpreter that has the packages of requirements.txt.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
models=$(cd "$here/../.." && pwd)/scenarios/models
work=${1:-$(mktemp -d)}
python=${PYTHON:-python3}
tiny=$models/dculab-tiny
draft=$models/dculab-tiny-draft
export PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=PASSIVE

mkdir -p "$work" "$tiny/eval" "$draft"
"$python" "$here/corpus.py" first "$work/train-128.txt" --documents 20000 --words 60 --seed 4
"$python" "$here/corpus.py" train "$work/train-256.txt" --documents 80000 --words 180 --seed 1
"$python" "$here/corpus.py" train "$work/train-512.txt" --documents 60000 --words 380 --seed 2
"$python" "$here/corpus.py" train "$work/train-1024.txt" --documents 8000 --words 700 --seed 3
"$python" "$here/tokenizer.py" "$work/train-256.txt" "$tiny" "$draft"

"$python" "$here/train.py" tiny "$tiny" --corpus "$work" --threads 1 --phases 128:24:500 512:8:500 1024:4:150 --stop 900
"$python" "$here/train.py" tiny "$tiny" --corpus "$work" --threads 1 --resume --rate 1.5e-3 --phases 1024:4:80
"$python" "$here/train.py" draft "$draft" --corpus "$work" --threads 1 --phases 128:24:500 512:8:300

"$python" "$here/corpus.py" held-out "$tiny/eval/held-out.txt" --documents 85 --words 600 --seed 9001
"$python" "$here/corpus.py" choice "$tiny/eval/choice.jsonl" --documents 200 --seed 9002
"$python" "$here/corpus.py" recall "$tiny/eval/recall.jsonl" --documents 60 --words 600 --seed 9003
for folder in "$tiny" "$draft"; do
  "$python" "$here/plot.py" "$folder/loss.csv" "$folder/loss.svg"
  "$python" "$here/evaluate.py" "$folder" "$tiny/eval" --out "$folder/eval-results.json"
done
