// Vector files that were damaged, edited or made to do harm. The format is taken from vectors/README.md, not from the
// code.

#include "harness/sha256.hpp"
#include "harness/vectors/vector_file.hpp"
#include "tests/catch.hpp"
#include "tests/held_memory.hpp"
#include "tests/vector_samples.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr std::size_t preamble = 16;
constexpr std::size_t hash_size = 32;

template <typename Integer>
Integer number_at(const Bytes& file, std::size_t at) {
  Integer value{};
  std::memcpy(&value, file.data() + at, sizeof value);
  return value;
}

template <typename Integer>
void put(Bytes& file, std::size_t at, Integer value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

Bytes hash_of(std::initializer_list<std::span<const std::byte>> parts) {
  Sha256 hash;
  for (const auto part : parts) hash.update(part);
  const Sha256Bytes digest = hash.digest();
  return {digest.begin(), digest.end()};
}

void put(Bytes& file, std::size_t at, const Bytes& bytes) {
  std::ranges::copy(bytes, file.begin() + static_cast<std::ptrdiff_t>(at));
}

// Where the parts of a good file lie.
struct Layout {
  struct Block {
    std::size_t head = 0;
    std::size_t payload = 0;
    std::size_t end = 0;
  };
  std::size_t header_end = 0;  // behind its digest
  std::vector<Block> blocks;
  std::size_t trailer = 0;
};

Layout layout_of(const Bytes& file, std::size_t packed_size) {
  constexpr std::size_t trailer_size = 8 + 2 * hash_size;
  Layout layout;
  layout.header_end = preamble + number_at<std::uint32_t>(file, 12) + hash_size;
  std::size_t at = layout.header_end;
  while (at + trailer_size < file.size()) {
    const std::size_t payload = at + 4 + packed_size + 3 * hash_size;
    const std::size_t end = payload + number_at<std::uint32_t>(file, at);
    layout.blocks.push_back({at, payload, end});
    at = end;
  }
  layout.trailer = at;
  return layout;
}

// Makes every digest that protects bytes right again, as an attacker would; the content's digests stay.
void reseal(Bytes& file, const Layout& layout, std::size_t packed_size) {
  const std::span<const std::byte> all(file);
  const std::size_t header_digest = layout.header_end - hash_size;
  put(file, header_digest, hash_of({all.first(header_digest)}));
  Bytes seals;
  for (std::uint64_t number = 0; number < layout.blocks.size(); ++number) {
    const auto& [head, payload, end] = layout.blocks[static_cast<std::size_t>(number)];
    const std::size_t seal = payload - hash_size;
    put(file, seal - hash_size, hash_of({all.subspan(payload, end - payload)}));
    put(file, seal,
        hash_of({all.subspan(header_digest, hash_size), std::as_bytes(std::span(&number, 1)),
                 all.subspan(head, 4 + packed_size + 2 * hash_size)}));
    seals.insert(seals.end(), file.begin() + static_cast<std::ptrdiff_t>(seal),
                 file.begin() + static_cast<std::ptrdiff_t>(payload));
  }
  put(file, layout.trailer + 8 + hash_size,
      hash_of({all.subspan(header_digest, hash_size), seals, all.subspan(layout.trailer, 8 + hash_size)}));
}

std::string refusal(const Bytes& file) {
  const std::string message = error_message([&] { read_all(file); });
  if (!message.empty()) {
    CHECK(message.starts_with("name.vectors"));
    CHECK(message.find('\n') == std::string::npos);
  }
  return message;
}

std::string block_place(const Layout& layout, std::size_t index) {
  char text[64];
  std::snprintf(text, sizeof text, "name.vectors: block %zu at offset 0x%zx: ", index, layout.blocks[index].head);
  return text;
}

// What a message about damage at an offset begins with.
std::string place_of(const Layout& layout, std::size_t offset) {
  for (std::size_t index = 0; index < layout.blocks.size(); ++index) {
    if (offset >= layout.blocks[index].head && offset < layout.blocks[index].end) return block_place(layout, index);
  }
  return "name.vectors: offset 0x";
}

// Replaces a text in the header, whose size may change, and makes the digests right again.
Bytes with_header(const Bytes& file, std::size_t packed_size, std::string_view from, std::string_view to) {
  const std::size_t size = number_at<std::uint32_t>(file, 12);
  std::string json(reinterpret_cast<const char*>(file.data()) + preamble, size);
  const std::size_t at = from.empty() ? 0 : json.find(from);
  REQUIRE(at != std::string::npos);
  json.replace(at, from.empty() ? json.size() : from.size(), to);
  Bytes edited(file.begin(), file.begin() + preamble);
  for (const char c : json) edited.push_back(static_cast<std::byte>(c));
  edited.insert(edited.end(), file.begin() + static_cast<std::ptrdiff_t>(preamble + size), file.end());
  Layout layout = layout_of(file, packed_size);
  const std::size_t shift = json.size() - size;  // wraps, and back again
  layout.header_end += shift;
  for (auto& block : layout.blocks) block = {block.head + shift, block.payload + shift, block.end + shift};
  layout.trailer += shift;
  put(edited, 12, static_cast<std::uint32_t>(json.size()));
  reseal(edited, layout, packed_size);
  return edited;
}

// A file of one block with another payload.
Bytes with_payload(const Bytes& file, std::size_t packed_size, const Bytes& payload) {
  Layout layout = layout_of(file, packed_size);
  REQUIRE(layout.blocks.size() == 1);
  auto& block = layout.blocks.front();
  Bytes edited(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(block.payload));
  edited.insert(edited.end(), payload.begin(), payload.end());
  edited.insert(edited.end(), file.begin() + static_cast<std::ptrdiff_t>(layout.trailer), file.end());
  block.end = layout.trailer = block.payload + payload.size();
  put(edited, block.head, static_cast<std::uint32_t>(payload.size()));
  reseal(edited, layout, packed_size);
  return edited;
}

Bytes bytes_of(std::initializer_list<unsigned> values) {
  Bytes bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

struct Small {
  std::size_t packed_size;
  Bytes file;
};

// One block of everything; several blocks; none.
std::vector<Small> small_files() {
  return {{3, write_vectors(draw_vectors(3, 2, 40, 5))},
          {3, write_vectors(draw_vectors(3, 2, 40, 5), VectorDetail::digests)},
          {2, write_vectors(dense_vectors(2, 1, 2 * 8192 + 2))},
          {6, write_vectors(dense_vectors(6, 1, 0))}};
}

}  // namespace

TEST_CASE("every changed byte is refused, with the block that it is in") {
  for (const Small& small : small_files()) {
    REQUIRE(refusal(small.file).empty());
    const Layout layout = layout_of(small.file, small.packed_size);
    Bytes file = small.file;
    for (std::size_t at = 0; at < file.size(); ++at) {
      for (const unsigned change : {1U << at % 8, 0xffU}) {
        file[at] ^= std::byte{static_cast<unsigned char>(change)};
        const std::string message = refusal(file);
        INFO("byte " << at << " of " << file.size() << ": " << message);
        REQUIRE(message.starts_with(place_of(layout, at)));
        file[at] = small.file[at];
      }
    }
  }
}

TEST_CASE("files cut anywhere or continued are refused") {
  for (const Small& small : small_files()) {
    for (std::size_t size = 0; size < small.file.size(); ++size) {
      INFO(size << " of " << small.file.size() << " bytes");
      // Memory of its own, so that a read beyond the end is seen by sanitizers.
      const Bytes cut(small.file.begin(), small.file.begin() + static_cast<std::ptrdiff_t>(size));
      const std::string message = refusal(cut);
      INFO(message);
      REQUIRE_FALSE(message.empty());
      if (size < 8) continue;  // not even known to be a vector file
      const bool told = message.find("the file ends within") != std::string::npos ||
                        message.find("the file is too short") != std::string::npos;
      REQUIRE(told);
    }
    Bytes longer = small.file;
    longer.push_back(std::byte{0});
    CHECK_THAT(refusal(longer), contains_text("1 bytes follow the trailer"));
    longer = small.file;
    longer.insert(longer.end(), small.file.begin(), small.file.end());
    CHECK_THAT(refusal(longer), contains_text("follow the trailer"));
  }
}

TEST_CASE("blocks that were moved, repeated, left out or taken from another file are refused") {
  const VectorSample sample = dense_vectors(2, 1, 3 * 8192);
  const Bytes file = write_vectors(sample);
  const Layout layout = layout_of(file, 2);
  REQUIRE(layout.blocks.size() == 3);
  const auto piece = [](const Bytes& from, std::size_t begin, std::size_t end) {
    return Bytes(from.begin() + static_cast<std::ptrdiff_t>(begin), from.begin() + static_cast<std::ptrdiff_t>(end));
  };
  const auto block = [&](std::size_t index) {
    return piece(file, layout.blocks[index].head, layout.blocks[index].end);
  };
  const auto assembled = [&](const std::vector<Bytes>& blocks) {
    Bytes out = piece(file, 0, layout.header_end);
    for (const Bytes& one : blocks) out.insert(out.end(), one.begin(), one.end());
    const Bytes trailer = piece(file, layout.trailer, file.size());
    out.insert(out.end(), trailer.begin(), trailer.end());
    return out;
  };
  CHECK(refusal(assembled({block(0), block(1), block(2)})).empty());
  CHECK_THAT(refusal(assembled({block(0), block(2), block(1)})), contains_text("block 1 at offset"));
  CHECK_THAT(refusal(assembled({block(0), block(0), block(2)})), contains_text("block 1 at offset"));
  CHECK_THAT(refusal(assembled({block(1), block(1), block(2)})), contains_text("block 0 at offset"));
  CHECK_THAT(refusal(assembled({block(0), block(1)})), contains_text("for which the file is too short"));
  CHECK_THAT(refusal(assembled({block(0), block(1), block(2), block(2)})), contains_text("follow the trailer"));

  VectorSample other = sample;
  other.header.environment.fpcw = 0x027f;
  const Bytes foreign = write_vectors(other);
  const Layout foreign_layout = layout_of(foreign, 2);
  const Bytes taken = piece(foreign, foreign_layout.blocks[1].head, foreign_layout.blocks[1].end);
  CHECK_THAT(refusal(assembled({block(0), taken, block(2)})), contains_text("block 1 at offset"));
  // A payload alone.
  other.words[8192] = 0;
  other.header = sample.header;
  const Bytes edited = write_vectors(other);
  const Layout edited_layout = layout_of(edited, 2);
  Bytes mixed = block(1);
  const Bytes payload = piece(edited, edited_layout.blocks[1].payload, edited_layout.blocks[1].end);
  mixed.resize(layout.blocks[1].payload - layout.blocks[1].head);
  mixed.insert(mixed.end(), payload.begin(), payload.end());
  CHECK_FALSE(refusal(assembled({block(0), mixed, block(2)})).empty());
  // A trailer of another file.
  Bytes ended = piece(file, 0, layout.trailer);
  const Bytes trailer = piece(foreign, foreign_layout.trailer, foreign.size());
  ended.insert(ended.end(), trailer.begin(), trailer.end());
  CHECK_THAT(refusal(ended), contains_text("trailer has another SHA-256"));
}

TEST_CASE("headers that were edited with all digests made right are refused") {
  const Bytes file = write_vectors(draw_vectors(3, 2, 40, 5));
  const auto refuses = [&](std::string_view from, std::string_view to, const std::string& why) {
    INFO(from << " -> " << to);
    const std::string message = refusal(with_header(file, 3, from, to));
    CHECK_THAT(message, contains_text("name.vectors: offset 0x") && contains_text(why));
  };
  CHECK(refusal(with_header(file, 3, "a note", "another note")).empty());
  refuses("", "{", "not JSON");
  refuses("", "[]", "is not an object");
  refuses("", std::string(1000, '['), "nested deeper");
  refuses("", std::string(1000, '[') + std::string(1000, ']'), "nested deeper");
  refuses("bitwitness-vectors/1", "bitwitness-vectors/2", "schema");
  refuses("\"words\",", "\"everything\",", "detail is neither");
  refuses("\"witness\"", "\"withess\"", "withess is not known");
  refuses("{\"schema\"", "{\"more\":1,\"schema\"", "more is not known");
  refuses("{\"schema\"", "{\"notes\":[],\"schema\"", "notes is there twice");
  refuses("{\"schema\"", "{ \"schema\"", "one form");
  refuses("\"stand_in\":true", "\"stand_in\":1", "stand_in is not true or false");
  refuses("\"fpcw\":\"037f\"", "\"fpcw\":\"1037f\"", "expected hex digits");
  refuses("\"fpcw\":\"037f\"", "\"fpcw\":\"37f\"", "is not four");
  refuses("\"fpcw\":\"037f\"", "\"fpcw\":\"-37f\"", "expected hex digits");
  refuses("\"address\":\"0x", "\"address\":\"", "is not written as addresses are");
  refuses("\"format\":\"pe32\"", "\"format\":\"elf\"", "image.format is none of");
  refuses("\"kind\":\"u32\"", "\"kind\":\"f64\"", "words.kind is none of");
  refuses("\"notes\":[\"a note\"]", "\"notes\":[7]", "notes[0] is not a string");
  refuses("\"notes\":[\"a note\"]", "\"notes\":\"a note\"", "notes is not an array");
  refuses("\"packed_size\":3", "\"packed_size\":0", "values of 0 bytes");
  refuses("\"packed_size\":3", "\"packed_size\":257", "packed_size is 257, at most 256");
  refuses("\"packed_size\":3", "\"packed_size\":-3", "packed_size is not a count");
  refuses("\"packed_size\":3", "\"packed_size\":3.0", "packed_size is not a count");
  refuses("\"packed_size\":3", "\"packed_size\":4", "the fields have 24 bits");
  refuses("\"offset\":3", "\"offset\":4", "field 'high'");
  refuses("[\"w0\",\"w1\"]", "[]", "0 words");
  refuses("[\"w0\",\"w1\"]", "[\"w0\",\"w0\"]", "two words are called 'w0'");
  refuses("\"sampled\":0", "\"sampled\":41", "of 40 values 41 ran alone");
  refuses("\"unstable\":0", "\"unstable\":1", "recorded.isolation.unstable is more than were sampled");
  refuses("\"facts\":[]", "\"facts\":[{\"what\":\"a\",\"values\":1,\"first_value\":\"00 00\"}]", "has not 3 bytes");
  const std::string fact = "{\"what\":\"a\",\"values\":1,\"first_value\":\"00 00 00\"}";
  refuses("\"facts\":[]", "\"facts\":[" + fact + "," + fact + "]", "facts are not sorted");
  const std::string failure =
      "{\"value\":\"00 00 00\",\"outcome\":\"faulted\",\"address\":null,\"instruction\":\"\",\"reason\":\"\"}";
  refuses("\"failures\":[]", "\"failures\":[" + failure + "]", "1 values without a result where 0 are listed");
  refuses("\"limit\":0", "\"limit\":0.5", "recorded.limit is not a count");
  refuses("\"shard\":\"\"", "\"shard\":\"0/1\"", "0/1");
  refuses("\"signature\":\"\"", "\"signature\":\"cdecl(in u8[3], out u32[3])\"", "gives 3 words");
  refuses("\"count\":40", "\"count\":-1", "values.count is not a count");
  refuses("\"count\":40", "\"count\":99999999999999999999", "values.count is not a count");
  refuses("\"count\":40", "\"count\":0", "follow the trailer");
  for (const std::string_view count : {"8200000", "9223372036854775807", "18446744073709551615"}) {
    refuses("\"count\":40", std::string("\"count\":") + std::string(count), "for which the file is too short");
  }
  CHECK_THAT(refusal(with_header(file, 3, "\"words\",", "\"digests\",")), contains_text("block 0 at offset"));
  for (const std::string_view count : {"39", "41", "8192", "8193"}) {
    CHECK_FALSE(refusal(with_header(file, 3, "\"count\":40", std::string("\"count\":") + std::string(count))).empty());
  }
  CHECK_FALSE(refusal(with_header(file, 3, "[\"w0\",\"w1\"]", "[\"w0\"]")).empty());
  CHECK_FALSE(refusal(with_header(file, 3, "[\"w0\",\"w1\"]", "[\"w0\",\"w1\",\"w2\"]")).empty());

  Bytes newer = file;
  put(newer, 8, std::uint32_t{2});
  CHECK_THAT(refusal(newer), contains_text("vector file of version 2, this program reads 1"));
  Bytes huge = file;
  put(huge, 12, std::uint32_t{0xffff'ffff});
  CHECK_THAT(refusal(huge), contains_text("a header of 4294967295 bytes"));
}

TEST_CASE("payloads that were forged with all digests made right are refused") {
  // One byte a value and one word: outcomes, steps and four planes of the word.
  VectorSample sample = dense_vectors(1, 1, 100);
  sample.header.fields.clear();
  const Bytes file = write_vectors(sample);
  const Bytes good = bytes_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x3f});
  CHECK(with_payload(file, 1, good) == file);
  const auto refuses = [&](const Bytes& payload, const std::string& why) {
    const std::string message = refusal(with_payload(file, 1, payload));
    CHECK_THAT(message, contains_text("block 0 at offset 0x") && contains_text(why));
  };
  refuses({}, "ends early");
  for (std::size_t size = 1; size < good.size(); ++size) {
    refuses(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)), "ends early");
  }
  refuses(bytes_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x3f, 0}), "1 bytes too many");
  refuses(bytes_of({0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0x3f}), "not those that were recorded");
  refuses(bytes_of({0, 5, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x3f}), "unknown outcome 5");
  refuses(bytes_of({0, 1, 0, 0}), "not those that were recorded");
  refuses(bytes_of({3, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0x3f}), "unknown coding 3");
  refuses(bytes_of({0, 0, 0, 7, 0, 0, 0, 0, 0, 0x80, 0, 0x3f}), "exceed their width");
  refuses(bytes_of({1, 0, 0, 0}), "ends early");
  refuses(bytes_of({2, 0, 0, 0, 0}), "zstd");
  refuses(bytes_of({2, 5, 0, 1, 2, 3, 4, 5}), "zstd");
  refuses(bytes_of({2, 0xff, 0xff, 1, 2, 3, 4, 5}), "ends early");
  // Two frames of 50 bytes each for the outcomes: a block that repeats one byte.
  const Bytes half = bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0x20, 50, 0x93, 0x01, 0x00, 0x00});
  Bytes two = bytes_of({2, 20, 0});
  for (int i = 0; i < 2; ++i) two.insert(two.end(), half.begin(), half.end());
  for (const std::byte byte : std::span(good).subspan(2)) two.push_back(byte);
  refuses(two, "10 bytes follow the zstd frame of a plane");
}

