#include "harness/replay_groups.hpp"

#include "harness/values.hpp"
#include "harness/vectors/vector_file.hpp"

#include <utility>

#include <fmt/format.h>

namespace bitwitness {

void GroupTally::add(std::uint64_t position, std::span<const std::byte> packed, std::size_t packed_size) {
  ++differing_;
  if (!listed_.wants(position)) return;
  const auto low = packed.first(packed_size);
  const auto high = packed.last(packed_size);
  listed_.add(position, {packed.size() / packed_size, {low.begin(), low.end()}, {high.begin(), high.end()}});
}

void GroupTally::merge(GroupTally&& other) {
  differing_ += other.differing_;
  listed_.merge(std::move(other.listed_));
}

std::vector<std::string> GroupTally::take_notes() {
  std::vector<std::string> notes = {fmt::format(
      "the file holds a digest of each {} values: values are told to differ by groups", vector_group_values)};
  const std::vector<Group> listed = listed_.take();
  for (const Group& group : listed) {
    notes.push_back(fmt::format("the decoder differs on at least one of the {} values {} to {}", group.count,
                                to_hex(group.first), to_hex(group.last)));
  }
  if (differing_ > listed.size()) {
    notes.push_back(fmt::format("{} more groups that differ are not listed", differing_ - listed.size()));
  }
  return notes;
}

}  // namespace bitwitness
