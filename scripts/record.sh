#!/usr/bin/env bash
# Records the vectors in vectors/recorded/ again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage="usage: scripts/record.sh PROGRAM STAND_INS_FOLDER [OUT_FOLDER]
Records both forms of both stand-ins, and the half-float routine of Debian's libgcc, into OUT_FOLDER (default:
vectors/recorded). PROGRAM is bin/bitwitness of a build, STAND_INS_FOLDER its stand_ins. Each call writes the same bytes,
with one version of the emulator, zstd and this program. BITWITNESS_MINGW32_DLL_DIR names the folder of
libgcc_s_dw2-1.dll."

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
  printf '%s\n' "$usage" >&2
  exit 2
fi
program=$1
stand_ins=$2
out=${3:-vectors/recorded}
mingw=${BITWITNESS_MINGW32_DLL_DIR:-$(echo /usr/lib/gcc/i686-w64-mingw32/*-win32)}
mkdir -p "$out"

for kind in x87 sse2; do
  "$program" record --image "$stand_ins/stand_in_$kind.exe" --routine packed_quat48 \
    --values special random:4000:48 file:vectors/recorded/nearly_unit.txt \
    --out "$out/stand_in_$kind.packed_quat48.bwv"
done
# Values as wide as a pair of keys have too many special ones; random ones put every eighth near limits.
"$program" record --image "$stand_ins/stand_in_x87.exe" --routine packed_quat48_pair --values random:2000:96 \
  --out "$out/stand_in_x87.packed_quat48_pair.bwv"
"$program" record --image "$stand_ins/stand_in_sse2.exe" --routine packed_quat48_pair --values random:4000:96 \
  --digests-only --out "$out/stand_in_sse2.packed_quat48_pair.bwv"
# The four words of the rule's source, as a text to read and to edit.
"$program" record --image "$stand_ins/stand_in_x87.exe" --routine packed_quat48 \
  --values hex:341278564523 hex:349278564523 hex:341278d64523 hex:349278d64523 --text \
  --note "The four lanes of one key." --out "$out/stand_in_x87.four_lanes.toml"
"$program" record --image "$mingw/libgcc_s_dw2-1.dll" --at symbol:___extendhfsf2 \
  --signature 'cdecl(value u16) -> f32' --decoder half --values all \
  --note "Debian package gcc-mingw-w64-i686-win32-runtime" --out "$out/libgcc_half.bwv"
