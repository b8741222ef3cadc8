#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bitwitness::tests {

/// splitmix64: equal seeds give equal numbers everywhere. Two draws never stand in one expression whose operands may be
/// evaluated in either order.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  std::uint32_t word() { return static_cast<std::uint32_t>(next() >> 32); }

  /// Draws from 0 … limit - 1.
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(next() % limit); }

  /// Draws from lowest … highest.
  std::uint32_t between(std::uint32_t lowest, std::uint32_t highest) {
    return lowest + static_cast<std::uint32_t>(below(highest - lowest + 1));
  }

  bool one_in(std::size_t limit) { return below(limit) == 0; }

  /// Draws a multiple of 2^-52 from -1 up to, not including, 1.
  double signed_unit() { return static_cast<double>(next() >> 11) * 0x1p-52 - 1.0; }

  std::vector<std::byte> bytes(std::size_t count) {
    std::vector<std::byte> drawn(count);
    for (std::byte& byte : drawn) byte = static_cast<std::byte>(next() >> 56);
    return drawn;
  }

 private:
  std::uint64_t state_;
};

}  // namespace bitwitness::tests
