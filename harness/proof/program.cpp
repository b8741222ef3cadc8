#include "harness/proof/program.hpp"

#include <algorithm>

namespace bitwitness::proof {

const ProgramRange* Program::find(std::uint64_t address) const {
  const auto behind = std::ranges::upper_bound(ranges, address, {}, &ProgramRange::address);
  if (behind == ranges.begin()) return nullptr;
  const ProgramRange& range = *std::prev(behind);
  return address - range.address < range.bytes.size() ? &range : nullptr;
}

Program program_of(const Image& image) {
  Program program;
  program.is_64_bit = image.format() == ImageFormat::pe32_plus;
  for (const Segment& segment : image.segments()) {
    program.ranges.push_back({segment.address, segment.bytes, segment.writable, segment.name});
  }
  for (const Import& import : image.imports()) {
    program.imports.push_back({import.slot, import.library + "!" + import.name});
  }
  return program;
}

}  // namespace bitwitness::proof
