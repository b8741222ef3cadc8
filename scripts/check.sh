#!/usr/bin/env bash
# Checks what compilers do not: that each third-party library has its one owner, that dependencies go one way, that libraries
# stay silent, and that files stay readable in one sitting. Prints each breach; exit status 1 if there is one.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

breaches=0
breach() {
  printf '%s\n' "$*"
  breaches=$((breaches + 1))
}

# owned PATTERN OWNER…: only the owners may have a line that matches.
owned() {
  local pattern=$1 file
  shift
  while IFS= read -r file; do
    case " $* " in
      *" $file "*) ;;
      *) breach "$file: has '$pattern', which belongs to $*" ;;
    esac
  done < <(grep -rlE "$pattern" decoders harness tests --include='*.cpp' --include='*.hpp' --exclude-dir=consumer || true)
}

owned '#include <unicorn/' harness/emulator.cpp tests/bench/bare_loop.cpp
owned '#include <LIEF/' harness/pe_tables.cpp
owned '#include <capstone/' harness/disassembly.cpp
owned '#include <openssl/' harness/sha256.cpp
owned '#include <zstd' harness/vectors/vector_codec.cpp
owned '#include <catch2/' tests/catch.hpp
owned '#include <toml' harness/toml_reader.hpp

# forbidden FOLDERS PATTERN WHY
forbidden() {
  local line
  while IFS= read -r line; do breach "$line: $3"; done < <(
    # shellcheck disable=SC2086  # several folders
    grep -rnE "$2" $1 --include='*.cpp' --include='*.hpp' | cut -d: -f1,2 || true
  )
}

forbidden decoders '#include [<"](harness|tests|fmt|nlohmann)/' 'decoders use the standard library only'
forbidden harness '#include "tests/' 'the harness does not know the tests'
while IFS= read -r file; do
  if grep -qE '#include "(decoders|harness/cli)/' "$file"; then breach "$file: the core knows bytes and words, not decoders or the CLI"; fi
  if grep -qE 'std::(cout|cerr|abort|exit)|fmt::print|[^:a-z_]printf\(' "$file"; then breach "$file: libraries neither print nor exit"; fi
done < <(find harness -path harness/cli -prune -o \( -name '*.cpp' -o -name '*.hpp' \) -print)

while IFS= read -r file; do
  lines=$(wc -l <"$file")
  if [ "$lines" -gt 480 ]; then breach "$file: $lines lines, too long for one sitting"; fi
done < <(find decoders harness tests scripts -name '*.cpp' -o -name '*.hpp' -o -name '*.sh')

if [ "$breaches" -ne 0 ]; then
  printf '%s breaches\n' "$breaches"
  exit 1
fi
echo "no breaches"
