#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/printable.hpp"
#include "harness/values.hpp"
#include "harness/vectors/vector_codec.hpp"
#include "harness/vectors/vector_file.hpp"
#include "harness/vectors/vector_format.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

using vectors::digest_size;
using vectors::load;

// No text has a byte 0, and what is no text is told best in these words.
constexpr std::size_t looked_at_for_text = 4096;

Sha256Bytes digest_at(std::span<const std::byte> bytes) {
  Sha256Bytes digest{};
  std::ranges::copy(bytes.first(digest.size()), digest.begin());
  return digest;
}

Sha256Bytes digest_of(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.digest();
}

std::string shown(std::string_view name) {
  return printable(name, true);
}

bool is_binary(std::span<const std::byte> bytes) {
  return bytes.size() >= vectors::magic.size() &&
         std::equal(vectors::magic.begin(), vectors::magic.end(), bytes.begin(),
                    [](unsigned char expected, std::byte byte) { return std::byte{expected} == byte; });
}

class BinarySource : public vectors::Source {
 public:
  BinarySource(std::span<const std::byte> bytes, std::string of, std::optional<FileBytes> held)
      : bytes_(bytes), held_(std::move(held)) {
    name = std::move(of);
    const std::size_t heads = read_header();
    vectors::TrailerSeal seal(header_digest_);
    const std::size_t trailer = read_heads(seal, heads);
    read_trailer(seal, trailer);
  }

  [[nodiscard]] std::string place(std::size_t index) const override {
    return fmt::format("{}: block {} at offset 0x{:x}", shown(name), index, heads_[index]);
  }

  void read(VectorBlock& out, std::size_t index) const override {
    const auto head = bytes_.subspan(heads_[index], head_size());
    const auto payload = bytes_.subspan(heads_[index] + head_size(), load<std::uint32_t>(head));
    if (digest_of(payload) != digest_at(head.subspan(payload_digest_at()))) {
      throw Error(fmt::format("{}: damaged or edited: its payload has another SHA-256", place(index)));
    }
    out.first = static_cast<std::uint64_t>(index) * vector_block_values;
    out.digest = digest_at(head.subspan(content_digest_at()));
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(vector_block_values, header.count - out.first));
    try {
      vectors::BlockDecoder decoder;
      decoder.decode(out, payload, first_value(index), {count, header.packed_size, header.word_count, detail});
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", place(index), error.what()));
    }
    if (detail == VectorDetail::words && vector_digest(out.packed, out.outcomes, out.words) != out.digest) {
      throw Error(fmt::format("{}: its values and words are not those that were recorded", place(index)));
    }
    const auto last = std::span<const std::byte>(out.packed).last(header.packed_size);
    if (index + 1 < heads_.size() && !is_less(last, first_value(index + 1))) {
      throw Error(fmt::format("{}: its last value is not below the first of the next block", place(index)));
    }
  }

 private:
  [[noreturn]] void fail(std::string_view why, std::size_t offset) const {
    throw Error(fmt::format("{}: offset 0x{:x}: {}", shown(name), offset, why));
  }

  [[nodiscard]] std::size_t left(std::size_t at) const { return bytes_.size() - at; }

  std::size_t read_header() {
    const std::size_t version_at = vectors::magic.size();
    const std::size_t size_at = version_at + sizeof(std::uint32_t);
    if (bytes_.size() < vectors::preamble_size) fail("the file ends within its header", bytes_.size());
    const auto version = load<std::uint32_t>(bytes_.subspan(version_at));
    if (version != vectors::format_version) {
      fail(fmt::format("vector file of version {}, this program reads {}", version, vectors::format_version),
           version_at);
    }
    const std::size_t size = load<std::uint32_t>(bytes_.subspan(size_at));
    if (size > vectors::max_header_size) {
      fail(fmt::format("a header of {} bytes, at most {} are allowed", size, vectors::max_header_size), size_at);
    }
    const std::size_t end = vectors::preamble_size + size;
    if (bytes_.size() < end + digest_size) fail("the file ends within its header", bytes_.size());
    header_digest_ = digest_at(bytes_.subspan(end));
    if (digest_of(bytes_.first(end)) != header_digest_) fail("damaged or edited: the header has another SHA-256", 0);
    const auto json = bytes_.subspan(vectors::preamble_size, size);
    try {
      std::tie(header, detail) = vectors::parse_header({reinterpret_cast<const char*>(json.data()), json.size()});
    } catch (const Error& error) {
      fail(error.what(), vectors::preamble_size);
    }
    return end + digest_size;
  }

  // Checks the frame of every block: nothing is taken from a file before it is known to be there.
  std::size_t read_heads(vectors::TrailerSeal& seal, std::size_t at) {
    const std::uint64_t blocks = vectors::blocks_of(header.count);
    if (blocks > left(at) / head_size()) {
      fail(fmt::format("the header states {} values, for which the file is too short", header.count), at);
    }
    while (heads_.size() < blocks) {
      const std::size_t index = heads_.size();
      heads_.push_back(at);
      if (left(at) < head_size()) throw Error(place(index) + ": the file ends within it");
      const auto head = bytes_.subspan(at, head_size());
      const Sha256Bytes head_seal = digest_at(head.subspan(seal_at()));
      if (vectors::head_seal(header_digest_, index, head.first(seal_at())) != head_seal) {
        throw Error(place(index) + ": damaged, edited, or of another place or file: its head has another SHA-256");
      }
      if (index > 0 && !is_less(first_value(index - 1), first_value(index))) {
        throw Error(place(index) + ": its first value is not above that of the block before");
      }
      at += head_size();
      const std::size_t payload = load<std::uint32_t>(head);
      if (left(at) < payload) throw Error(place(index) + ": the file ends within it");
      if (const std::size_t most = vectors::max_payload_size(header.packed_size, header.word_count); payload > most) {
        throw Error(fmt::format("{}: a payload of {} bytes, at most {} are possible", place(index), payload, most));
      }
      at += payload;
      seal.add(digest_at(head.subspan(content_digest_at())), head_seal);
    }
    return at;
  }

  void read_trailer(vectors::TrailerSeal& seal, std::size_t at) {
    if (left(at) < vectors::trailer_size) fail("the file ends within its trailer", at);
    if (left(at) > vectors::trailer_size) {
      fail(fmt::format("{} bytes follow the trailer", left(at) - vectors::trailer_size), at + vectors::trailer_size);
    }
    const auto trailer = bytes_.subspan(at);
    const Sha256Bytes content = digest_at(trailer.subspan(sizeof(std::uint64_t)));
    if (seal.seal(trailer.first(sizeof(std::uint64_t) + digest_size)) !=
        digest_at(trailer.subspan(sizeof(std::uint64_t) + digest_size))) {
      fail("damaged or edited: the trailer has another SHA-256", at);
    }
    if (load<std::uint64_t>(trailer) != header.count || content != seal.content()) {
      fail("the trailer contradicts the header or the blocks", at);
    }
    digest = to_hex(content);
  }

  [[nodiscard]] std::size_t head_size() const { return vectors::head_size(header.packed_size); }
  [[nodiscard]] std::size_t content_digest_at() const { return sizeof(std::uint32_t) + header.packed_size; }
  [[nodiscard]] std::size_t payload_digest_at() const { return content_digest_at() + digest_size; }
  [[nodiscard]] std::size_t seal_at() const { return payload_digest_at() + digest_size; }
  [[nodiscard]] std::span<const std::byte> first_value(std::size_t index) const {
    return bytes_.subspan(heads_[index] + sizeof(std::uint32_t), header.packed_size);
  }

  std::span<const std::byte> bytes_;
  std::optional<FileBytes> held_;  // what bytes_ refers to, when it is ours
  Sha256Bytes header_digest_{};
  std::vector<std::size_t> heads_;  // offsets
};

