// Uses the decoders alone, which need nothing but the standard library.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <decoders/registry.hpp>
#include <decoders/version.hpp>

int main() {
  const bitwitness::decoders::Decoder* decoder = bitwitness::decoders::find_decoder("packed_quat48");
  if (decoder == nullptr) return 1;
  const std::array<std::byte, 6> packed{std::byte{0x34}, std::byte{0x12}, std::byte{0x78},
                                        std::byte{0x56}, std::byte{0x45}, std::byte{0x23}};
  std::array<std::uint32_t, 4> words{};
  decoder->decode(packed, words);
  std::printf("%s %08x %08x %08x %08x\n", bitwitness::version_text.data(), words[0], words[1], words[2], words[3]);
}
