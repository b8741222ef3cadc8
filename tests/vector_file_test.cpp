#include "harness/vectors/vector_file.hpp"

#include "decoders/registry.hpp"
#include "harness/error.hpp"
#include "harness/sha256.hpp"
#include "tests/catch.hpp"
#include "tests/vector_samples.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

// What a report of the same values and words has as its digest, from its description.
std::string report_digest(const VectorSample& sample) {
  Sha256 all;
  const std::size_t count = sample.outcomes.size();
  for (std::size_t first = 0; first < count; first += 8192) {
    const std::size_t more = std::min<std::size_t>(8192, count - first);
    Sha256 chunk;
    chunk.update(std::span(sample.packed).subspan(first * sample.header.packed_size, more * sample.header.packed_size));
    chunk.update(std::as_bytes(std::span(sample.outcomes).subspan(first, more)));
    chunk.update(std::as_bytes(
        std::span(sample.words).subspan(first * sample.header.word_count, more * sample.header.word_count)));
    const std::string hex = chunk.hex();
    all.update(std::as_bytes(std::span(hex)));
  }
  return all.hex();
}

void check_header(const VectorHeader& got, const VectorHeader& expected) {
  CHECK(got.tool_version == expected.tool_version);
  CHECK(got.engine.unicorn == expected.engine.unicorn);
  CHECK(got.engine.capstone == expected.engine.capstone);
  CHECK(got.engine.lief == expected.engine.lief);
  CHECK(got.engine.cpu == expected.engine.cpu);
  CHECK(got.engine.self_test == expected.engine.self_test);
  CHECK(got.image_name == expected.image_name);
  CHECK(got.image_sha256 == expected.image_sha256);
  CHECK(got.image_format == expected.image_format);
  CHECK(got.stand_in == expected.stand_in);
  CHECK(got.routine == expected.routine);
  CHECK(got.address == expected.address);
  CHECK(got.signature == expected.signature);
  CHECK(got.routine_sha256 == expected.routine_sha256);
  CHECK(got.witness == expected.witness);
  CHECK(got.environment == expected.environment);
  CHECK(got.decoder == expected.decoder);
  CHECK(got.sources == expected.sources);
  CHECK(got.shard == expected.shard);
  CHECK(got.packed_size == expected.packed_size);
  CHECK(got.word_count == expected.word_count);
  CHECK(got.word_names == expected.word_names);
  CHECK(got.word_kind == expected.word_kind);
  CHECK(got.notes == expected.notes);
  CHECK(got.count == expected.count);
  CHECK(std::ranges::equal(got.fields, expected.fields, [](const BitField& a, const BitField& b) {
    return a.name == b.name && a.offset == b.offset && a.width == b.width;
  }));
}

void check_content(const VectorFile& file, const VectorSample& sample) {
  const std::size_t count = sample.outcomes.size();
  const std::size_t packed_size = sample.header.packed_size;
  const std::size_t word_count = sample.header.word_count;
  CHECK(file.digest() == report_digest(sample));
  REQUIRE(file.block_count() == (count + vector_block_values - 1) / vector_block_values);
  VectorBlock block;
  for (std::size_t index = 0; index < file.block_count(); ++index) {
    file.read(block, index);
    const std::size_t first = index * vector_block_values;
    const std::size_t more = std::min(vector_block_values, count - first);
    const auto packed = std::span(sample.packed).subspan(first * packed_size, more * packed_size);
    const auto outcomes = std::span(sample.outcomes).subspan(first, more);
    const auto words = std::span(sample.words).subspan(first * word_count, more * word_count);
    REQUIRE(block.first == first);
    REQUIRE(std::ranges::equal(block.packed, packed));
    REQUIRE(std::ranges::equal(block.outcomes, outcomes));
    REQUIRE(block.digest == vector_digest(packed, outcomes, words));
    if (file.detail() == VectorDetail::words) {
      REQUIRE(std::ranges::equal(block.words, words));
      REQUIRE(block.groups.empty());
      continue;
    }
    REQUIRE(block.words.empty());
    REQUIRE(block.groups.size() == (more + vector_group_values - 1) / vector_group_values);
    for (std::size_t group = 0; group < block.groups.size(); ++group) {
      const std::size_t at = group * vector_group_values;
      const std::size_t in_group = std::min(vector_group_values, more - at);
      REQUIRE(block.groups[group] == vector_digest(packed.subspan(at * packed_size, in_group * packed_size),
                                                   outcomes.subspan(at, in_group),
                                                   words.subspan(at * word_count, in_group * word_count)));
    }
  }
}

