// libFuzzer target: any bytes to every animation reader and to the scan. Aborts on what must not happen, for the fuzzer
// to see. Preset fuzz builds it; files of a made corpus are good seeds.
#include "tests/animation_samples.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = bitwitness::tests::check_any_bytes(std::as_bytes(std::span(data, size)));
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n", wrong.c_str());
    std::abort();
  }
  return 0;
}
