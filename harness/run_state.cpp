#include "harness/run_state.hpp"

#include "harness/error.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

static_assert(std::endian::native == std::endian::little, "integers and words are copied as they are");

using Bytes = std::vector<std::byte>;

class Writer {
 public:
  void put(std::span<const std::byte> bytes) { out_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size()); }

  void number(std::uint64_t value) { put(std::as_bytes(std::span(&value, 1))); }

  void text(std::string_view text) {
    number(text.size());
    out_ += text;
  }

  void words(const std::vector<std::uint32_t>& words) { put(std::as_bytes(std::span(words))); }

  void reserve(std::size_t size) { out_.reserve(size); }

  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

void put(Writer& out, const Tally& tally) {
  const Counts& counts = tally.counts;
  for (const std::uint64_t count : {counts.run, counts.agreed, counts.differed, counts.faulted, counts.out_of_budget,
                                    counts.unwritten, counts.disputed}) {
    out.number(count);
  }
  for (const std::uint64_t count : tally.differing) out.number(count);
  out.number(tally.max_ulp);
  out.number(tally.differences.by_position().size());
  for (const auto& [position, difference] : tally.differences.by_position()) {
    out.number(position);
    out.put(difference.value);
    out.words(difference.reference);
    out.words(difference.subject);
  }
  out.number(tally.failures.by_position().size());
  for (const auto& [position, failure] : tally.failures.by_position()) {
    out.number(position);
    out.put(failure.value);
    out.number(static_cast<std::uint64_t>(failure.kind));
    out.number(failure.address);
    out.text(failure.instruction);
    out.text(failure.reason);
  }
}

void put(Writer& out, const EnvironmentFindings& found) {
  put(out, found.tally);
  out.number(found.sampled.count);
  out.number(found.sampled.unstable);
  for (const auto& [position, value] : found.sampled.first.by_position()) {
    out.number(position);
    out.put(value);
  }
  const std::vector<Fact> facts = found.facts.all();
  out.number(facts.size());
  for (const Fact& fact : facts) {
    out.text(fact.what);
    out.number(fact.values);
    out.put(fact.first_value);
  }
}

class Reader {
 public:
  Reader(const PlacedBytes& placed, const RunStateShape& shape)
      : placed_(placed),
        shape_(shape),
        chunks_((shape.values.size() + values_per_chunk - 1) / values_per_chunk),
        state_(shape.environments, shape.limit, shape.word_count, true) {}

  RunState read() {
    state_.is_complete = number(1) == 1;
    state_.witness = text();
    read_ranges();
    require(!state_.is_complete || chunks_done_ == chunks_, "is complete without all of its chunks");
    for (std::size_t i = 0; i < shape_.environments; ++i) {
      for (std::uint64_t count = number(left()); count > 0; --count) state_.paths[i].push_back(text());
      read_tally(state_.found.each[i].tally);
      read_sample(state_.found.each[i]);
      read_facts(state_.found.each[i].facts);
      state_.found.effects.changed[i] = number(i == 0 ? 0 : values_done_);
    }
    state_.found.effects.depending = number(shape_.environments == 1 ? 0 : values_done_);
    read_digests();
    require(left() == 0, "has more bytes than its findings take");
    return std::move(state_);
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw Error(fmt::format("{}: offset {}: {}", placed_.file, placed_.offset + last_, why));
  }

  void require(bool holds, std::string_view otherwise) const {
    if (!holds) refuse(otherwise);
  }

  [[nodiscard]] std::size_t left() const { return placed_.bytes.size() - at_; }

  std::span<const std::byte> take(std::uint64_t size) {
    last_ = at_;
    require(size <= left(), "ends within its findings");
    at_ += static_cast<std::size_t>(size);
    return placed_.bytes.subspan(last_, static_cast<std::size_t>(size));
  }