void check_round_trip(const VectorSample& sample) {
  for (const VectorDetail detail : {VectorDetail::words, VectorDetail::digests}) {
    std::string digest;
    const Bytes bytes = write_vectors(sample, detail, 5000, &digest);
    const VectorFile file = VectorFile::parse(bytes, "a file");
    CHECK(digest == file.digest());
    CHECK(file.detail() == detail);
    CHECK(file.name() == "a file");
    check_header(file.header(), sample.header);
    check_content(file, sample);
  }
}

Bytes copy_of(const VectorFile& file) {
  Bytes copy;
  VectorWriter writer(file.header(), file.detail(),
                      [&](std::span<const std::byte> bytes) { copy.insert(copy.end(), bytes.begin(), bytes.end()); });
  for (std::size_t index = 0; index < file.block_count(); ++index) writer.add(file.block(index));
  writer.finish();
  return copy;
}

}  // namespace

TEST_CASE("vector files give back values, outcomes and words of every shape") {
  for (const std::size_t packed_size : {1U, 2U, 3U, 6U, 7U, 8U, 9U, 16U, 255U, 256U}) {
    for (const std::size_t word_count : {1U, 4U, 256U}) {
      for (const std::size_t failing : {0U, 1U, 3U}) {
        INFO(packed_size << " bytes, " << word_count << " words, one failure in " << failing);
        check_round_trip(draw_vectors(packed_size, word_count, 70, failing));
      }
    }
  }
}

TEST_CASE("vector files give back any number of values") {
  for (const std::size_t count : {0U, 1U, 2U, 31U, 32U, 33U, 64U, 8191U, 8192U, 8193U, 16384U, 16385U, 20000U}) {
    INFO(count << " values");
    check_round_trip(draw_vectors(6, 2, count, 7, count + 1));
  }
  check_round_trip(dense_vectors(2, 1, 65536));
  check_round_trip(draw_vectors(1, 1, 256));
}

TEST_CASE("the last value of each width follows all others") {
  for (const std::size_t packed_size : {1U, 3U, 8U, 9U, 256U}) {
    VectorSample sample = dense_vectors(packed_size, 1, 2);
    std::fill(sample.packed.begin() + static_cast<std::ptrdiff_t>(packed_size), sample.packed.end(), std::byte{0xff});
    check_round_trip(sample);
  }
}

TEST_CASE("the bytes of a vector file do not depend on the pieces they came in") {
  const VectorSample sample = draw_vectors(6, 3, 17000, 5);
  for (const VectorDetail detail : {VectorDetail::words, VectorDetail::digests}) {
    const Bytes whole = write_vectors(sample, detail);
    for (const std::size_t piece : {1U, 7U, 8191U, 8192U, 8193U, 16384U})
      CHECK(write_vectors(sample, detail, piece) == whole);
    CHECK(copy_of(VectorFile::parse(whole, "whole")) == whole);
  }
  CHECK(VectorFile::parse(write_vectors(sample, VectorDetail::words), "a").digest() ==
        VectorFile::parse(write_vectors(sample, VectorDetail::digests), "b").digest());
}

TEST_CASE("words of values that did not return leave no trace") {
  VectorSample sample = draw_vectors(4, 2, 100, 2);
  const Bytes clean = write_vectors(sample);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < 100; ++i) {
    if (sample.outcomes[i] == OutcomeKind::returned) continue;
    sample.words[2 * i] = 0xdeadbeef;
    ++changed;
  }
  CHECK(changed > 10);
  CHECK(write_vectors(sample) == clean);
}

