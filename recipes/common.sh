# What the recipes share. Each records one application, small (for tests and demonstrations), large, or aged: little data that is
# written again and again, for drives that are nine tenths full of something else (`recordings/aged`):
#
#     recipes/NAME.sh [small|large|aged] [RECORDING] [options of `ftlab record`...]
#
# FTLAB names the command (`.venv/bin/ftlab` of this repository, else `ftlab`). The application's files go to a folder of their own
# under TMPDIR, which is removed at the end.
set -euo pipefail

name=$(basename "$0" .sh)
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

say() { echo "$name: $*" >&2; }
die() { say "$*"; exit 1; }

# need PROGRAM PACKAGE: the recipe cannot run without it; 77 says that it was skipped.
need() { command -v "$1" >/dev/null || { say "$1 is missing (Debian: $2)"; exit 77; }; }

# A recipe calls itself inside the recording, to do the work.
if [[ ${1:-} == inside ]]; then
    size=$2 work=$3
    inside=true
else
    size=${1:-small}
    [[ $size == small || $size == large || $size == aged ]] || die "$size: expected small, large or aged"
    recording=$(realpath -m "${2:-$name.ftlrec}")
    options=("${@:3}")
    inside=false
    if [[ -z ${FTLAB:-} ]]; then
        FTLAB=$here/../.venv/bin/ftlab
        if [[ -x $FTLAB ]]; then FTLAB=$(realpath "$FTLAB"); else FTLAB=ftlab; fi
    fi
    work=$(mktemp -d "${TMPDIR:-/tmp}/ftlab-$name.XXXXXX")
    trap 'rm -rf "$work"' EXIT
fi

# Records this script's own `inside` part, from a copy: so no recording names the folder that the recipes happen to lie in.
record() {
    mkdir -p "$work/recipe"
    cp "$here/common.sh" "$here/$name.sh" "$@" "$work/recipe/"
    (cd "$work/recipe" && "$FTLAB" record --force -o "$recording" "${options[@]}" -- "./$name.sh" inside "$size" "$work")
}

# of SMALL LARGE AGED: the value for this size.
of() { case $size in small) echo "$1" ;; large) echo "$2" ;; aged) echo "${3?this recipe has no aged}" ;; esac; }
