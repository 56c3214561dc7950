# Sourced by the scripts of this folder: `. "$(dirname "$0")/settings.sh"`. The first argument is the folder for large temporary files;
# DCULAB names the program, PYTHON the interpreter that has the packages of requirements.txt.
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
models=$root/scenarios/models
tiny=$models/dculab-tiny
draft=$models/dculab-tiny-draft
work=${1:-$(mktemp -d)}
python=${PYTHON:-python3}
dculab=${DCULAB:-$root/build/release/cli/dculab}
export PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=PASSIVE
# Freed memory is kept: giving it back after each tensor takes a quarter of the time.
export MALLOC_MMAP_THRESHOLD_=1000000000 MALLOC_TRIM_THRESHOLD_=4000000000
mkdir -p "$work"
