#pragma once
#include "harness/disassembly.hpp"
#include "harness/image.hpp"
#include "harness/probe/location_scan.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

// Where the function around a place in code starts. For the location module only.

namespace bitwitness::location {

/// A place where a function may start.
struct FunctionStart {
  std::uint64_t address = 0;
  unsigned weight = 0;  ///< higher is likelier
  std::string reason;   ///< "called from 3 places", "in the function table", …
};

/// Says what an instruction does that is looked for; nothing for one that does not.
using InstructionTest = std::function<std::optional<std::string>(const Instruction&)>;

/// A start from which straight disassembly reaches the wanted instruction.
struct ReachedFrom {
  FunctionStart start;
  std::uint64_t address = 0;  ///< of the instruction
  std::string what;           ///< what the test said of it
};

/// Returns the likeliest starts, best first, from which disassembling in a straight line reaches an instruction that
/// holds the byte at `position` and passes the test. Bytes that are no instruction are stepped over. Empty when none
/// does.
std::vector<ReachedFrom> find_starts(const CodeMap& map, std::uint64_t position, const InstructionTest& test);

/// Says whether an address itself looks like a function's start, from what refers to it and what stands around it.
FunctionStart judge_start(const CodeMap& map, std::uint64_t address);

/// Returns where a jump that stands alone at an address leads, or nothing.
std::optional<std::uint64_t> thunk_target(const Image& image, std::uint64_t address);

}  // namespace bitwitness::location
