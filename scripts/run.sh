#!/usr/bin/env bash
# Builds bitwitness and runs its main job on the stand-in executables.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/setup.sh

usage="usage: scripts/run.sh [--no-install]
Installs what is needed (Debian 12), builds preset release, makes animation files, and compares both routines of both
stand-in executables with their native decoders on the packed values in these files and at the limits of every field.
Safe to repeat. --no-install leaves the packages alone."

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
build release bitwitness bitwitness_stand_ins bitwitness_corpus bitwitness_documents

# verify STAND_IN SIX_BYTE_SIGNATURE PAIR_SIGNATURE: the stand-ins are written with different calling conventions.
verify() {
  step "verify: $1"
  build/release/bin/bitwitness verify --image "build/release/stand_ins/$1" --target sws \
    --signature "packed_quat48=$2" --signature "packed_quat48_pair=$3" \
    --values corpus:build/release/corpus special fields --scan
}

verify stand_in_x87.exe 'cdecl(in u8[6], out f32[4])' 'stdcall(in u8[6], in u8[6], out f32[4], out f32[4])'
verify stand_in_sse2.exe 'thiscall(in u8[6], out f32[4])' 'fastcall(in u8[12], out f32[8])'
step "done: both routines of both stand-ins agree with their decoders on every value above"
