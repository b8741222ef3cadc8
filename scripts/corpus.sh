#!/usr/bin/env bash
# Makes the animation files that verify and census can be run on.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh

usage="usage: scripts/corpus.sh [--no-install]
Installs what is needed (Debian 12), builds what makes the files in preset release, and makes them: 2,708 distinct clips in
the shape of the games' own, always the same ones, about 20 MB. Safe to repeat. --no-install leaves the packages alone."

install=yes
for argument in "$@"; do
  case $argument in
    --no-install) install=no ;;
    -h | --help)
      printf '%s\n' "$usage"
      exit 0
      ;;
    *) fail "unknown argument $argument (see --help)" ;;
  esac
done

if [ $install = yes ]; then install_packages "${build_packages[@]}"; fi
configure_options=(-DBITWITNESS_TESTS=OFF)
build release bitwitness_corpus
step "done: build/release/corpus holds the files, build/release/corpus.json what is in them"
