#include "harness/proof/lift_memory.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness::proof {

void LiftMemory::add_area(const Region& region, bool writable, std::string what) {
  areas_.push_back({region, writable, std::move(what)});
}

const LiftMemory::Area* LiftMemory::area_of(std::uint64_t address) const {
  const auto at = std::ranges::find_if(areas_, [&](const Area& area) { return area.region.contains(address); });
  return at == areas_.end() ? nullptr : &*at;
}

void LiftMemory::place(std::uint64_t address, NodeId value) {
  for (unsigned i = 0; i < store_.width(value) / 8; ++i) cells_[address + i] = {value, 8 * i};
}

LiftMemory::Cell LiftMemory::cell_at(std::uint64_t address, std::uint64_t from, unsigned bytes) {
  if (const auto known = cells_.find(address); known != cells_.end()) return known->second;
  if (const Area* area = area_of(address)) {
    const Cell cell{store_.unknown(8, fmt::format("byte 0x{:x}: {}", address, area->what)), 0};
    cells_.emplace(address, cell);
    return cell;
  }
  const ProgramRange* range = program_.find(address);
  if (range == nullptr) {
    throw LiftStop{fmt::format("reads {} byte{} at 0x{:x}, which is not mapped", bytes, bytes == 1 ? "" : "s", from)};
  }
  if (range->writable) writable_reads_.insert(range->name);
  return {store_.constant(8, static_cast<unsigned>(range->bytes[address - range->address])), 0};
}

NodeId LiftMemory::load(std::uint64_t address, unsigned bytes) {
  std::array<NodeId, max_width / 8> parts{};
  unsigned count = 0;
  Cell run;  // of bytes that belong together
  unsigned run_bytes = 0;
  const auto end_run = [&] {
    if (run_bytes != 0) parts.at(count++) = store_.extract(run.node, run.first_bit, 8 * run_bytes);
  };
  for (unsigned i = 0; i < bytes; ++i) {
    const Cell cell = cell_at(address + i, address, bytes);
    if (run_bytes != 0 && cell.node == run.node && cell.first_bit == run.first_bit + 8 * run_bytes) {
      ++run_bytes;
      continue;
    }
    end_run();
    run = cell;
    run_bytes = 1;
  }
  end_run();
  return store_.join(std::span(parts).first(count));
}

void LiftMemory::store(std::uint64_t address, NodeId value) {
  const unsigned bytes = store_.width(value) / 8;
  for (const std::uint64_t at : {address, address + bytes - 1}) {
    const Area* area = area_of(at);
    const ProgramRange* range = area == nullptr ? program_.find(at) : nullptr;
    if (area != nullptr ? area->writable : range != nullptr && range->writable) continue;
    throw LiftStop{fmt::format("writes {} byte{} at 0x{:x}, which is {}", bytes, bytes == 1 ? "" : "s", address,
                               area == nullptr && range == nullptr ? "not mapped" : "read-only")};
  }
  place(address, value);
}

std::span<const std::byte> LiftMemory::read_only(std::uint64_t first, std::uint64_t last) const {
  const ProgramRange* range = program_.find(first);
  if (range == nullptr || range->writable || last < first || last - range->address >= range->bytes.size()) return {};
  const auto is_named = [&](const ProgramImport& import) { return import.slot + 8 > first && import.slot <= last; };
  if (std::ranges::any_of(program_.imports, is_named)) return {};
  return range->bytes.subspan(first - range->address, last - first + 1);
}

bool LiftMemory::was_written(std::uint64_t address, std::size_t bytes) const {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (cells_.contains(address + i)) return true;
  }
  return false;
}

}  // namespace bitwitness::proof
