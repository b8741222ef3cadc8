#pragma once
#include "harness/error.hpp"
#include "harness/vectors/vector_file.hpp"
#include "tests/random.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

// Values, words and headers that the tests of vector files share.

namespace bitwitness::tests {

using Bytes = std::vector<std::byte>;

struct VectorSample {
  VectorHeader header;
  Bytes packed;
  std::vector<OutcomeKind> outcomes;
  std::vector<std::uint32_t> words;  // 0 for values that did not return
};

inline VectorHeader sample_header(std::size_t packed_size, std::size_t word_count, std::uint64_t count) {
  VectorHeader header;
  header.tool_version = "0.1.0";
  header.engine = {"2.0.1", "4.0.2", "0.12.3", "A processor"};
  header.engine.self_test = SelfTestSummary{20, 18, {"dpps-order", "unknown: a \"b\""}};
  header.image_name = "stand_in.exe";
  header.image_sha256 = std::string(64, 'a');
  header.stand_in = true;
  header.routine = "routine";
  header.address = 0x103f1d0;
  header.routine_sha256 = std::string(63, '0') + "f";
  header.witness = "unicorn";
  header.environment = {0x037f, 0xff80};
  header.decoder = "decoder";
  header.sources = {"special", "random:1000:1"};
  header.packed_size = packed_size;
  header.word_count = word_count;
  for (std::size_t word = 0; word < word_count; ++word) header.word_names.push_back("w" + std::to_string(word));
  header.word_kind = WordKind::u32;
  const auto bits = static_cast<unsigned>(8 * packed_size);
  header.fields = {{"low", 0, 3}, {"high", 3, bits - 3}};
  header.notes = {"a note"};
  header.count = count;
  return header;
}

/// Draws distinct values, outcomes of which one in `failing` is a failure (none for 0), and words.
inline VectorSample draw_vectors(std::size_t packed_size, std::size_t word_count, std::size_t count,
                                 std::size_t failing = 0, std::uint64_t seed = 1) {
  VectorSample sample;
  sample.header = sample_header(packed_size, word_count, count);
  Random random(seed);
  const auto rises = [](const Bytes& a, const Bytes& b) {
    return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
  };
  std::set<Bytes, decltype(rises)> values(rises);
  while (values.size() < count) values.insert(random.bytes(packed_size));
  for (const Bytes& value : values) {
    sample.packed.insert(sample.packed.end(), value.begin(), value.end());
    const bool fails = failing != 0 && random.one_in(failing);
    sample.outcomes.push_back(fails ? static_cast<OutcomeKind>(1 + random.below(3)) : OutcomeKind::returned);
    for (std::size_t word = 0; word < word_count; ++word) sample.words.push_back(fails ? 0 : random.word());
  }
  return sample;
}

/// Values 0, 1, 2, …, all with the same words: a file of several blocks that has few bytes.
inline VectorSample dense_vectors(std::size_t packed_size, std::size_t word_count, std::size_t count) {
  VectorSample sample;
  sample.header = sample_header(packed_size, word_count, count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < packed_size; ++k) sample.packed.push_back(static_cast<std::byte>(i >> 8 * k & 0xff));
  }
  sample.outcomes.assign(count, OutcomeKind::returned);
  sample.words.assign(count * word_count, 0x3f800000);
  return sample;
}

/// Writes a file in pieces of so many values.
inline Bytes write_vectors(const VectorSample& sample, VectorDetail detail = VectorDetail::words,
                           std::size_t piece = 1'000'000, std::string* digest = nullptr) {
  Bytes file;
  VectorWriter writer(sample.header, detail,
                      [&](std::span<const std::byte> bytes) { file.insert(file.end(), bytes.begin(), bytes.end()); });
  const std::size_t count = sample.outcomes.size();
  const std::size_t packed_size = sample.header.packed_size;
  const std::size_t word_count = sample.header.word_count;
  for (std::size_t first = 0; first < count; first += piece) {
    const std::size_t more = std::min(piece, count - first);
    writer.add(std::span(sample.packed).subspan(first * packed_size, more * packed_size),
               std::span(sample.outcomes).subspan(first, more),
               std::span(sample.words).subspan(first * word_count, more * word_count));
  }
  writer.finish();
  if (digest != nullptr) *digest = writer.digest();
  return file;
}

/// Returns the message of the Error that a call throws; "" when it throws none.
std::string error_message(auto&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Opens a file and reads every block of it.
inline void read_all(std::span<const std::byte> bytes, const std::string& name = "name.vectors") {
  const VectorFile file = VectorFile::parse(bytes, name);
  VectorBlock block;
  for (std::size_t index = 0; index < file.block_count(); ++index) file.read(block, index);
}

inline void read_all(std::string_view text, const std::string& name = "name.toml") {
  read_all(std::as_bytes(std::span(text)), name);
}

}  // namespace bitwitness::tests