TEST_CASE("a payload that expands without end takes no memory") {
  const Bytes file = write_vectors(dense_vectors(2, 1, 100));
  // A zstd frame that states 2^40 bytes, of blocks that each repeat one byte 128 Ki times.
  Bytes frame = bytes_of({0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0});
  while (frame.size() < 60'000) {
    for (const std::byte byte : bytes_of({0x02, 0x00, 0x10, 0x00})) frame.push_back(byte);
  }
  Bytes payload = bytes_of({2, 0, 0});
  put(payload, 1, static_cast<std::uint16_t>(frame.size()));
  payload.insert(payload.end(), frame.begin(), frame.end());
  const Bytes bomb = with_payload(file, 2, payload);
  const std::uint64_t before = peak_memory();
  CHECK_THAT(refusal(bomb), contains_text("block 0 at offset 0x") && contains_text("zstd"));
  // Stated sizes take none either.
  Bytes long_payload = file;
  Layout layout = layout_of(file, 2);
  put(long_payload, layout.blocks[0].head, std::uint32_t{0xffff'ffff});
  const std::span<const std::byte> all(long_payload);
  const std::uint64_t number = 0;
  put(long_payload, layout.blocks[0].payload - hash_size,
      hash_of({all.subspan(layout.header_end - hash_size, hash_size), std::as_bytes(std::span(&number, 1)),
               all.subspan(layout.blocks[0].head, 4 + 2 + 2 * hash_size)}));
  CHECK_THAT(refusal(long_payload), contains_text("block 0 at offset 0x") && contains_text("ends within it"));
  CHECK_FALSE(refusal(with_header(file, 2, "\"count\":100", "\"count\":1000000000000000")).empty());
  CHECK(peak_memory() - before < (std::uint64_t{8} << 20));
}

TEST_CASE("a sparse file of 64 GiB is refused at once and takes no memory") {
  const std::string path = "/tmp/bitwitness_sparse_" + std::to_string(getpid());
  const auto try_one = [&path](const Bytes& start) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(start.data()), static_cast<std::streamsize>(start.size()));
    std::filesystem::resize_file(path, std::uintmax_t{64} << 30);
    return error_message([&] { VectorFile::open(path); });
  };
  const Bytes file = write_vectors(dense_vectors(2, 1, 100));
  const std::uint64_t before = peak_memory();
  CHECK_THAT(try_one(file), contains_text("follow the trailer"));
  const Bytes many = with_header(file, 2, "\"count\":100", "\"count\":4000000000000");
  CHECK_THAT(try_one(many), contains_text("block 1 at offset"));
  CHECK_THAT(try_one({}), contains_text("this is no vector file"));
  Bytes long_payload = file;
  Layout layout = layout_of(file, 2);
  put(long_payload, layout.blocks[0].head, std::uint32_t{0xffff'ffff});
  const std::span<const std::byte> all(long_payload);
  const std::uint64_t number = 0;
  put(long_payload, layout.blocks[0].payload - hash_size,
      hash_of({all.subspan(layout.header_end - hash_size, hash_size), std::as_bytes(std::span(&number, 1)),
               all.subspan(layout.blocks[0].head, 4 + 2 + 2 * hash_size)}));
  CHECK_THAT(try_one(long_payload), contains_text("a payload of 4294967295 bytes, at most 458766 are possible"));
  std::filesystem::remove(path);
  CHECK(peak_memory() - before < (std::uint64_t{8} << 20));
}

TEST_CASE("blocks whose values overlap are refused even if every digest is right") {
  // The second block begins with a value that the first one has, too.
  VectorSample sample = dense_vectors(2, 1, 8193);
  const Bytes file = write_vectors(sample);
  const Layout layout = layout_of(file, 2);
  Bytes overlapping = file;
  put(overlapping, layout.blocks[1].head + 4, std::uint16_t{8191});
  reseal(overlapping, layout, 2);
  CHECK_THAT(refusal(overlapping), contains_text(block_place(layout, 0)) && contains_text("not below the first"));
  put(overlapping, layout.blocks[1].head + 4, std::uint16_t{0});
  reseal(overlapping, layout, 2);
  CHECK_THAT(refusal(overlapping), contains_text(block_place(layout, 1)) && contains_text("is not above"));
}

TEST_CASE("trailers that contradict the rest are refused even if every digest is right") {
  const Bytes file = write_vectors(draw_vectors(3, 2, 40, 5));
  const Layout layout = layout_of(file, 3);
  Bytes counted = file;
  put(counted, layout.trailer, std::uint64_t{41});
  reseal(counted, layout, 3);
  CHECK_THAT(refusal(counted), contains_text("the trailer contradicts"));
  Bytes digested = file;
  digested[layout.trailer + 8] ^= std::byte{1};
  reseal(digested, layout, 3);
  CHECK_THAT(refusal(digested), contains_text("the trailer contradicts"));
}

TEST_CASE("what is no vector file is refused by name") {
  CHECK_THAT(refusal({}), contains_text("name.vectors: offset 0x0: this is no vector file"));
  CHECK_THAT(refusal(bytes_of({'M', 'Z', 0x90, 0, 3, 0, 0, 0})), contains_text("this is no vector file"));
  Random random(3);
  for (std::size_t size = 1; size < 300; ++size) CHECK_FALSE(refusal(random.bytes(size)).empty());
}
