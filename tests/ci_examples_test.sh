#!/usr/bin/env bash
# Runs the commands of scripts/ci-examples/*.yml in a repository made for them: once as it is, where every step must
# succeed, and once with a decoder that was broken, where replay and compare must fail and say why.
#   ci_examples_test.sh PROGRAM SOURCE_FOLDER
set -euo pipefail
program=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PATH=$(dirname "$program"):$PATH

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# The commands of one line; those that install, or need the service itself, are not among them.
github_commands() { sed -n 's/^        run: \([^|].*\)$/\1/p' "$source/scripts/ci-examples/github.yml" | grep -v '^gh '; }
gitlab_commands() {
  awk '/^  [a-z_]+:/ { on = $1 == "script:" || $1 == "after_script:" } on && sub(/^    - /, "")' \
    "$source/scripts/ci-examples/gitlab.yml"
}

# repository FOLDER: what the recipes expect to find.
repository() {
  mkdir -p "$1/vectors"
  cp "$source/tests/plugins/decoder.c" "$1/"
  cp "$source/vectors/recorded/stand_in_x87.packed_quat48.bwv" "$1/vectors/"
  (cd "$1" && bitwitness replay vectors/*.bwv --json baseline.json >/dev/null)
  # The baseline is a report on the same decoder.
  (cd "$1" && cc -O2 -ffp-contract=off -shared -fPIC decoder.c -o decoder.so -lm &&
    bitwitness replay vectors/*.bwv --decoder ./decoder.so:decode --json baseline.json >/dev/null && rm decoder.so)
}

for service in github gitlab; do
  mapfile -t commands < <("${service}_commands")
  [ "${#commands[@]}" -eq 3 ] || fail "$service: ${#commands[@]} commands instead of 3"

  repository "$work/$service"
  for command in "${commands[@]}"; do
    (cd "$work/$service" && bash -euc "$command" >"$work/out" 2>&1) || { cat "$work/out"; fail "$service: $command"; }
  done
  for file in report.json junit.xml comparison.md; do
    [ -s "$work/$service/$file" ] || fail "$service: $file was not written"
  done
  if command -v xmllint >/dev/null 2>&1; then
    xmllint --noout --schema "$source/tests/junit.xsd" "$work/$service/junit.xml" 2>/dev/null ||
      fail "$service: junit.xml does not keep to the schema"
  fi

  # One bit of a mask.
  sed -i 's/word & 0x7fff/word \& 0x7ffe/' "$work/$service/decoder.c"
  statuses=()
  for command in "${commands[@]}"; do
    status=0
    (cd "$work/$service" && bash -euc "$command" >"$work/out" 2>&1) || status=$?
    statuses+=("$status")
  done
  [ "${statuses[*]}" = "0 1 1" ] || fail "$service: a broken decoder ends with ${statuses[*]}"
  grep -qi 'new' "$work/$service/comparison.md" ||
    fail "$service: the comparison does not say what is new"
  grep -qi 'stand-in' "$work/$service/comparison.md" || fail "$service: the comparison hides that the image is a stand-in"
done
echo "the commands of both recipes do what they say"
