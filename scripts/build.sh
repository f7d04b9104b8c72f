#!/usr/bin/env bash
# Builds the native module into the environment of an interpreter, and shows its progress: build.sh PYTHON [PIP OPTIONS]
#
# build/build.log has all output of the build; if the build fails, the last errors are shown.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1
shift
mkdir -p build
log=build/build.log

# A line of ninja begins with [done/all]. A terminal has one line that changes, a file one for each quarter.
progress() {
  awk -v terminal="$1" '
    match($0, /\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, RSTART + 1, RLENGTH - 2), part, "/")
      if (part[2] < 4) next
      if (terminal) {
        printf "\rbuilding Outcore: %d of %d", part[1], part[2]
        shown = 1
      } else if (int(4 * part[1] / part[2]) > quarter) {
        quarter = int(4 * part[1] / part[2])
        printf "building Outcore: %d of %d\n", part[1], part[2]
      }
      fflush()
    }
    END { if (terminal && shown) printf "\n" }'
}

terminal=0
[ -t 1 ] && terminal=1
echo "building Outcore (some minutes from nothing; $log has the details)"
if ! "$python" -m pip install --verbose --no-build-isolation --no-deps --editable . "$@" 2>&1 |
  tee "$log" | progress "$terminal"; then
  grep -E -A12 'error:|Error' "$log" | tail -n 60 >&2 || tail -n 40 "$log" >&2
  echo "build: Outcore could not be built; $log has all output" >&2
  exit 1
fi
