#!/usr/bin/env bash
# Builds bitwitness and runs every test.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh

usage="usage: scripts/test.sh [--no-install] [--asan]
Installs what is needed (Debian 12), builds preset dev (warnings are errors) and runs every test, those of decoders and
readers under the address and undefined-behaviour sanitizers as well (preset asan-readers). Safe to repeat.
--no-install leaves the packages alone; --asan runs every test under the sanitizers (preset asan)."

install=yes
presets=(asan-readers dev)
for argument in "$@"; do
  case $argument in
    --no-install) install=no ;;
    --asan) presets=(asan dev) ;;
    -h | --help)
      printf '%s\n' "$usage"
      exit 0
      ;;
    *) fail "unknown argument $argument (see --help)" ;;
  esac
done

if [ $install = yes ]; then
  install_packages "${build_packages[@]}" "${test_packages[@]}"
  export BITWITNESS_REQUIRE_FIXTURES=1 # what the packages bring is there: a test that misses it fails
fi
for preset in "${presets[@]}"; do
  build "$preset"
  step "test: preset $preset"
  ctest --test-dir "build/$preset" --output-on-failure --no-tests=error --parallel "$(nproc)"
done
