#!/bin/sh
# Makes both models and Medusa heads from nothing: corpus, tokenizer, training, evaluation, plot.
#
#   scripts/model/build.sh [WORK]      WORK: folder for large temporary files
#
# PYTHON: see settings.sh.
set -eu
. "$(dirname "$0")/settings.sh"

write() { # KIND FILE OPTIONS...
  kind=$1 file=$2
  shift 2
  "$python" "$here/corpus.py" "$kind" "$file" "$@"
}

train() { # MODEL FOLDER OPTIONS...
  model=$1 folder=$2
  shift 2
  "$python" "$here/train.py" "$model" "$folder" --corpus "$work" --threads 1 "$@"
}

mkdir -p "$tiny/eval" "$draft"
write first "$work/first.txt" --documents 20000 --words 60 --seed 4
write train "$work/train-256.txt" --documents 80000 --words 180 --seed 1
write train "$work/train-512.txt" --documents 60000 --words 380 --seed 2
write train "$work/train-1024.txt" --documents 8000 --words 700 --seed 3
write recall-drill "$work/few.txt" --documents 30000 --words 20 --most 3 --seed 4
write recall-drill "$work/many.txt" --documents 12000 --words 20 --most 5 --seed 5
write mixed "$work/mixed-512.txt" --documents 4000 --words 380 --seed 2
write mixed "$work/mixed-1024.txt" --documents 3000 --words 700 --seed 3
"$python" "$here/tokenizer.py" "$work/train-256.txt" "$tiny" "$draft"

# English first, then telling facts apart, then both, then long documents.
train tiny "$tiny" --answer-weight 4 --phases first:128:24:500 train-512:512:8:500 train-1024:1024:4:150 --stop 900
train tiny "$tiny" --answer-weight 4 --resume --rate 1.5e-3 --phases train-1024:1024:4:80
train tiny "$tiny" --answer-weight 10 --resume --rate 2e-3 --decay 0.001 --teach --phases few:128:24:600
train tiny "$tiny" --answer-weight 6 --resume --rate 2e-3 --decay 0.001 --teach --phases many:128:24:100 mixed-512:512:8:400 --stop 300
train tiny "$tiny" --answer-weight 6 --resume --rate 2e-3 --decay 1 --phases mixed-1024:1024:4:120
train tiny "$tiny" --answer-weight 6 --resume --rate 1.5e-3 --decay 1 --seed 2 --phases mixed-1024:1024:4:80

train draft "$draft" --answer-weight 4 --phases first:128:24:500 train-512:512:8:300
train draft "$draft" --answer-weight 10 --resume --rate 3e-3 --decay 0.001 --teach --phases few:128:24:600 --stop 300
train draft "$draft" --answer-weight 6 --resume --rate 3e-3 --decay 0.7 --teach --phases many:128:24:60 mixed-512:512:8:340
train draft "$draft" --answer-weight 6 --resume --rate 1.5e-3 --decay 1 --phases mixed-1024:1024:4:60

write held-out "$tiny/eval/held-out.txt" --documents 85 --words 600 --seed 9001
write choice "$tiny/eval/choice.jsonl" --documents 200 --seed 9002
write recall "$tiny/eval/recall.jsonl" --documents 240 --words 640 --seed 9003
# Heads that guess the next tokens but one to four.
write mixed "$work/medusa.txt" --documents 5000 --words 380 --seed 12
"$python" "$here/medusa.py" "$tiny" "$tiny/medusa" --text "$work/medusa.txt" --held-out "$tiny/eval/held-out.txt" \
  --steps 700 --rate 3e-3
for folder in "$tiny" "$draft"; do
  "$python" "$here/plot.py" "$folder/loss.csv" "$folder/loss.svg"
  "$python" "$here/evaluate.py" "$folder" "$tiny/eval" --out "$folder/eval-results.json"
done
