#!/bin/sh
# Distils dculab-tiny into dculab-tiny-draft in all ways, and judges the students: a table, then what their drafts are worth.
#
#   scripts/model/distill.sh [WORK]      WORK: folder for temporary files and the students
#
# SEEDS names what to run. All students begin as the shipped draft model and take as many steps of as many tokens;
# those that learn from distributions or features read the rows of `labelling`. SHIP=yes: dculab-tiny-student is trained
# too, from distributions on more and longer rows. DCULAB, PYTHON: see settings.sh.
set -eu
. "$(dirname "$0")/settings.sh"
seeds=${SEEDS:-1 2}

names=$draft
student() { # NAME ROWS FROM
  "$python" "$here/distill.py" "$tiny" "$draft" "$work/$1-$seed" --rows "$work/$2-$seed.npz" --from "$3" \
    --seed "$seed"
  names=$names,$work/$1-$seed
}

for seed in $seeds; do
  for way in labelling expansion curation feedback; do
    "$python" "$here/elicitation.py" "$way" "$tiny" "$work/$way-$seed.npz" --student "$draft" --seed "$seed"
    student "$way" "$way" tokens
  done
  student distributions labelling distributions
  student features labelling features
done
"$dculab" evaluate --model "$names" --reference "$tiny" --text "$tiny/eval/held-out.txt" --choices "$tiny/eval/choice.jsonl"
for name in $(echo "$names" | tr , ' '); do
  echo "$name drafts"
  "$dculab" evaluate --model "$tiny" --text "$tiny/eval/held-out.txt" --speculative-model "$name" \
    --num-speculative-tokens 3 --num-prompts 128
done
if [ -n "${SHIP:-}" ]; then
  "$python" "$here/elicitation.py" labelling "$tiny" "$work/long.npz" --rows 1536 --length 512 --seed 1
  "$python" "$here/distill.py" "$tiny" "$draft" "$work/student" --rows "$work/long.npz" --from distributions --steps 192 \
    --seed 1
  mkdir -p "$models/dculab-tiny-student"
  cp "$work/student"/* "$models/dculab-tiny-student/"
fi