TEST_CASE("headers keep any text") {
  VectorSample sample = draw_vectors(2, 1, 3);
  sample.header.decoder = "q\"uo'te\\ \t\n\x7f ü … \x01";
  sample.header.notes = {"", std::string("a\0b", 3), std::string(3000, 'x')};
  sample.header.image_format = ImageFormat::pe32_plus;
  sample.header.address = 0xffff'ffff'ffff'ffff;
  sample.header.environment = {0, 0xffff'ffff};
  sample.header.shard = "3/17";
  sample.header.signature = "cdecl(value u16) -> f32";
  sample.header.image_sha256.clear();
  sample.header.fields.clear();
  sample.header.sources.clear();
  for (const WordKind kind : {WordKind::f32, WordKind::i32, WordKind::u32}) {
    sample.header.word_kind = kind;
    check_round_trip(sample);
  }
  sample.header.notes = {"not UTF-8: \xff"};
  sample.header.sources = {"file:/some/where/values.txt"};
  const Bytes bytes = write_vectors(sample);
  const VectorFile file = VectorFile::parse(bytes, "a");
  CHECK(file.header().notes.front() == "not UTF-8: \xef\xbf\xbd");
  CHECK(file.header().sources.front() == "file:values.txt");
}

TEST_CASE("the writer refuses headers that contradict themselves") {
  const auto refuses = [](const std::function<void(VectorHeader&)>& change, const std::string& why) {
    VectorSample sample = draw_vectors(6, 4, 3);
    change(sample.header);
    const std::string message = error_message([&] { VectorWriter(sample.header, VectorDetail::words, [](auto) {}); });
    CHECK_THAT(message, contains_text("vector file cannot be written") && contains_text(why));
  };
  refuses([](VectorHeader& h) { h.packed_size = 0; }, "values of 0 bytes");
  refuses([](VectorHeader& h) { h.packed_size = 257; }, "values of 257 bytes");
  refuses([](VectorHeader& h) { h.word_count = 0; }, "0 words");
  refuses([](VectorHeader& h) { h.word_names.resize(h.word_count = 257); }, "257 words");
  refuses([](VectorHeader& h) { h.word_names.pop_back(); }, "3 names of 4 words");
  refuses([](VectorHeader& h) { h.image_sha256 = "abc"; }, "image's sha256");
  refuses([](VectorHeader& h) { h.routine_sha256 = std::string(64, 'A'); }, "routine's sha256");
  refuses([](VectorHeader& h) { h.shard = "3/2"; }, "3/2");
  refuses([](VectorHeader& h) { h.fields[1].offset = 4; }, "field 'high'");
  refuses([](VectorHeader& h) { h.fields[0].width = 0; }, "field 'low'");
  refuses([](VectorHeader& h) { h.fields.pop_back(); }, "the fields have 3 bits, the values 48");
  refuses([](VectorHeader& h) { h.signature = "cdecl(in u8[5], out f32[4])"; }, "takes 5 bytes and gives 4 words");
  refuses([](VectorHeader& h) { h.signature = "pascal()"; }, "pascal");
  refuses([](VectorHeader& h) { h.notes = {std::string(1U << 20, 'x')}; }, "its header would have");
}

TEST_CASE("the writer refuses values that do not rise or do not fit") {
  const VectorSample sample = draw_vectors(2, 1, 3);
  const auto discard = [](std::span<const std::byte>) {};
  const std::vector<OutcomeKind> one(1, OutcomeKind::returned);
  const std::vector<std::uint32_t> word(1, 0);
  const Bytes low = {std::byte{0xff}, std::byte{0x01}};
  const Bytes high = {std::byte{0x00}, std::byte{0x02}};
  SECTION("fallen between calls") {
    VectorWriter writer(sample.header, VectorDetail::words, discard);
    writer.add(high, one, word);
    CHECK_THAT(error_message([&] { writer.add(low, one, word); }), contains_text("must rise: ff 01 comes after 00 02"));
  }
  SECTION("repeated between calls") {
    VectorWriter writer(sample.header, VectorDetail::words, discard);
    writer.add(low, one, word);
    CHECK_THAT(error_message([&] { writer.add(low, one, word); }), contains_text("must rise"));
  }
  SECTION("repeated within a call") {
    VectorWriter writer(sample.header, VectorDetail::words, discard);
    const Bytes twice = {low[0], low[1], low[0], low[1]};
    const std::vector<OutcomeKind> outcomes(2, OutcomeKind::returned);
    const std::vector<std::uint32_t> words(2, 0);
    CHECK_THAT(error_message([&] { writer.add(twice, outcomes, words); }), contains_text("must rise"));
  }
  SECTION("spans of other sizes") {
    VectorWriter writer(sample.header, VectorDetail::words, discard);
    CHECK_THAT(error_message([&] { writer.add(std::span(low).first(1), one, word); }), contains_text("do not fit"));
    CHECK_THAT(error_message([&] { writer.add(low, one, {}); }), contains_text("do not fit"));
  }
  SECTION("more and fewer values than stated") {
    VectorSample more = sample;
    more.header.count = 2;
    CHECK_THAT(error_message([&] { write_vectors(more); }), contains_text("more values than the 2"));
    more.header.count = 4;
    CHECK_THAT(error_message([&] { write_vectors(more); }), contains_text("3 values, but the header"));
  }
  SECTION("digests within a block") {
    const Bytes bytes = write_vectors(sample, VectorDetail::digests);
    const VectorBlock block = VectorFile::parse(bytes, "a").block(0);
    VectorHeader header = sample.header;
    header.count = 4;
    VectorWriter writer(header, VectorDetail::digests, discard);
    writer.add(Bytes(2), one, word);
    CHECK_THAT(error_message([&] { writer.add(block); }), contains_text("where a block begins only"));
  }
  SECTION("digests of another size") {
    const Bytes bytes = write_vectors(sample, VectorDetail::digests);
    VectorBlock block = VectorFile::parse(bytes, "a").block(0);
    block.groups.clear();
    VectorWriter writer(sample.header, VectorDetail::digests, discard);
    CHECK_THAT(error_message([&] { writer.add(block); }), contains_text("does not fit"));
  }
}

TEST_CASE("blocks are read from several threads") {
  const VectorSample sample = draw_vectors(5, 2, 40000, 9);
  const Bytes bytes = write_vectors(sample);
  const VectorFile file = VectorFile::parse(bytes, "a");
  std::atomic<std::size_t> right{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&] {
        for (std::size_t index = 0; index < file.block_count(); ++index) {
          const VectorBlock block = file.block(index);
          if (block.digest == vector_digest(block.packed, block.outcomes, block.words)) ++right;
        }
      });
    }
  }
  CHECK(right == 4 * file.block_count());
}

