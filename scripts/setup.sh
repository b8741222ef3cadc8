# What run.sh and test.sh share: installing packages, configuring, building. Sourced, not run.
# shellcheck shell=bash disable=SC2034  # the package lists are used by the scripts that source this

# Debian 12 names of what the program needs.
build_packages=(
  cmake ninja-build g++ pkg-config nasm
  libunicorn-dev libcapstone-dev liblief-dev libssl-dev
  libfmt-dev libcli11-dev nlohmann-json3-dev libtomlplusplus-dev libzstd-dev
)

# What the tests need besides: executables and a compiler that nobody here wrote, and other readers of PE, XML and HTML.
test_packages=(
  catch2 binutils libxml2-utils parallel chromium python3
  gcc-mingw-w64-i686-win32-runtime gcc-mingw-w64-x86-64-win32-runtime
  g++-mingw-w64-i686-win32 g++-mingw-w64-x86-64-win32
)

step() { printf '== %s\n' "$*"; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 2
}

missing_packages() {
  local package
  for package in "$@"; do
    if [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]; then
      printf '%s\n' "$package"
    fi
  done
}

# install_packages PACKAGE…: installs what is not there yet; touches no network when everything is.
install_packages() {
  local -a missing as_root=()
  command -v apt-get >/dev/null 2>&1 || fail "no apt-get here: install these yourself and pass --no-install: $*"
  mapfile -t missing < <(missing_packages "$@")
  if [ "${#missing[@]}" -eq 0 ]; then
    step "packages: all $# are installed"
    return
  fi
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null 2>&1 ||
      fail "neither root nor sudo: install these yourself and pass --no-install: ${missing[*]}"
    as_root=(sudo)
  fi
  step "packages: installing ${missing[*]}"
  "${as_root[@]}" apt-get -qq update || fail "apt-get update failed"
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}" \
    >/dev/null || fail "apt-get could not install: ${missing[*]}"
}

# build PRESET [TARGET…]: configures build/PRESET, with what configure_options says, and builds the targets in it (all of
# them when none is named).
configure_options=()
build() {
  local preset=$1 log=build/$1-configure.log
  shift
  step "configure: preset $preset in build/$preset"
  mkdir -p build
  if ! cmake --preset "$preset" "${configure_options[@]}" >"$log" 2>&1; then
    cat "$log" >&2
    fail "configuring build/$preset failed"
  fi
  step "build: preset $preset, $(nproc) jobs"
  cmake --build --preset "$preset" --parallel "$(nproc)" ${1+--target "$@"} || fail "building build/$preset failed"
}
