#!/usr/bin/env bash
# Usage: check_device.sh DCULAB SOURCE_DIR. Without a GPU, --device hip:0 must say so in one line and end with 2; with
# one, it must generate text.
set -u
output=$("$1" run --model "$2/scenarios/models/dculab-tiny" --prompt "Once upon a time" --max-tokens 4 --device hip:0 2>&1)
code=$?
echo "$output"
[ "$code" -eq 0 ] && exit 0
[ "$code" -eq 2 ] && [ "$(wc -l <<<"$output")" -eq 1 ] && [[ "$output" == *"no GPU was found"* ]]
