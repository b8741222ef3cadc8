#pragma once
#include "harness/error.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

// What the parts of the image module share. Nobody outside it includes the pe_ headers.

namespace bitwitness::pe {

/// Throws Error: the file's name and why it cannot be used.
template <typename... Arguments>
[[noreturn]] void refuse(const std::string& file_name, fmt::format_string<Arguments...> text,
                         Arguments&&... arguments) {
  throw Error(file_name + ": " + fmt::format(text, std::forward<Arguments>(arguments)...));
}

/// Bytes whose content nobody vouches for.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

  /// Tells whether `count` bytes at `offset` exist.
  [[nodiscard]] bool has(std::uint64_t offset, std::uint64_t count) const {
    return offset <= bytes_.size() && count <= bytes_.size() - offset;
  }

  /// Returns the little-endian integer at `offset`, or zero when it does not exist.
  template <typename Integer>
  [[nodiscard]] Integer get(std::uint64_t offset) const {
    static_assert(std::endian::native == std::endian::little);
    Integer value = 0;
    if (has(offset, sizeof value)) std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  [[nodiscard]] std::uint16_t u16(std::uint64_t offset) const { return get<std::uint16_t>(offset); }
  [[nodiscard]] std::uint32_t u32(std::uint64_t offset) const { return get<std::uint32_t>(offset); }

  /// Returns the bytes from `offset` up to a zero or up to `limit` bytes, whichever comes first.
  [[nodiscard]] std::string_view text(std::uint64_t offset, std::uint64_t limit) const {
    if (offset >= bytes_.size()) return {};
    const std::size_t most = static_cast<std::size_t>(std::min<std::uint64_t>(limit, bytes_.size() - offset));
    const char* const first = reinterpret_cast<const char*>(bytes_.data() + offset);
    const void* const zero = std::memchr(first, 0, most);
    return {first, zero == nullptr ? most : static_cast<std::size_t>(static_cast<const char*>(zero) - first)};
  }

 private:
  std::span<const std::byte> bytes_;
};

inline constexpr std::uint64_t page_size = 0x1000;

/// Rounds up to whole pages.
constexpr std::uint64_t round_to_pages(std::uint64_t size) {
  return (size + page_size - 1) & ~(page_size - 1);
}

/// Largest image accepted. The largest game executables known are some hundred megabytes; a header that asks for more
/// is damaged or hostile.
inline constexpr std::uint64_t max_image_size = std::uint64_t{1} << 30;

}  // namespace bitwitness::pe
