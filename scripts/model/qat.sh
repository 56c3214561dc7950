#!/bin/sh
# Makes dculab-tiny-qat2 and -qat4, and judges them beside GPTQ with as many bits on the same text, seed by seed.
#
#   scripts/model/qat.sh [WORK]      WORK: folder for temporary files
#
# SEEDS names what to run: the checkpoints of the first are shipped. The model writes all text itself; GPTQ is
# calibrated on that, and on calibration.txt. DCULAB, PYTHON: see settings.sh.
set -eu
. "$(dirname "$0")/settings.sh"

gptq() { # NAME BITS GROUP CALIBRATION
  rm -rf "${work:?}/$1"
  "$dculab" quantize --model "$tiny" --method gptq --bits "$2" --group-size "$3" --calibration "$4" \
    --output "$work/$1" >/dev/null
}

judge() { # OPTIONS...
  "$dculab" evaluate --reference "$tiny" --text "$tiny/eval/held-out.txt" --choices "$tiny/eval/choice.jsonl" \
    --kv-cache-dtype int8 "$@"
}

shipped=yes
for seed in ${SEEDS:-1 2}; do
  rows=$work/generated-$seed
  [ -e "$rows.npy" ] || "$python" "$here/self_generated.py" "$tiny" "$rows.npy" --rows "${ROWS:-320}" --seed "$seed"
  "$python" "$here/rows_text.py" "$tiny" "$rows.npy" "$rows.txt"
  gptq gptq-2-own-$seed 2 32 "$rows.txt"
  gptq gptq-4-own-$seed 4 128 "$rows.txt"
  "$python" "$here/qat.py" "$tiny" "$work/qat2-$seed" --rows "$rows.npy" --seed "$seed" --bits 2 --group-size 32 \
    --learned-scales --steps "${STEPS:-80}" --rate 5e-4
  "$python" "$here/qat.py" "$tiny" "$work/qat4-$seed" --rows "$rows.npy" --seed "$seed" --bits 4 --group-size 128 \
    --steps $((${STEPS:-80} / 2)) --rate 1e-4
  if [ $shipped = yes ]; then
    for bits in 2 4; do
      mkdir -p "$models/dculab-tiny-qat$bits"
      cp "$work/qat$bits-$seed"/* "$models/dculab-tiny-qat$bits/"
    done
  fi
  shipped=no
  names="$work/gptq-2-own-$seed,$work/qat2-$seed,$work/gptq-4-own-$seed,$work/qat4-$seed"
  judge --model "$names" --activations int8
done
gptq gptq-2 2 32 "$tiny/calibration.txt"
gptq gptq-4 4 128 "$tiny/calibration.txt"
judge --model "$work/gptq-2,$work/gptq-4" --activations int8
