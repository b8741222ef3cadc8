#include "harness/error.hpp"
#include "harness/facts.hpp"
#include "harness/merging.hpp"
#include "harness/merging_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace bitwitness {

namespace {

using merging_parts::require_same;
using merging_parts::ShardFile;

static_assert(vector_block_values == values_per_chunk,
              "shards are cut between blocks, so that they can be put together");

std::vector<std::string> fields_text(const std::vector<BitField>& fields) {
  std::vector<std::string> texts;
  for (const BitField& field : fields) texts.push_back(fmt::format("{} {}+{}", field.name, field.offset, field.width));
  return texts;
}

void require_same_source(const ShardFile& first_file, const VectorFile& first, const ShardFile& file,
                         const VectorFile& other) {
  const VectorHeader& a = first.header();
  const VectorHeader& b = other.header();
  const auto same = [&](std::string_view name, std::string_view of_first, std::string_view of_other) {
    require_same(first_file, file, name, of_first, of_other);
  };
  require_same(first_file, file, merging_parts::source_of(a), merging_parts::source_of(b));
  require_same(first_file, file, "", merging_parts::subject_of(a), merging_parts::subject_of(b));
  require_same(first_file, file, "the fields", fields_text(a.fields), fields_text(b.fields));
  same("the packed size", std::to_string(a.packed_size), std::to_string(b.packed_size));
  same("the number of words", std::to_string(a.word_count), std::to_string(b.word_count));
  same("the detail", to_string(first.detail()), to_string(other.detail()));
}

/// Notes that all shards begin with, then what each says besides, with its name before it.
std::vector<std::string> merged_notes(std::span<const VectorHeader* const> shards) {
  const std::vector<std::string>& first = shards.front()->notes;
  std::size_t common = first.size();
  for (const VectorHeader* shard : shards) {
    const auto [at, other] = std::ranges::mismatch(first, shard->notes);
    common = std::min(common, static_cast<std::size_t>(at - first.begin()));
  }
  std::vector<std::string> out(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(common));
  for (const VectorHeader* shard : shards) {
    for (const std::string& note : std::span(shard->notes).subspan(common)) {
      out.push_back("shard " + shard->shard + ": " + note);
    }
  }
  return out;
}

/// Puts the headers of shards, given in the order of their values, together.
VectorHeader merged_header(std::span<const VectorHeader* const> shards) {
  VectorHeader out = *shards.front();
  out.notes = merged_notes(shards);
  out.shard.clear();
  out.count = 0;
  out.recorded = {};
  RecordedRun& recorded = out.recorded;
  recorded.limit =
      std::ranges::min(shards, {}, [](const VectorHeader* shard) { return shard->recorded.limit; })->recorded.limit;
  FactSum facts;
  for (const VectorHeader* shard : shards) {
    if (out.count == 0) recorded.path = shard->recorded.path;
    out.count += shard->count;
    add_isolation(recorded.isolation, shard->recorded.isolation);
    facts.add(shard->recorded.facts);
    recorded.facts_left_out += shard->recorded.facts_left_out;
    merging_parts::append_up_to(recorded.failures, static_cast<std::size_t>(recorded.limit), shard->recorded.failures);
  }
  recorded.facts = facts.take();
  fit_header(out);
  return out;
}

}  // namespace

void merge_vectors(std::span<const VectorFile> shards, const VectorWriter::Sink& sink) {
  std::vector<ShardFile> files;
  for (const VectorFile& shard : shards) {
    files.push_back({shard.name(), shard.header().shard});
    if (shard.has_known_differences()) {
      throw Error(
          fmt::format("{}: its known differences would be lost: take them into a file of their own", shard.name()));
    }
    require_same_source(files.front(), shards.front(), files.back(), shard);
  }
  const std::vector<std::size_t> order = merging_parts::order_of(files);
  std::vector<const VectorHeader*> headers;
  for (const std::size_t i : order) headers.push_back(&shards[i].header());
  const VectorHeader header = merged_header(headers);
  std::uint64_t begin = 0;
  for (const std::size_t i : order) {
    merging_parts::require_range(files[i], header.count, begin, shards[i].header().count);
    begin += shards[i].header().count;
  }

  VectorWriter writer(header, shards.front().detail(), sink);
  VectorBlock block;
  std::vector<std::byte> last;
  for (const std::size_t i : order) {
    for (std::size_t number = 0; number < shards[i].block_count(); ++number) {
      shards[i].read(block, number);
      const auto first_value = std::span(block.packed).first(header.packed_size);
      if (!last.empty() && !is_less(last, first_value)) {
        throw Error(fmt::format("{}: value {} belongs into an earlier shard", files[i].file, to_hex(first_value)));
      }
      const auto last_value = std::span(block.packed).last(header.packed_size);
      last.assign(last_value.begin(), last_value.end());
      writer.add(block);
    }
  }
  writer.finish();
}

}  // namespace bitwitness