TEST_CASE("vector files are opened by path") {
  const auto path = std::filesystem::temp_directory_path() / ("vector_file_test_" + std::to_string(::getpid()));
  const VectorSample sample = draw_vectors(6, 4, 100'000);  // more than a file that is read at once
  const Bytes bytes = write_vectors(sample);
  CHECK(bytes.size() > (1U << 20));
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  {
    const VectorFile file = VectorFile::open(path.string());
    const VectorFile copy = file;
    check_content(copy, sample);
    CHECK_THAT(copy.place(1), contains_text(path.string() + ": block 1 at offset 0x"));
  }
  std::filesystem::remove(path);
  CHECK_THAT(error_message([&] { VectorFile::open(path.string()); }), contains_text(path.string()));
}

TEST_CASE("the values of a whole game take at most 16 MB with their words and 5 MB without") {
  constexpr std::size_t count = 891'984;
  const decoders::Decoder* decoder = decoders::find_decoder("packed_quat48");
  REQUIRE(decoder != nullptr);
  VectorSample sample;
  sample.header = sample_header(6, 4, count);
  sample.header.word_kind = WordKind::f32;
  Random random(11);
  std::vector<std::uint64_t> values;
  while (values.size() < count) {
    while (values.size() < count) values.push_back(random.next() >> 16);
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  sample.packed.resize(6 * count);
  sample.words.resize(4 * count);
  sample.outcomes.assign(count, OutcomeKind::returned);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(sample.packed.data() + 6 * i, &values[i], 6);
    decoder->decode(std::span(sample.packed).subspan(6 * i, 6), std::span(sample.words).subspan(4 * i, 4));
  }
  CHECK(write_vectors(sample, VectorDetail::words).size() <= 16'000'000);
  CHECK(write_vectors(sample, VectorDetail::digests).size() <= 5'000'000);
}
