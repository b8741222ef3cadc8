#include "harness/error.hpp"
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

using vectors::BlockShape;

std::vector<Sha256Bytes> group_digests(const VectorBlock& block, const BlockShape& shape) {
  std::vector<Sha256Bytes> groups;
  for (std::size_t first = 0; first < shape.count; first += vector_group_values) {
    const std::size_t count = std::min(vector_group_values, shape.count - first);
    groups.push_back(
        vector_digest(std::span(block.packed).subspan(first * shape.packed_size, count * shape.packed_size),
                      std::span(block.outcomes).subspan(first, count),
                      std::span(block.words).subspan(first * shape.word_count, count * shape.word_count)));
  }
  return groups;
}

}  // namespace

struct VectorWriter::Impl {
  Impl(const VectorHeader& header, VectorDetail kept, Sink to)
      : count(header.count),
        packed_size(header.packed_size),
        word_count(header.word_count),
        detail(kept),
        sink(std::move(to)) {
    if (const std::string flaw = vectors::header_flaw(header); !flaw.empty()) {
      throw Error(fmt::format("a vector file cannot be written: {}", flaw));
    }
    const std::string json = vectors::header_json(header, kept);
    if (json.size() > vectors::max_header_size) {
      throw Error(fmt::format("a vector file cannot be written: its header would have {} bytes, at most {} are allowed",
                              json.size(), vectors::max_header_size));
    }
    std::vector<std::byte> out;
    for (const unsigned char byte : vectors::magic) out.push_back(std::byte{byte});
    vectors::append(out, vectors::format_version);
    vectors::append(out, static_cast<std::uint32_t>(json.size()));
    vectors::append(out, std::as_bytes(std::span(json)));
    Sha256 hash;
    hash.update(out);
    header_digest = hash.digest();
    vectors::append(out, std::span<const std::byte>(header_digest));
    sink(out);
    trailer.emplace(header_digest);
  }

  void require_room(std::uint64_t more) const {
    if (more <= count - done) return;
    throw Error(fmt::format("more values than the {} that the header of the vector file states", count));
  }

  void require_rising(std::span<const std::byte> values) {
    for (std::size_t at = 0; at < values.size(); at += packed_size) {
      const auto value = values.subspan(at, packed_size);
      const bool follows = at > 0 || !last.empty();
      const auto before = at > 0 ? values.subspan(at - packed_size, packed_size) : std::span<const std::byte>(last);
      if (follows && !is_less(before, value)) {
        throw Error(
            fmt::format("the values of a vector file must rise: {} comes after {}", to_hex(value), to_hex(before)));
      }
    }
    if (!values.empty()) last.assign(values.end() - static_cast<std::ptrdiff_t>(packed_size), values.end());
  }

  [[nodiscard]] BlockShape shape() const { return {block.outcomes.size(), packed_size, word_count, detail}; }

  void write_full_block() {
    block.digest = vector_digest(block.packed, block.outcomes, block.words);
    if (detail == VectorDetail::digests) block.groups = group_digests(block, shape());
    write(block, shape());
    block.packed.clear();
    block.outcomes.clear();
    block.words.clear();
  }

  void write(const VectorBlock& full, const BlockShape& full_shape) {
    encoder.encode(payload, full, full_shape);
    Sha256 payload_hash;
    payload_hash.update(payload);

    std::vector<std::byte> head;
    vectors::append(head, static_cast<std::uint32_t>(payload.size()));
    vectors::append(head, std::span(full.packed).first(packed_size));
    vectors::append(head, std::span<const std::byte>(full.digest));
    vectors::append(head, std::span<const std::byte>(payload_hash.digest()));
    const Sha256Bytes seal = vectors::head_seal(header_digest, blocks++, head);
    vectors::append(head, std::span<const std::byte>(seal));
    trailer->add(full.digest, seal);
    sink(head);
    sink(payload);
  }

  std::uint64_t count;
  std::size_t packed_size;
  std::size_t word_count;
  VectorDetail detail;
  Sink sink;
  Sha256Bytes header_digest{};
  std::optional<vectors::TrailerSeal> trailer;
  std::uint64_t done = 0;  // values taken
  std::uint64_t blocks = 0;
  VectorBlock block;            // what waits for more values
  std::vector<std::byte> last;  // value, of those taken
  std::vector<std::byte> payload;
  vectors::BlockEncoder encoder;
};

