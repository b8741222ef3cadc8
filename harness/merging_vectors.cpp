#include "harness/error.hpp"
#include "harness/merging.hpp"
#include "harness/merging_notes.hpp"
#include "harness/merging_parts.hpp"
#include "harness/report_parts.hpp"

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
  same("the image", a.image_name, b.image_name);
  same("the image's SHA-256", a.image_sha256, b.image_sha256);
  same("the image's format", to_string(a.image_format), to_string(b.image_format));
  same("the image being a stand-in", a.stand_in ? "true" : "false", b.stand_in ? "true" : "false");
  same("the version of bitwitness", a.tool_version, b.tool_version);
  same("the version of unicorn", a.engine.unicorn, b.engine.unicorn);
  same("the version of capstone", a.engine.capstone, b.engine.capstone);
  same("the version of lief", a.engine.lief, b.engine.lief);
  same("the routine", a.routine, b.routine);
  same("the address", report_parts::address_text(a.address), report_parts::address_text(b.address));
  same("the signature", a.signature, b.signature);
  same("the routine's SHA-256", a.routine_sha256, b.routine_sha256);
  same("the witness", a.witness, b.witness);
  same("the environment", report_parts::environment_text(a.environment), report_parts::environment_text(b.environment));
  same("the decoder", a.decoder, b.decoder);
  require_same(first_file, file, "the sources", a.sources, b.sources);
  require_same(first_file, file, "the words", a.word_names, b.word_names);
  require_same(first_file, file, "the fields", fields_text(a.fields), fields_text(b.fields));
  same("the kind of words", std::to_string(static_cast<int>(a.word_kind)), std::to_string(static_cast<int>(b.word_kind)));
  same("the packed size", std::to_string(a.packed_size), std::to_string(b.packed_size));
  same("the number of words", std::to_string(a.word_count), std::to_string(b.word_count));
  same("the detail", to_string(first.detail()), to_string(other.detail()));
}

}  // namespace

void merge_vectors(std::span<const VectorFile> shards, const VectorWriter::Sink& sink) {
  std::vector<ShardFile> files;
  for (const VectorFile& shard : shards) {
    files.push_back({shard.name(), shard.header().shard});
    require_same_source(files.front(), shards.front(), files.back(), shard);
  }
  const std::vector<std::size_t> order = merging_parts::order_of(files);
  std::vector<merging_parts::ShardNotes> notes;
  for (const std::size_t i : order) {
    notes.push_back({files[i].shard, shards[i].header().count == 0, shards[i].header().notes});
  }
  VectorHeader header = shards[order.front()].header();
  header.notes = merging_parts::merge_notes(notes);
  header.shard.clear();
  header.count = 0;
  for (const std::size_t i : order) header.count += shards[i].header().count;
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
