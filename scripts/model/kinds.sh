#!/bin/sh
# Makes dculab-tiny-qknorm, -cla2 and -mla-moe: dculab-tiny with other kinds of attention, and a mixture of experts.
#
#   scripts/model/kinds.sh [WORK]      WORK: folder for temporary files
#
# PYTHON: see settings.sh. A call of train.py that was stopped goes on with --go-on. All three begin with what can be kept of dculab-tiny (adapt.py).
set -eu
. "$(dirname "$0")/settings.sh"

write() { # KIND FILE OPTIONS...
  kind=$1 file=$2
  shift 2
  "$python" "$here/corpus.py" "$kind" "$file" "$@"
}

train() { # MODEL OPTIONS...
  name=$1
  shift
  "$python" "$here/train.py" "$name" "$models/dculab-tiny-$name" --corpus "$work" --way plain --threads 1 --rate 2e-3 \
    --answer-weight 6 "$@"
}

write recall-drill "$work/many.txt" --documents 12000 --words 20 --most 5 --seed 5
write mixed "$work/mixed-512.txt" --documents 4000 --words 380 --seed 2
write mixed "$work/mixed-1024.txt" --documents 3000 --words 700 --seed 3
for name in qknorm cla2 mla-moe; do
  mkdir -p "$models/dculab-tiny-$name"
  cp "$tiny/tokenizer.json" "$tiny/tokenizer_config.json" "$models/dculab-tiny-$name"
done

train qknorm --adapt "$tiny" --phases mixed-512:512:8:60 mixed-1024:1024:4:30
for name in cla2 mla-moe; do
  train $name --adapt "$tiny" --teach --teach-length 256 --phases many:128:24:100 mixed-512:256:12:50 mixed-512:512:8:70
  train $name --resume --decay 1 --seed 2 --phases mixed-512:512:8:120 mixed-1024:1024:4:50
done

for name in qknorm cla2 mla-moe gqa4 gqa2 mqa; do
  folder=$models/dculab-tiny-$name
  "$python" "$here/evaluate.py" "$folder" "$tiny/eval" --out "$folder/eval-results.json"
done
for name in qknorm cla2 mla-moe; do
  "$python" "$here/plot.py" "$models/dculab-tiny-$name/loss.csv" "$models/dculab-tiny-$name/loss.svg"
done
"$python" "$here/compare.py" "$tiny" "$tiny-gqa4" "$tiny-gqa2" "$tiny-mqa" "$tiny-qknorm" "$tiny-cla2" "$tiny-mla-moe"
