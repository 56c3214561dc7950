#!/bin/sh
# Distils dculab-tiny into dculab-tiny-draft in all ways, and judges the students: a table for each seed.
#
#   scripts/model/distill.sh [WORK]      WORK: folder for temporary files
#
# SEEDS names what to run. All students begin as the shipped draft model and take as many steps of as many tokens;
# those that learn from distributions or features read the rows of `labelling`. DCULAB, PYTHON: see settings.sh.
set -eu
. "$(dirname "$0")/settings.sh"

student() { # NAME ROWS FROM
  "$python" "$here/distill.py" "$tiny" "$draft" "$work/$1-$seed" --rows "$work/$2-$seed.npz" --from "$3" \
    --seed "$seed"
}

judge() { # MODEL OPTIONS...: what it predicts, and what its drafts are worth to the teacher
  model=$1
  "$dculab" evaluate --model "$model" --reference "$tiny" --text "$tiny/eval/held-out.txt" \
    --choices "$tiny/eval/choice.jsonl"
  "$dculab" evaluate --model "$tiny" --text "$tiny/eval/held-out.txt" --speculative-model "$model" \
    --num-speculative-tokens 3
}

for seed in ${SEEDS:-1 2}; do
  for way in labelling expansion curation feedback; do
    "$python" "$here/elicitation.py" "$way" "$tiny" "$work/$way-$seed.npz" --student "$draft" --seed "$seed"
    student "$way" "$way" tokens
  done
  student distributions labelling distributions
  student features labelling features
  for way in labelling expansion curation feedback distributions features; do
    judge "$work/$way-$seed"
  done
done
judge "$draft"
