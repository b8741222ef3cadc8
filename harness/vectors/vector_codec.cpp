#include "harness/vectors/vector_codec.hpp"

#include "harness/error.hpp"
#include "harness/vectors/vector_format.hpp"

#include <algorithm>
#include <array>
#include <new>

#include <fmt/format.h>
#include <zstd.h>

namespace bitwitness::vectors {
namespace {

enum class Coding : std::uint8_t {
  constant,   // one byte
  plain,      // the bytes
  compressed  // u16 size, a zstd frame
};

// Higher levels gain nothing: what can be gained is in the frequencies of bytes, and a plane is short.
constexpr int compression_level = 3;

constexpr std::size_t bytes_per_word = sizeof(std::uint32_t);
constexpr unsigned last_outcome = static_cast<unsigned>(OutcomeKind::disputed);

// The values of OutcomeKind are those of the format.
static_assert(static_cast<unsigned>(OutcomeKind::returned) == 0 && static_cast<unsigned>(OutcomeKind::faulted) == 1 &&
              static_cast<unsigned>(OutcomeKind::out_of_budget) == 2 &&
              static_cast<unsigned>(OutcomeKind::unwritten) == 3 && last_outcome == 4);

std::size_t groups_of(std::size_t count) {
  return (count + vector_group_values - 1) / vector_group_values;
}

std::size_t returned_of(const VectorBlock& block) {
  return static_cast<std::size_t>(std::ranges::count(block.outcomes, OutcomeKind::returned));
}

}  // namespace

struct BlockEncoder::Impl {
  Impl() {
    if (context == nullptr) throw std::bad_alloc();
  }
  ~Impl() { ZSTD_freeCCtx(context); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void write(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
    if (std::ranges::all_of(bytes, [&](std::byte byte) { return byte == bytes.front(); })) {
      out.push_back(static_cast<std::byte>(Coding::constant));
      out.push_back(bytes.front());
      return;
    }
    frame.resize(ZSTD_compressBound(bytes.size()));
    const std::size_t size =
        ZSTD_compressCCtx(context, frame.data(), frame.size(), bytes.data(), bytes.size(), compression_level);
    if (ZSTD_isError(size) != 0) throw Error(fmt::format("zstd cannot compress: {}", ZSTD_getErrorName(size)));
    if (size + sizeof(std::uint16_t) < bytes.size()) {
      out.push_back(static_cast<std::byte>(Coding::compressed));
      append(out, static_cast<std::uint16_t>(size));
      append(out, std::span<const std::byte>(frame).first(size));
    } else {
      out.push_back(static_cast<std::byte>(Coding::plain));
      append(out, bytes);
    }
  }

  // Differences of neighbours, less one: they rise.
  void write_values(std::vector<std::byte>& out, const VectorBlock& block, const BlockShape& shape) {
    const std::size_t steps = shape.count - 1;
    borrows.assign(steps, 1);
    plane.resize(steps);
    for (std::size_t k = 0; k < shape.packed_size; ++k) {
      const std::byte* value = block.packed.data() + k;
      for (std::size_t i = 0; i < steps; ++i, value += shape.packed_size) {
        const int difference =
            std::to_integer<int>(value[shape.packed_size]) - std::to_integer<int>(value[0]) - borrows[i];
        plane[i] = static_cast<std::byte>(difference & 0xff);
        borrows[i] = static_cast<std::uint8_t>(difference < 0);
      }
      write(out, plane);
    }
  }

  void write_words(std::vector<std::byte>& out, const VectorBlock& block, const BlockShape& shape) {
    const std::size_t returned = returned_of(block);
    if (returned == 0) return;
    plane.resize(returned);
    for (std::size_t word = 0; word < shape.word_count; ++word) {
      for (std::size_t k = 0; k < bytes_per_word; ++k) {
        std::size_t used = 0;
        for (std::size_t i = 0; i < shape.count; ++i) {
          if (block.outcomes[i] != OutcomeKind::returned) continue;
          plane[used++] = static_cast<std::byte>(block.words[i * shape.word_count + word] >> 8 * k & 0xff);
        }
        write(out, plane);
      }
    }
  }

  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<std::byte> frame;
  std::vector<std::byte> plane;
  std::vector<std::uint8_t> borrows;
};

BlockEncoder::BlockEncoder() : impl_(std::make_unique<Impl>()) {}
BlockEncoder::~BlockEncoder() = default;

void BlockEncoder::encode(std::vector<std::byte>& payload, const VectorBlock& block, const BlockShape& shape) {
  payload.clear();
  impl_->write(payload, std::as_bytes(std::span(block.outcomes)));
  if (shape.count > 1) impl_->write_values(payload, block, shape);
  if (shape.detail == VectorDetail::words) {
    impl_->write_words(payload, block, shape);
  } else {
    for (const Sha256Bytes& group : block.groups) append(payload, std::span<const std::byte>(group));
  }
}

struct BlockDecoder::Impl {
  Impl() {
    if (context == nullptr) throw std::bad_alloc();
  }
  ~Impl() { ZSTD_freeDCtx(context); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::span<const std::byte> take(std::size_t size) {
    if (size > rest.size()) throw Error("its payload ends early");
    const auto taken = rest.first(size);
    rest = rest.subspan(size);
    return taken;
  }

  // The bytes of the next plane: where they lie in the payload, or in `memory`.
  std::span<const std::byte> read(std::size_t size, std::vector<std::byte>& memory) {
    const auto coding = std::to_integer<unsigned>(take(1).front());
    if (coding == static_cast<unsigned>(Coding::plain)) return take(size);
    memory.resize(size);
    if (coding == static_cast<unsigned>(Coding::constant)) {
      std::ranges::fill(memory, take(1).front());
    } else if (coding == static_cast<unsigned>(Coding::compressed)) {
      const auto frame = take(load<std::uint16_t>(take(sizeof(std::uint16_t))));
      // The decompressor takes several frames in a row, the format has one.
      const std::size_t one = ZSTD_findFrameCompressedSize(frame.data(), frame.size());
      if (ZSTD_isError(one) != 0) throw Error(fmt::format("zstd: {}", ZSTD_getErrorName(one)));
      if (one != frame.size())
        throw Error(fmt::format("{} bytes follow the zstd frame of a plane", frame.size() - one));
      // Never writes beyond the memory it is given.
      const std::size_t got = ZSTD_decompressDCtx(context, memory.data(), size, frame.data(), frame.size());
      if (ZSTD_isError(got) != 0) throw Error(fmt::format("zstd: {}", ZSTD_getErrorName(got)));
      if (got != size) throw Error(fmt::format("a plane has {} bytes instead of {}", got, size));
    } else {
      throw Error(fmt::format("unknown coding {} of a plane", coding));
    }
    return memory;
  }

  void read_outcomes(VectorBlock& block, const BlockShape& shape) {
    const auto bytes = read(shape.count, planes[0]);
    block.outcomes.resize(shape.count);
    for (std::size_t i = 0; i < shape.count; ++i) {
      const auto outcome = std::to_integer<unsigned>(bytes[i]);
      if (outcome > last_outcome) throw Error(fmt::format("unknown outcome {}", outcome));
      block.outcomes[i] = static_cast<OutcomeKind>(outcome);
    }
  }

  void read_values(VectorBlock& block, std::span<const std::byte> first_value, const BlockShape& shape) {
    block.packed.resize(shape.count * shape.packed_size);
    std::ranges::copy(first_value, block.packed.begin());
    const std::size_t steps = shape.count - 1;
    if (steps == 0) return;
    carries.assign(steps, 1);
    for (std::size_t k = 0; k < shape.packed_size; ++k) {
      const auto differences = read(steps, planes[0]);
      std::byte* value = block.packed.data() + k;
      unsigned sum = std::to_integer<unsigned>(*value);
      for (std::size_t i = 0; i < steps; ++i) {
        value += shape.packed_size;
        sum = (sum & 0xff) + std::to_integer<unsigned>(differences[i]) + carries[i];
        *value = static_cast<std::byte>(sum & 0xff);
        carries[i] = static_cast<std::uint8_t>(sum >> 8);
      }
    }
    if (std::ranges::find(carries, 1) != carries.end()) throw Error("its values exceed their width");
  }

  void read_words(VectorBlock& block, const BlockShape& shape) {
    const std::size_t returned = returned_of(block);
    const std::size_t stride = shape.word_count;
    block.words.resize(shape.count * stride);
    if (returned != shape.count) std::ranges::fill(block.words, 0);
    if (returned == 0) return;
    positions.clear();
    if (returned != shape.count) {
      for (std::size_t i = 0; i < shape.count; ++i) {
        if (block.outcomes[i] == OutcomeKind::returned) positions.push_back(i);
      }
    }
    for (std::size_t word = 0; word < stride; ++word) {
      std::array<const std::byte*, bytes_per_word> bytes{};
      for (std::size_t k = 0; k < bytes_per_word; ++k) bytes[k] = read(returned, planes[k]).data();
      const auto value = [&](std::size_t i) {
        return std::to_integer<std::uint32_t>(bytes[0][i]) | std::to_integer<std::uint32_t>(bytes[1][i]) << 8 |
               std::to_integer<std::uint32_t>(bytes[2][i]) << 16 | std::to_integer<std::uint32_t>(bytes[3][i]) << 24;
      };
      std::uint32_t* const out = block.words.data() + word;
      if (positions.empty()) {
        for (std::size_t i = 0; i < returned; ++i) out[i * stride] = value(i);
      } else {
        for (std::size_t i = 0; i < returned; ++i) out[positions[i] * stride] = value(i);
      }
    }
  }

  void read_groups(VectorBlock& block, const BlockShape& shape) {
    block.groups.resize(groups_of(shape.count));
    for (Sha256Bytes& group : block.groups) std::ranges::copy(take(group.size()), group.begin());
  }

  ZSTD_DCtx* context = ZSTD_createDCtx();
  std::span<const std::byte> rest;
  std::array<std::vector<std::byte>, bytes_per_word> planes;
  std::vector<std::uint8_t> carries;
  std::vector<std::size_t> positions;
};

BlockDecoder::BlockDecoder() : impl_(std::make_unique<Impl>()) {}
BlockDecoder::~BlockDecoder() = default;

void BlockDecoder::decode(VectorBlock& block, std::span<const std::byte> payload,
                          std::span<const std::byte> first_value, const BlockShape& shape) {
  impl_->rest = payload;
  impl_->read_outcomes(block, shape);
  impl_->read_values(block, first_value, shape);
  if (shape.detail == VectorDetail::words) {
    impl_->read_words(block, shape);
    block.groups.clear();
  } else {
    impl_->read_groups(block, shape);
    block.words.clear();
  }
  if (!impl_->rest.empty()) throw Error(fmt::format("{} bytes too many in its payload", impl_->rest.size()));
}

}  // namespace bitwitness::vectors
