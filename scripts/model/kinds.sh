#!/bin/sh
# Makes dculab-tiny-qknorm, -cla2 and -mla-moe: dculab-tiny with other kinds of attention, and a mixture of experts.
#
#   scripts/model/kinds.sh [WORK]      WORK: folder for temporary files
#
# PYTHON names the interpreter that has the packages of requirements.txt. What stopped goes on with --go-on
# (train.py). All three begin with what can be kept of dculab-tiny (adapt.py).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
models=$(cd "$here/../.." && pwd)/scenarios/models
work=${1:-$(mktemp -d)}
python=${PYTHON:-python3}
tiny=$models/dculab-tiny
export PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=PASSIVE

write() { # KIND FILE OPTIONS...
  kind=$1 file=$2
  shift 2
  "$python" "$here/corpus.py" "$kind" "$file" "$@"
}

make() { # MODEL OPTIONS...
  name=$1 folder=$models/dculab-tiny-$1
  shift
  mkdir -p "$folder"
  cp "$tiny/tokenizer.json" "$tiny/tokenizer_config.json" "$folder"
  "$python" "$here/train.py" "$name" "$folder" --corpus "$work" --adapt "$tiny" --way plain --threads 1 --rate 2e-3 \
    --answer-weight 6 "$@"
  "$python" "$here/plot.py" "$folder/loss.csv" "$folder/loss.svg"
  "$python" "$here/evaluate.py" "$folder" "$tiny/eval" --out "$folder/eval-results.json"
}

mkdir -p "$work"
write recall-drill "$work/many.txt" --documents 12000 --words 20 --most 5 --seed 5
write mixed "$work/mixed-512.txt" --documents 4000 --words 380 --seed 2
