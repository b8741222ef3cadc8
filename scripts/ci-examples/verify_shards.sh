#!/usr/bin/env bash
# Verifies in shards with GNU parallel, and merges their reports into the one that a single run gives, byte for byte.
set -euo pipefail

usage="usage: verify_shards.sh SHARDS FOLDER [OPTION OF verify]…
Runs \`bitwitness verify OPTION…\` in so many shards, as many at a time as there are processors, and leaves their reports and the
merged one (whole.json) in FOLDER. BITWITNESS names the program (default: bitwitness), PARALLEL_OPTIONS what parallel is to be
told besides, as in '--sshlogin 4/node1,4/node2 --workdir .' for machines that share the folder. The exit status is that of the
whole: 0 agree, 1 differ, 2 bad input or a shard that failed, 3 nothing was compared."

case ${1-} in
  -h | --help)
    printf '%s\n' "$usage"
    exit 0
    ;;
esac
if [ $# -lt 2 ] || ! [[ $1 =~ ^[1-9][0-9]{0,5}$ ]] || [ "$1" -lt 2 ]; then
  printf '%s\n' "$usage" >&2
  exit 2
fi
shards=$1 folder=$2
shift 2
bitwitness=${BITWITNESS:-bitwitness}
mkdir -p "$folder"
rm -f "$folder"/shard-*.json "$folder/whole.json"

# A shard that differs (1) or is empty (3) has done its work; whether the whole agrees is merge's to say.
one_shard=$(printf '%q ' "$bitwitness" verify "$@")"--jobs 1 --shard {}/$shards --json $(printf '%q' "$folder")/shard-{}.json"
one_shard="$one_shard || { status=\$?; [ \$status -eq 1 ] || [ \$status -eq 3 ]; }"
# shellcheck disable=SC2086  # several options
if ! seq "$shards" | parallel --will-cite --halt soon,fail=1 ${PARALLEL_OPTIONS-} "$one_shard"; then
  printf 'verify_shards.sh: a shard failed; nothing is merged\n' >&2
  exit 2
fi
exec "$bitwitness" merge "$folder"/shard-*.json --out "$folder/whole.json"