  std::uint64_t number(std::uint64_t most) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    if (value > most) refuse(fmt::format("{} is more than {}, the most that is possible there", value, most));
    return value;
  }

  std::string text() {
    const auto bytes = take(number(left()));
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  std::vector<std::uint32_t> words() {
    std::vector<std::uint32_t> out(shape_.word_count);
    std::memcpy(out.data(), take(out.size() * sizeof(std::uint32_t)).data(), out.size() * sizeof(std::uint32_t));
    return out;
  }

  Bytes value() {
    const auto bytes = take(shape_.values.packed_size());
    return {bytes.begin(), bytes.end()};
  }

  [[nodiscard]] bool is_done(std::uint64_t position) const {
    const std::uint64_t chunk = position / values_per_chunk;
    return std::ranges::any_of(ranges_,
                               [chunk](const auto& range) { return range.first <= chunk && chunk < range.second; });
  }

  /// Reads a position and the value that must stand there; positions rise.
  std::uint64_t position(Bytes& value_there, std::uint64_t least) {
    const std::uint64_t found = number(shape_.values.size() - 1);  // there is one: a chunk is done
    require(found >= least && is_done(found), "is a position out of order, or of a value that was not run");
    value_there = value();
    Bytes expected(value_there.size());
    shape_.values.read(found, expected);
    require(value_there == expected, "is not the value at that position");
    return found;
  }

  void read_ranges() {
    std::uint64_t next = 0;
    for (std::uint64_t count = number(left()); count > 0; --count) {
      const std::uint64_t begin = number(chunks_);
      require(ranges_.empty() || begin > next, "is a range of chunks that does not follow the one before it");
      const std::uint64_t end = number(chunks_);
      require(end > begin, "is the end of a range of no chunks");
      ranges_.emplace_back(begin, end);
      next = end;
      chunks_done_ += end - begin;
      values_done_ += std::min(end * values_per_chunk, shape_.values.size()) - begin * values_per_chunk;
    }
  }

  void read_tally(Tally& tally) {
    Counts& counts = tally.counts;
    counts.run = number(values_done_);
    require(counts.run == values_done_, "is not the number of values in the chunks done");
    std::uint64_t rest = counts.run;
    for (std::uint64_t* count : {&counts.agreed, &counts.differed, &counts.faulted, &counts.out_of_budget,
                                 &counts.unwritten, &counts.disputed}) {
      *count = number(rest);
      rest -= *count;
    }
    require(rest == 0, "and the counts before it do not add up to what was run");
    for (std::uint64_t& count : tally.differing) count = number(counts.differed);
    tally.max_ulp = number(counts.differed == 0 ? 0 : ~std::uint64_t{0});
    read_differences(tally);
    read_failures(tally);
  }

  void read_differences(Tally& tally) {
    const std::uint64_t most = std::min<std::uint64_t>(shape_.limit, tally.counts.differed);
    const std::uint64_t count = number(most);
    require(count == most, "is not the number of differences that are kept of so many");
    std::uint64_t least = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      Difference difference;
      const std::uint64_t found = position(difference.value, least);
      least = found + 1;
      difference.reference = words();
      difference.subject = words();
      require(difference.reference != difference.subject, "has the words of the reference");
      tally.differences.add(found, std::move(difference));
    }
  }

  void read_failures(Tally& tally) {
    const std::uint64_t most = std::min<std::uint64_t>(shape_.limit, tally.counts.without_result());
    const std::uint64_t count = number(most);
    require(count == most, "is not the number of failures that are kept of so many");
    std::uint64_t least = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      Failure failure;
      const std::uint64_t found = position(failure.value, least);
      least = found + 1;
      failure.kind = static_cast<OutcomeKind>(number(static_cast<std::uint64_t>(OutcomeKind::disputed)));
      require(failure.kind != OutcomeKind::returned, "is no way to give no result");
      failure.address = number(~std::uint64_t{0});
      failure.instruction = text();
      failure.reason = text();
      tally.failures.add(found, std::move(failure));
    }
  }

  void read_sample(EnvironmentFindings& found) {
    Sampled& sampled = found.sampled;
    sampled.count = number(found.tally.counts.run);
    sampled.unstable = number(sampled.count);
    if (sampled.unstable == 0) return;
    Bytes first;
    const std::uint64_t at = position(first, 0);
    sampled.first.add(at, std::move(first));
  }

  void read_facts(FactSum& facts) {
    std::string before;
    for (std::uint64_t count = number(left()); count > 0; --count) {
      Fact fact;
      fact.what = text();
      require(fact.what > before, "is a fact out of order");
      before = fact.what;
      fact.values = number(values_done_);
      require(fact.values > 0, "is a fact about no value");
      fact.first_value = value();
      facts.add(fact);
    }
  }

  void read_digests() {
    std::vector<Sha256Bytes> digests(shape_.environments);
    for (const auto& [begin, end] : ranges_) {
      for (std::uint64_t chunk = begin; chunk < end; ++chunk) {
        const std::size_t size = digests.size() * sizeof(Sha256Bytes);
        std::memcpy(digests.data(), take(size).data(), size);
        state_.digests.add(chunk, digests);
      }
    }
  }

  PlacedBytes placed_;
  const RunStateShape& shape_;
  std::uint64_t chunks_;
  RunState state_;
  std::size_t at_ = 0;
  std::size_t last_ = 0;  // where what was read last begins
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_;
  std::uint64_t chunks_done_ = 0;
  std::uint64_t values_done_ = 0;
};

}  // namespace

std::string to_bytes(const RunState& state) {
  constexpr std::size_t room = std::size_t{1} << 16;
  Writer out;
  out.reserve(static_cast<std::size_t>(state.digests.count()) * state.found.each.size() * sizeof(Sha256Bytes) + room);
  out.number(state.is_complete ? 1 : 0);
  out.text(state.witness);
  const auto ranges = state.digests.ranges();
  out.number(ranges.size());
  for (const auto& [begin, end] : ranges) {
    out.number(begin);
    out.number(end);
  }
  for (std::size_t i = 0; i < state.found.each.size(); ++i) {
    out.number(state.paths[i].size());
    for (const std::string& note : state.paths[i]) out.text(note);
    put(out, state.found.each[i]);
    out.number(state.found.effects.changed[i]);
  }
  out.number(state.found.effects.depending);
  state.digests.visit([&out](std::span<const Sha256Bytes> digests) { out.put(std::as_bytes(digests)); });
  return out.take();
}

RunState read_run_state(const PlacedBytes& placed, const RunStateShape& shape) {
  return Reader(placed, shape).read();
}

}  // namespace bitwitness
