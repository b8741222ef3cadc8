#pragma once
// What the tests of traces share: routines assembled byte by byte, and texts of what a step says.
#include "harness/error.hpp"
#include "harness/probe/trace.hpp"
#include "harness/probe/trace_numbers.hpp"
#include "harness/probe/trace_report.hpp"
#include "harness/report_parts.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace bitwitness::tests {

inline constexpr std::uint32_t code_address = 0x401000;
inline constexpr std::uint32_t data_address = 0x402000;

/// A library with one routine and a writable section that starts with `data`.
inline Image image_of(std::initializer_list<unsigned> code, std::initializer_list<unsigned> data = {0},
                      bool is_64_bit = false) {
  PeBuilder builder;
  builder.is_64 = is_64_bit;
  builder.sections = {{.name = ".text", .data = bytes_of(code)},
                      {.name = ".data", .characteristics = data_section, .data = bytes_of(data)}};
  const TemporaryFile file(builder.build().bytes);
  return Image::load(file.path());
}

inline Trace trace_at(const Image& image, const std::string& location, std::string_view signature, const Bytes& value,
                      const Environment& environment = {}, const TraceOptions& options = {}) {
  return trace(image, {location, image.resolve(location), parse_signature(signature)}, value, environment, options);
}

inline Trace trace_code(const Image& image, std::string_view signature, const Bytes& value,
                        const Environment& environment = {}, const TraceOptions& options = {}) {
  return trace_at(image, fmt::format("{:#x}", code_address), signature, value, environment, options);
}

/// The only step with that text.
inline const TraceStep& step_of(const Trace& trace, std::string_view text) {
  const auto is_it = [text](const TraceStep& step) { return step.text == text; };
  INFO(text);
  REQUIRE(std::ranges::count_if(trace.steps, is_it) == 1);
  return *std::ranges::find_if(trace.steps, is_it);
}

inline std::string x87_bits(const std::optional<Extended>& value) {
  return value ? trace_numbers::extended_bits(*value) : "empty";
}

/// "st1 A -> st0 B", in the order of the step.
inline std::vector<std::string> x87_texts(const TraceStep& step) {
  const auto side = [](const std::optional<unsigned>& index, const std::optional<Extended>& value) {
    return index ? fmt::format("st{} {}", *index, x87_bits(value)) : x87_bits(value);
  };
  std::vector<std::string> texts;
  for (const X87Operand& operand : step.x87) {
    texts.push_back(
        fmt::format("{} -> {}", side(operand.index_before, operand.before), side(operand.index_after, operand.after)));
  }
  return texts;
}

inline std::string flags_text(const TraceStep& step) {
  std::string text;
  for (const FlagChange& flag : step.flags) text += fmt::format("{}{}", flag.is_set ? '+' : '-', flag.name);
  return text;
}

inline std::string memory_text(const MemoryAccess& access) {
  return fmt::format("{} {} at {:#x} {}: {} -> {}", access.access == Access::write ? "write" : "read", access.size,
                     access.address, access.where,
                     access.before.empty() ? "-" : trace_numbers::bits_text(access.before),
                     access.after.empty() ? "-" : trace_numbers::bits_text(access.after));
}

inline const GeneralOperand& general_of(const TraceStep& step, unsigned number) {
  const auto found =
      std::ranges::find_if(step.general, [number](const GeneralOperand& operand) { return operand.number == number; });
  INFO(step.text << " and register " << number);
  REQUIRE(found != step.general.end());
  return *found;
}

/// Every state that a step tells must be the one the step before left.
inline void check_continuity(const Trace& trace) {
  std::map<unsigned, std::uint64_t> general;
  std::map<unsigned, std::array<std::uint32_t, 4>> xmm;
  std::map<unsigned, Extended> stack;  // by its number from the bottom up
  unsigned depth = 0;
  const auto check = [](auto& known, unsigned name, const auto& before, const auto& after) {
    if (const auto found = known.find(name); found != known.end()) CHECK(found->second == before);
    known[name] = after;
  };
  for (std::size_t i = 0; i < trace.steps.size(); ++i) {
    const TraceStep& step = trace.steps[i];
    INFO(fmt::format("step {}: {:#x} {}", i, step.address, step.text));
    if (i > 0 && trace.steps[i - 1].is_completed) CHECK(trace.steps[i - 1].next == step.address);
    for (const GeneralOperand& operand : step.general) check(general, operand.number, operand.before, operand.after);
    for (const XmmOperand& operand : step.xmm) check(xmm, operand.number, operand.before, operand.after);
    CHECK(step.depth_before == depth);
    for (const X87Operand& operand : step.x87) {
      if (!operand.before) continue;
      REQUIRE(operand.index_before);
      const unsigned number = step.depth_before - 1 - *operand.index_before;
      if (const auto found = stack.find(number); found != stack.end()) CHECK(found->second == *operand.before);
      stack.erase(number);
    }
    for (const X87Operand& operand : step.x87) {
      if (operand.after) stack[step.depth_after - 1 - *operand.index_after] = *operand.after;
    }
    depth = step.depth_after;
    CHECK(stack.size() == depth);
  }
}

inline Image stand_in(const std::string& kind) {
  return Image::load(std::filesystem::path(BITWITNESS_STAND_INS_DIR) / ("stand_in_" + kind + ".exe"));
}

}  // namespace bitwitness::tests
