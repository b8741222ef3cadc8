#pragma once
#include "harness/disassembly.hpp"
#include "harness/image.hpp"
#include "harness/probe/call_sites.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

// The straight-line code around a call. For the call_sites module only.

namespace bitwitness::call_lines {

/// Reads backwards from an address: the instructions that most of the bytes before it agree on when decoding begins at
/// each of them, by rising address. Empty when they agree on none.
std::vector<Instruction> instructions_before(const Image& image, std::uint64_t address);

/// Decodes from an address on, through returns and jumps.
std::vector<Instruction> instructions_from(const Image& image, std::uint64_t address, std::size_t bytes);

/// Puts what instructions that run one after the other do to registers and the stack into a call site.
void follow_before(DirectCall& site, std::span<const Instruction> line, bool is_64_bit);
void follow_behind(DirectCall& site, std::span<const Instruction> line, bool is_64_bit);

class Reader {
 public:
  explicit Reader(const Image& image) : image_(image), is_64_bit_(image.format() == ImageFormat::pe32_plus) {}

  /// Reads what stands around a call. Nothing when what is before it decodes in no one way.
  [[nodiscard]] std::optional<DirectCall> read(std::uint64_t address) const;

 private:
  /// Returns where the last way into a straight line from elsewhere leads to, or its start.
  [[nodiscard]] std::uint64_t last_entry(std::span<const Instruction> before, std::span<const Instruction> behind,
                                         std::uint64_t start, std::uint64_t end) const;

  const Image& image_;
  bool is_64_bit_;
};

}  // namespace bitwitness::call_lines
