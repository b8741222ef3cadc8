#pragma once
#include "harness/json_place.hpp"
#include "harness/vectors/vector_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

// What writer and readers of vector files share: the frame of the binary form and the rules of a header.
// vectors/README.md has the layout.

namespace bitwitness::vectors {

static_assert(std::endian::native == std::endian::little, "integers and words are copied as they are");

/// No text begins like this, and a transfer that converts line ends breaks it.
inline constexpr std::array<unsigned char, 8> magic{0x89, 'B', 'W', 'V', '\r', '\n', 0x1a, '\n'};
inline constexpr std::uint32_t format_version = 1;
inline constexpr std::string_view schema = "bitwitness-vectors/1";
inline constexpr std::size_t preamble_size = magic.size() + 2 * sizeof(std::uint32_t);  ///< magic, version, header size
inline constexpr std::size_t digest_size = std::tuple_size_v<Sha256Bytes>;
inline constexpr std::size_t trailer_size = sizeof(std::uint64_t) + 2 * digest_size;

/// Far above any header that a run gives: names, sources and notes.
inline constexpr std::size_t max_header_size = std::size_t{1} << 20;

/// The head of a block: size of the payload (u32), first value, digest of the content, digest of the payload, seal.
inline constexpr std::size_t head_size(std::size_t packed_size) {
  return sizeof(std::uint32_t) + packed_size + 3 * digest_size;
}

/// No plane of a block has more bytes than its two bytes of size can state, nor do digests of groups.
inline constexpr std::size_t max_payload_size(std::size_t packed_size, std::size_t word_count) {
  constexpr std::size_t most_of_plane = 3 + std::size_t{0xffff};
  static_assert(vector_block_values / vector_group_values * digest_size < most_of_plane);
  return (1 + packed_size + std::max<std::size_t>(4 * word_count, 1)) * most_of_plane;
}

/// Returns the number of blocks that hold so many values.
inline constexpr std::uint64_t blocks_of(std::uint64_t count) {
  return count / vector_block_values + (count % vector_block_values != 0 ? 1 : 0);
}

template <typename Integer>
void append(std::vector<std::byte>& out, Integer value) {
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof value>>(value);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

inline void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

template <typename Integer>
Integer load(std::span<const std::byte> bytes) {
  Integer value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// Binds a block's head, without its seal, to its file and its place in it.
Sha256Bytes head_seal(const Sha256Bytes& header_digest, std::uint64_t number, std::span<const std::byte> head);

/// Computes the trailer's seal, and RunReport::digest, from the blocks in order.
class TrailerSeal {
 public:
  explicit TrailerSeal(const Sha256Bytes& header_digest) { seals_.update(header_digest); }

  /// Takes the digest of the next block's content and its head's seal.
  void add(const Sha256Bytes& content, const Sha256Bytes& seal);

  /// Returns RunReport::digest of the content.
  [[nodiscard]] Sha256Bytes content() const { return contents_.digest(); }

  /// Returns the seal, given the trailer without it. Once, last.
  [[nodiscard]] Sha256Bytes seal(std::span<const std::byte> trailer);

 private:
  Sha256 seals_;
  Sha256 contents_;
};

/// Returns what contradicts itself in a header; empty for a good one.
std::string header_flaw(const VectorHeader& header);

/// Returns what contradicts itself in what a header's run showed; empty for a good one.
std::string recorded_flaw(const VectorHeader& header);

/// "recorded" of a header.
nlohmann::ordered_json recorded_json(const RecordedRun& recorded);

/// Reads what recorded_json writes. Throws Error.
RecordedRun read_recorded(const JsonPlace& place, std::size_t packed_size);

/// Writes a header as canonical JSON: one form for each header.
std::string header_json(const VectorHeader& header, VectorDetail detail);

/// Reads what header_json writes, and nothing else. Throws Error, which says what is wrong but not where.
std::pair<VectorHeader, VectorDetail> parse_header(std::string_view json);

/// The names of word kinds: "f32", "i32", "u32". Throws Error for another.
std::string_view to_string(WordKind kind);
WordKind parse_word_kind(std::string_view text);

/// Reads the name of an image's format. Throws Error for another.
ImageFormat parse_image_format(std::string_view text);

/// Reads hex digits that do not exceed `most`. Throws Error.
std::uint64_t parse_hex_number(std::string_view digits, std::uint64_t most);

/// Reads "0x…", a virtual address. Throws Error.
std::uint64_t parse_address(std::string_view text);

/// A vector file that is open.
class Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  [[nodiscard]] virtual std::string place(std::size_t index) const = 0;
  virtual void read(VectorBlock& out, std::size_t index) const = 0;

  std::string name;
  VectorHeader header;
  VectorDetail detail = VectorDetail::words;
  std::string digest;
  bool has_known_differences = false;
};

/// Opens the text form. Throws Error.
std::shared_ptr<const Source> open_text(std::string_view text, std::string name);

}  // namespace bitwitness::vectors
