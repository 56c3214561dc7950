#!/bin/sh
# Trains dculab-tiny with weights of 2 and 4 bits, and judges what comes out beside GPTQ with as many bits: one table.
#
#   scripts/model/qat.sh [WORK]      WORK: folder for temporary files and the checkpoints
#
# SEEDS names what to run, STEPS how long (at 4 bits half of that). The model writes all text itself; GPTQ is calibrated
# on that too, and at 4 bits training begins at what it gives. SHIP=yes: the 2-bit checkpoint of the first seed becomes
# dculab-tiny-qat2. DCULAB, PYTHON: see settings.sh.
set -eu
. "$(dirname "$0")/settings.sh"
seeds=${SEEDS:-1 2} most=${STEPS:-80}

names=$tiny
gptq() { # NAME BITS GROUP CALIBRATION
  rm -rf "${work:?}/$1"
  "$dculab" quantize --model "$tiny" --method gptq --bits "$2" --group-size "$3" --calibration "$4" \
    --output "$work/$1" >/dev/null
  names=$names,$work/$1
}

qat() { # BITS GROUP STEPS RATE OPTIONS...
  bits=$1 group=$2 steps=$3 rate=$4
  shift 4
  "$python" "$here/qat.py" "$tiny" "$work/qat$bits-$seed" --rows "$rows.npy" --seed "$seed" --bits "$bits" \
    --group-size "$group" --steps "$steps" --rate "$rate" "$@"
  names=$names,$work/qat$bits-$seed
}

gptq gptq-2 2 32 "$tiny/calibration.txt"
gptq gptq-4 4 128 "$tiny/calibration.txt"
for seed in $seeds; do
  rows=$work/generated-$seed
  [ -e "$rows.npy" ] || "$python" "$here/self_generated.py" "$tiny" "$rows.npy" --rows $((most * 4)) --seed "$seed"
  "$python" "$here/rows_text.py" "$tiny" "$rows.npy" "$rows.txt"
  gptq "gptq-2-own-$seed" 2 32 "$rows.txt"
  qat 2 32 "$most" 5e-4
  gptq "gptq-4-own-$seed" 4 128 "$rows.txt"
  qat 4 128 $((most / 2)) 2e-4 --begin "$work/gptq-4-own-$seed"
done
"$dculab" evaluate --model "$names" --reference "$tiny" --text "$tiny/eval/held-out.txt" \
  --choices "$tiny/eval/choice.jsonl" --kv-cache-dtype int8 --activations int8
if [ "${SHIP:-no}" = yes ]; then
  cp "$work/qat2-${seeds%% *}"/* "$models/dculab-tiny-qat2/"
fi
