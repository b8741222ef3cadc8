#include "harness/cli/engine.hpp"

#include "harness/disassembly.hpp"
#include "harness/emulator.hpp"
#include "harness/image.hpp"
#include "harness/self_test.hpp"

#include <array>
#include <cstring>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace bitwitness::cli {

namespace {

/// The processor's brand string: leaves 0x80000002 to 0x80000004 of CPUID, padded with blanks or zeros.
std::string processor_name() {
#if defined(__x86_64__) || defined(__i386__)
  constexpr unsigned first_leaf = 0x80000002;
  if (static_cast<unsigned>(__get_cpuid_max(0x80000000, nullptr)) < first_leaf + 2) return "unknown";
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i) {
    __get_cpuid(first_leaf + i, &words[i * 4], &words[i * 4 + 1], &words[i * 4 + 2], &words[i * 4 + 3]);
  }
  std::array<char, sizeof(words) + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof(words));
  std::string name = text.data();
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name;
#else
  return "unknown";
#endif
}

}  // namespace

Engine this_engine() {
  return {unicorn_version(), capstone_version(), std::string(lief_version()), processor_name()};
}

Engine this_engine(std::string_view witness) {
  Engine engine = this_engine();
  if (witness == "host") return engine;
  static const SelfTestSummary tested = summary_of(run_self_test());
  engine.self_test = tested;
  return engine;
}

}  // namespace bitwitness::cli
