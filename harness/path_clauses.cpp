// What a PathRecorder has seen, in words.
#include "harness/path_recorder.hpp"
#include "harness/printable.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness {
namespace {

constexpr std::size_t most_clauses = 5;
constexpr std::size_t shown_bytes = 16;

struct Feature {
  std::string_view name;
  unsigned reg;  // 1: ecx, 2: edx, 3: ebx
  unsigned bit;
};

/// What cpuid tells of the instructions that arithmetic may be dispatched on.
constexpr std::array<Feature, 10> features_1 = {{{"MMX", 2, 23},
                                                 {"SSE", 2, 25},
                                                 {"SSE2", 2, 26},
                                                 {"SSE3", 1, 0},
                                                 {"SSSE3", 1, 9},
                                                 {"SSE4.1", 1, 19},
                                                 {"SSE4.2", 1, 20},
                                                 {"FMA", 1, 12},
                                                 {"F16C", 1, 29},
                                                 {"AVX", 1, 28}}};
constexpr std::array<Feature, 4> features_7 = {{{"BMI1", 3, 3}, {"BMI2", 3, 8}, {"AVX2", 3, 5}, {"AVX-512F", 3, 16}}};

template <std::size_t Count>
std::string features_text(const std::array<Feature, Count>& features, const std::array<std::uint32_t, 4>& registers) {
  std::vector<std::string_view> present;
  std::vector<std::string_view> absent;
  for (const Feature& feature : features) {
    ((registers.at(feature.reg) >> feature.bit & 1) != 0 ? present : absent).push_back(feature.name);
  }
  if (absent.empty()) return fmt::format("{}", fmt::join(present, ", "));
  return fmt::format("{}; not {}", present.empty() ? "none" : fmt::format("{}", fmt::join(present, ", ")),
                     fmt::join(absent, ", "));
}

std::string vendor_text(const std::array<std::uint32_t, 4>& registers) {
  std::string vendor(12, ' ');
  std::memcpy(vendor.data(), &registers[3], 4);
  std::memcpy(vendor.data() + 4, &registers[2], 4);
  std::memcpy(vendor.data() + 8, &registers[1], 4);
  return fmt::format("{}, leaves up to {}", printable(vendor), registers[0]);
}

}  // namespace

std::vector<std::string> PathRecorder::clauses() const {
  std::vector<std::string> texts;
  for (const Fact& fact : facts_) {
    if (texts.size() == most_clauses) break;
    texts.push_back(clause(fact));
  }
  if (facts_.size() > texts.size()) {
    texts.push_back(fmt::format("depends on {}{} more facts of this kind", is_blind_ ? "at least " : "",
                                facts_.size() - texts.size()));
  }
  return texts;
}

std::string PathRecorder::clause(const Fact& fact) const {
  std::string text = fact.kind == Fact::Kind::data ? data_text(fact) : query_text(fact);
  for (const Branch& branch : fact.branches) {
    if (!branch.taken) {
      text += fmt::format("; {:#x} went on to {:#x}, which depends on it", branch.address, branch.target);
    } else {
      text += fmt::format("; the jump at {:#x}, which depends on it, was {}", branch.address,
                          *branch.taken ? fmt::format("taken, to {:#x}", branch.target) : "not taken");
    }
  }
  return text;
}

std::string PathRecorder::data_text(const Fact& fact) const {
  const Segment* segment = image_.find(fact.address);
  std::string text = fmt::format("reads {} byte{} of writable data at {:#x} ({}): ", fact.size,
                                 fact.size == 1 ? "" : "s", fact.address, printable(segment->name));
  const auto bytes = segment->bytes.subspan(static_cast<std::size_t>(fact.address - segment->address));
  const std::size_t count = std::min({static_cast<std::size_t>(fact.size), shown_bytes, bytes.size()});
  for (const std::byte byte : bytes.first(count)) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  if (count < fact.size) text += "…";
  if (was_set(fact)) return text + ", as --memory sets it";
  return text + fmt::format(" as in the file, which a running program may have changed (--memory {:#x}=HEX sets it)",
                            fact.address);
}

std::string PathRecorder::query_text(const Fact& fact) {
  const bool is_cpuid = fact.kind == Fact::Kind::cpuid;
  std::string text = fmt::format("executes {} at {:#x}", is_cpuid ? "cpuid" : "xgetbv", fact.instruction);
  for (const Answer& answer : fact.answers) {
    const auto& [eax, ecx, edx, ebx] = answer.registers;
    std::string what = fmt::format("eax {:08x} ebx {:08x} ecx {:08x} edx {:08x}", eax, ebx, ecx, edx);
    if (!is_cpuid) what = fmt::format("{:08x}{:08x}", edx, eax);
    if (is_cpuid && answer.leaf == 0) what = vendor_text(answer.registers);
    if (is_cpuid && answer.leaf == 1) what = features_text(features_1, answer.registers);
    if (is_cpuid && answer.leaf == 7 && answer.subleaf == 0) what = features_text(features_7, answer.registers);
    text += fmt::format(", to which this witness answers ({} {:#x}) {}", is_cpuid ? "leaf" : "register",
                        is_cpuid ? answer.leaf : answer.subleaf, what);
  }
  return text + (fact.answers.empty() ? ", which its processor does not have"
                                      : "; code for other processors was not executed");
}

}  // namespace bitwitness
