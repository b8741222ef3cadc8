#pragma once
#include <cstddef>
#include <span>

namespace bitwitness {

/// Returns the entropy of bytes in bits per byte: about 6 for x86 code, close to 8 for compressed or encrypted data. Of
/// few bytes it says little: n bytes have at most log2(n) bits.
double byte_entropy(std::span<const std::byte> bytes);

/// Tells whether the bytes around `offset` look compressed or encrypted rather than like x86 code: both the 64 KiB
/// around it and the bytes that start at it. Of less than half a KiB it says no.
bool looks_packed(std::span<const std::byte> section, std::size_t offset);

}  // namespace bitwitness