VectorWriter::VectorWriter(const VectorHeader& header, VectorDetail detail, Sink sink)
    : impl_(std::make_unique<Impl>(header, detail, std::move(sink))) {}

VectorWriter::~VectorWriter() = default;

void VectorWriter::add(std::span<const std::byte> packed, std::span<const OutcomeKind> outcomes,
                       std::span<const std::uint32_t> words) {
  Impl& impl = *impl_;
  const std::size_t count = outcomes.size();
  impl.require_room(count);
  if (packed.size() != count * impl.packed_size || words.size() != count * impl.word_count) {
    throw Error(fmt::format("{} outcomes, {} bytes and {} words do not fit values of {} bytes and {} words", count,
                            packed.size(), words.size(), impl.packed_size, impl.word_count));
  }
  impl.require_rising(packed);
  VectorBlock& block = impl.block;
  for (std::size_t first = 0; first < count;) {
    const std::size_t held = block.outcomes.size();
    const std::size_t more = std::min(count - first, vector_block_values - held);
    vectors::append(block.packed, packed.subspan(first * impl.packed_size, more * impl.packed_size));
    const auto kinds = outcomes.subspan(first, more);
    block.outcomes.insert(block.outcomes.end(), kinds.begin(), kinds.end());
    const auto results = words.subspan(first * impl.word_count, more * impl.word_count);
    block.words.insert(block.words.end(), results.begin(), results.end());
    for (std::size_t i = 0; i < more; ++i) {
      if (kinds[i] == OutcomeKind::returned) continue;
      std::ranges::fill(std::span(block.words).subspan((held + i) * impl.word_count, impl.word_count), 0);
    }
    first += more;
    impl.done += more;
    if (block.outcomes.size() == vector_block_values) impl.write_full_block();
  }
}

void VectorWriter::add(const VectorBlock& block) {
  Impl& impl = *impl_;
  const std::size_t count = block.outcomes.size();
  if (impl.detail == VectorDetail::words) return add(block.packed, block.outcomes, block.words);
  impl.require_room(count);
  if (impl.done != impl.blocks * vector_block_values || count > vector_block_values) {
    throw Error("digests of a vector file can be copied where a block begins only");
  }
  if (count == 0 || block.packed.size() != count * impl.packed_size ||
      block.groups.size() != (count + vector_group_values - 1) / vector_group_values) {
    throw Error(fmt::format("a block of digests does not fit values of {} bytes", impl.packed_size));
  }
  impl.require_rising(block.packed);
  impl.done += count;
  impl.write(block, {count, impl.packed_size, impl.word_count, impl.detail});
}

void VectorWriter::finish() {
  Impl& impl = *impl_;
  if (impl.done != impl.count) {
    throw Error(fmt::format("{} values, but the header of the vector file states {}", impl.done, impl.count));
  }
  if (!impl.block.outcomes.empty()) impl.write_full_block();
  std::vector<std::byte> trailer;
  vectors::append(trailer, impl.count);
  vectors::append(trailer, std::span<const std::byte>(impl.trailer->content()));
  vectors::append(trailer, std::span<const std::byte>(impl.trailer->seal(trailer)));
  impl.sink(trailer);
}

std::string VectorWriter::digest() const {
  return to_hex(impl_->trailer->content());
}

std::string_view to_string(VectorDetail detail) {
  return detail == VectorDetail::words ? "words" : "digests";
}

Sha256Bytes vector_digest(std::span<const std::byte> packed, std::span<const OutcomeKind> outcomes,
                          std::span<const std::uint32_t> words) {
  Sha256 hash;
  hash.update(packed);
  hash.update(std::as_bytes(outcomes));
  hash.update(std::as_bytes(words));
  return hash.digest();
}

namespace vectors {

Sha256Bytes head_seal(const Sha256Bytes& header_digest, std::uint64_t number, std::span<const std::byte> head) {
  Sha256 hash;
  hash.update(header_digest);
  hash.update(std::as_bytes(std::span(&number, 1)));
  hash.update(head);
  return hash.digest();
}

void TrailerSeal::add(const Sha256Bytes& content, const Sha256Bytes& seal) {
  const std::string digits = to_hex(content);
  contents_.update(std::as_bytes(std::span(digits)));
  seals_.update(seal);
}

Sha256Bytes TrailerSeal::seal(std::span<const std::byte> trailer) {
  seals_.update(trailer);
  return seals_.digest();
}

}  // namespace vectors

}  // namespace bitwitness
