#!/usr/bin/env bash
# Installs a build, builds tests/consumer against what was installed and nothing else, and runs it.
#   install_test.sh BUILD_FOLDER SOURCE_FOLDER CXX
set -euo pipefail
build=$1 source=$2 compiler=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

cmake --install "$build" --prefix "$prefix" >"$work/install.log" || { cat "$work/install.log"; fail "cmake --install"; }
program=$prefix/bin/bitwitness
[ "$("$program" --version)" = "bitwitness $(sed -n 's/^project(bitwitness VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")" ] ||
  fail "the installed program tells another version"
# The stand-in is found beside it, wherever the prefix lies.
"$program" verify --routine packed_quat48 --values hex:341278564523 --signature 'cdecl(in u8[6], out f32[4])' |
  grep -q "^agree: 1 of 1" || fail "the installed program does not verify on its stand-in"

# No header of ours refers to one that is not there, and none needs a third party's.
headers=("$prefix"/include/bitwitness-*)
while IFS= read -r include; do
  [ -f "${headers[0]}/$include" ] || fail "an installed header includes $include, which is not installed"
done < <(grep -rhoE '#include "[^"]+"' "${headers[0]}" | sed 's/#include "\(.*\)"/\1/' | sort -u)
if grep -rnE '#include <(fmt|nlohmann|CLI|toml|LIEF|unicorn|capstone|zstd|openssl)' "${headers[0]}"; then
  fail "an installed header needs a third party's"
fi

if command -v man >/dev/null 2>&1 && command -v groff >/dev/null 2>&1; then
  warnings=$(MANROFFSEQ='' LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l -Tutf8 -Z "$prefix/share/man/man1/bitwitness.1" 2>&1 >/dev/null || true)
  [ -z "$warnings" ] || fail "the manual page: $warnings"
fi
for command in verify record replay compare census probe trace recognize locate audit; do
  grep -q "^\.SS $command\$" "$prefix/share/man/man1/bitwitness.1" || fail "the manual page lacks $command"
done
# What bash offers, asked as bash asks.
offered=$(bash --norc -c '
  source "$1"
  COMP_WORDS=(bitwitness verify --im) COMP_CWORD=2
  _bitwitness
  printf "%s\n" "${COMPREPLY[@]}"
  COMP_WORDS=(bitwitness reco) COMP_CWORD=1
  _bitwitness
  printf "%s\n" "${COMPREPLY[@]}"' bash "$prefix/share/bash-completion/completions/bitwitness")
[ "$offered" = "$(printf '%s\n' --image record recognize)" ] || fail "bash offers: $offered"

vectors=$work/vectors.bwv
"$program" record --routine packed_quat48 --signature 'cdecl(in u8[6], out f32[4])' --values random:20000 \
  --out "$vectors" >/dev/null || fail "record"
cmake -S "$source/tests/consumer" -B "$work/consumer" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_CXX_COMPILER="$compiler" \
  -DCONSUMER_VECTORS="$vectors" >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; fail "configuring the consumer"; }
cmake --build "$work/consumer" >"$work/build.log" 2>&1 || { cat "$work/build.log"; fail "building the consumer"; }
decoded=$("$work/consumer/decodes")
[[ $decoded == *" 3f433af1 bf018814 3e7e3c18 bea2849b" ]] || fail "the consumer decodes: $decoded"
"$work/consumer/agrees" || fail "the consumer's own test"

# Another major or minor version is not taken for this one.
mkdir "$work/wrong"
printf 'cmake_minimum_required(VERSION 3.25)\nproject(w NONE)\nfind_package(bitwitness 99.0 REQUIRED)\n' >"$work/wrong/CMakeLists.txt"
if cmake -S "$work/wrong" -B "$work/wrong/b" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null 2>&1; then
  fail "find_package takes version 0.1 for 99.0"
fi
echo "installed, found, built against and run"