std::shared_ptr<const vectors::Source> open_source(std::span<const std::byte> bytes, std::string name,
                                                   std::optional<FileBytes> held) {
  if (is_binary(bytes)) return std::make_shared<BinarySource>(bytes, std::move(name), std::move(held));
  const auto start = bytes.first(std::min(bytes.size(), looked_at_for_text));
  if (bytes.empty() || std::ranges::find(start, std::byte{0}) != start.end()) {
    throw Error(fmt::format("{}: offset 0x0: this is no vector file", shown(name)));
  }
  return vectors::open_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, std::move(name));
}

}  // namespace

VectorFile VectorFile::open(const std::string& path) {
  FileBytes file = FileBytes::open(path);
  const auto bytes = file.bytes();
  return VectorFile(open_source(bytes, path, std::move(file)));
}

VectorFile VectorFile::parse(std::span<const std::byte> bytes, std::string name) {
  return VectorFile(open_source(bytes, std::move(name), std::nullopt));
}

const VectorHeader& VectorFile::header() const {
  return source_->header;
}

VectorDetail VectorFile::detail() const {
  return source_->detail;
}

const std::string& VectorFile::name() const {
  return source_->name;
}

const std::string& VectorFile::digest() const {
  return source_->digest;
}

bool VectorFile::has_known_differences() const {
  return source_->has_known_differences;
}

std::size_t VectorFile::block_count() const {
  return static_cast<std::size_t>(vectors::blocks_of(source_->header.count));
}

std::string VectorFile::place(std::size_t index) const {
  return source_->place(index);
}

void VectorFile::read(VectorBlock& out, std::size_t index) const {
  source_->read(out, index);
}

VectorBlock VectorFile::block(std::size_t index) const {
  VectorBlock out;
  read(out, index);
  return out;
}

}  // namespace bitwitness
