#!/bin/sh
# Judges every way to store the shipped model's weights, then every KV cache, by accuracy, size and speed: two tables.
#
#   scripts/model/judge.sh [WORK]      WORK: folder for the quantized models
#
# DCULAB: see settings.sh. Speed is a decode of 8 sequences with 512 tokens each; a model this small fits the caches, so
# read of it what arithmetic costs, not what memory saves.
set -eu
. "$(dirname "$0")/settings.sh"

models=dculab-tiny
quantize() { # NAME OPTIONS...
  name=$1
  shift
  rm -rf "${work:?}/$name"
  "$dculab" quantize --model dculab-tiny "$@" --calibration "$tiny/calibration.txt" --output "$work/$name" >/dev/null
  models=$models,$name
}

judge() { # OPTIONS...
  "$dculab" evaluate --reference dculab-tiny --text "$tiny/eval/held-out.txt" --choices "$tiny/eval/choice.jsonl" \
    --decode-steps 50 --decode-batch 8 --decode-context 512 "$@"
}

mkdir -p "$work"
for bits in 8 4 3; do quantize gptq-$bits --method gptq --bits $bits --group-size 128; done
quantize gptq-2 --method gptq --bits 2 --group-size 32
for bits in 4 3; do quantize rtn-$bits --method rtn --bits $bits --group-size 128; done
quantize rtn-2 --method rtn --bits 2 --group-size 32
for method in absmax zero-point smoothquant; do quantize $method --method $method; done

cd "$work"
judge --model "$models" --activations exact,int8
judge --model dculab-tiny --kv-cache-dtype f32,f16,bf16,fp8_e4m3,fp8_e5m2,int8,kivi4,kivi2,kvquant4,kvquant3,kvquant2
