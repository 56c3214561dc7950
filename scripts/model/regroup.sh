#!/bin/sh
# Makes dculab-tiny-gqa4, -gqa2 and -mqa, dculab-tiny with 4, 2 and 1 KV heads, and the table of what each way of merging costs.
#
#   scripts/model/regroup.sh [WORK]      WORK: folder for temporary files
#
# STEPS are those of uptraining; DCULAB, PYTHON: see settings.sh. The rows of a model that is only regrouped have 0 uptrained_steps.
set -eu
. "$(dirname "$0")/settings.sh"
steps=${STEPS:-120}
table=$root/scenarios/accuracy/dculab-tiny.csv

measure() { # FOLDER NAME KV_HEADS METHOD STEPS COMMAND
  "$dculab" evaluate --model "$1" --text "$models/dculab-tiny/eval/held-out.txt" --kv-cache-dtype f32 --decode-steps 0 \
    --choices "$models/dculab-tiny/eval/choice.jsonl,$work/recall.jsonl" --format json |
    "$python" "$here/accuracy.py" --csv "$table" --name "$2" --kv-heads "$3" --method "$4" --steps "$5" --command "$6"
}

regroup() { # METHOD KV_HEADS OPTIONS...
  method=$1 heads=$2
  shift 2
  rm -rf "$work/$method-$heads"
  compared=$method # a plain mean looks at no text
  [ "$method" = mean ] && compared=
  "$dculab" regroup --model dculab-tiny --kv-heads "$heads" "$@" ${compared:+--calibration "$work/calibration.txt"} \
    --output "$work/$method-$heads"
  measure "$work/$method-$heads" dculab-tiny "$heads" "$method" 0 \
    "dculab regroup --model dculab-tiny --kv-heads $heads $*${compared:+ --calibration calibration.txt}"
}

uptrain() { # FOLDER NAME METHOD KV_HEADS
  "$python" "$here/uptrain.py" "$work/$3-$4" "$1" --corpus "$work" --rate 1.5e-3 --phases "mixed-512:512:4:$steps"
  measure "$1" "$2" "$4" "$3" "$steps" "scripts/model/regroup.sh"
}

mkdir -p "$(dirname "$table")"
"$python" "$here/corpus.py" mixed "$work/mixed-512.txt" --documents 4000 --words 380 --seed 2
"$python" "$here/corpus.py" mixed "$work/calibration.txt" --documents 60 --words 380 --seed 21
head -n 60 "$models/dculab-tiny/eval/recall.jsonl" > "$work/recall.jsonl"
measure "$models/dculab-tiny" dculab-tiny 8 none 0 "scripts/model/build.sh"
for heads in 4 2 1; do # with one KV head there is one way to group
  regroup mean $heads --method mean
  regroup mean-weighted $heads --method mean --merge weighted
  regroup mean-svd $heads --method mean --merge svd
done
for heads in 4 2; do
  for kind in cosine norm distance; do
    regroup similarity-$kind $heads --method similarity --similarity $kind
  done
  regroup similarity-cosine-weighted $heads --method similarity --similarity cosine --merge weighted
  for kind in cosine norm distance svd; do
    regroup similarity-$kind-svd $heads --method similarity --similarity $kind --merge svd
  done
done
uptrain "$models/dculab-tiny-gqa4" dculab-tiny similarity-svd-svd 4
uptrain "$models/dculab-tiny-gqa2" dculab-tiny similarity-svd-svd 2
uptrain "$models/dculab-tiny-mqa" dculab-tiny mean-svd 1
uptrain "$work/gqa4-norm" dculab-tiny similarity-norm 4 # not shipped: from a worse start
uptrain "$work/gqa2-mean" dculab-tiny mean 2            # not shipped: it has lost its answers
table=$work/rules.csv # not shipped: the rules of docs/reference/regroup.md#more-rules
for heads in 4 2; do
  for merge in mean fitted svd; do
    regroup query-cosine-$merge $heads --method similarity --compare query --similarity cosine --merge $merge
    regroup output-norm-$merge $heads --method similarity --compare output --similarity norm --merge $merge
    regroup key-norm-$merge $heads --method key-norm --merge $merge
    regroup qcqa-weights-$merge $heads --method qcqa --error weights --seed 1 --merge $merge
    regroup qcqa-activations-$merge $heads --method qcqa --error activations --seed 1 --merge $merge
    regroup qcqa-svd-$merge $heads --method qcqa --error svd --seed 1 --merge $merge
  done
  regroup mean-fitted $heads --method mean --merge fitted
  for kind in cosine norm svd; do
    regroup similarity-$kind-fitted $heads --method similarity --similarity $kind --merge fitted
  done
  regroup similarity-svd-mean $heads --method similarity --similarity svd --merge mean
done
