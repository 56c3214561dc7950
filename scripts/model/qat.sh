#!/bin/sh
# Trains dculab-tiny with weights of 2 and 4 bits, and judges what comes out beside GPTQ with as many bits: one table.
#
#   scripts/model/qat.sh [WORK]      WORK: folder for temporary files and the checkpoints
#
# SEEDS names what to run, STEPS how long. The model writes all text itself; GPTQ is calibrated on that, and training begins
# at what it gives. SHIP=yes: the 2-bit checkpoint of the first seed becomes dculab-tiny-qat2. DCULAB, PYTHON: see settings.sh.
set -eu
. "$(dirname "$0")/settings.sh"
seeds=${SEEDS:-1 2} steps=${STEPS:-80}

names=$tiny
gptq() { # NAME BITS GROUP CALIBRATION
  rm -rf "${work:?}/$1"
  "$dculab" quantize --model "$tiny" --method gptq --bits "$2" --group-size "$3" --calibration "$4" \
    --output "$work/$1" >/dev/null
  names=$names,$work/$1
}

qat() { # BITS GROUP RATE
  gptq "gptq-$1-own-$seed" "$1" "$2" "$rows.txt"
  "$python" "$here/qat.py" "$tiny" "$work/qat$1-$seed" --rows "$rows.npy" --seed "$seed" --bits "$1" --group-size "$2" \
    --begin "$work/gptq-$1-own-$seed" --steps "$steps" --rate "$3"
  names=$names,$work/qat$1-$seed
}

gptq gptq-2 2 32 "$tiny/calibration.txt"
gptq gptq-4 4 128 "$tiny/calibration.txt"
for seed in $seeds; do
  rows=$work/generated-$seed
  [ -e "$rows.npy" ] || "$python" "$here/self_generated.py" "$tiny" "$rows.npy" --rows $((steps * 4)) --seed "$seed"
  "$python" "$here/rows_text.py" "$tiny" "$rows.npy" "$rows.txt"
  qat 2 32 5e-4
  qat 4 128 2e-4
done
"$dculab" evaluate --model "$names" --reference "$tiny" --text "$tiny/eval/held-out.txt" \
  --choices "$tiny/eval/choice.jsonl" --kv-cache-dtype int8 --activations int8
if [ "${SHIP:-no}" = yes ]; then
  cp "$work/qat2-${seeds%% *}"/* "$models/dculab-tiny-qat2/"
fi
