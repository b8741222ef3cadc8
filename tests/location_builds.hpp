#pragma once
#include "harness/image.hpp"
#include "harness/value_generators.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"
#include "tests/real_executables.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The moved stand-ins (tests/fixtures/stand_in.inc, -DMOVED), and executables that are built around their code.

namespace bitwitness::tests::location {

inline constexpr std::uint64_t base = 0x400000;
inline constexpr std::uint64_t one_key = 0xda4450;
inline constexpr std::uint64_t two_keys = 0xda47c0;
inline constexpr std::uint64_t sampler = 0x16c33a4;
inline constexpr std::uint64_t scale = 0x1802000;

inline const std::string fixtures = BITWITNESS_FIXTURES_DIR;
inline const std::string stand_ins = BITWITNESS_STAND_INS_DIR;

struct Kind {
  std::string name;
  std::string one_key;
  std::string two_keys;
  std::uint64_t call;  // address of the sampler's
};

inline const std::array<Kind, 2> kinds{{
    {"x87", "cdecl(in u8[6], out f32[4])", "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])", sampler},
    {"sse2", "thiscall(in u8[6], out f32[4])", "fastcall(in u8[12], out f32[8])", sampler - 5},
}};

inline std::string moved(const Kind& kind) {
  return fixtures + "/moved_" + kind.name + ".exe";
}

inline void append_u32(FileBytes& bytes, std::uint64_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::byte>(value >> 8 * i));
}

inline FileBytes operator+(FileBytes a, const FileBytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline FileBytes address_bytes(std::uint64_t address) {
  FileBytes bytes;
  append_u32(bytes, address);
  return bytes;
}

/// The code of a moved stand-in as one section that reaches over both of its own, its constants as another.
struct Build {
  explicit Build(const Kind& kind) : image(Image::load(moved(kind))), code(code_size, std::byte{0xcc}) {
    for (const Segment& segment : image.segments()) {
      if (segment.executable) put(segment.address, FileBytes(segment.bytes.begin(), segment.bytes.end()));
      if (segment.name == ".rdata") constants_section.assign(segment.bytes.begin(), segment.bytes.end());
    }
  }

  void put(std::uint64_t address, const FileBytes& bytes) {
    std::ranges::copy(bytes, code.begin() + static_cast<std::ptrdiff_t>(address - base - first));
  }

  FileBytes at(std::uint64_t address, std::size_t size) const {
    const auto begin = code.begin() + static_cast<std::ptrdiff_t>(address - base - first);
    return {begin, begin + static_cast<std::ptrdiff_t>(size)};
  }

  void put_call(std::uint64_t address, std::uint64_t target) {
    put(address, bytes_of({0xe8}) + address_bytes(target - address - 5));
  }

  Image load() const {
    PeBuilder builder;
    builder.image_base = base;
    builder.characteristics = 0x10f;
    builder.sections = {{.name = ".text", .characteristics = code_section, .data = code, .address = first},
                        {.name = ".rdata",
                         .characteristics = constant_section,
                         .data = constants_section,
                         .address = static_cast<std::uint32_t>(scale - base)}};
    const TemporaryFile file(builder.build().bytes, 0, "big.exe");
    return Image::load(file.path());
  }

  static constexpr std::uint32_t first = 0x1000;
  static constexpr std::size_t code_size = 0x1401000;
  Image image;
  FileBytes code;
  FileBytes constants_section;
};

inline bool is_free(const FileBytes& code, std::size_t at, std::size_t size) {
  return std::all_of(code.begin() + static_cast<std::ptrdiff_t>(at),
                     code.begin() + static_cast<std::ptrdiff_t>(at + size),
                     [](std::byte byte) { return byte == std::byte{0xcc}; });
}

/// Fills what is free with functions of instructions drawn at random that call one another and use common constants.
inline void fill_with_functions(Build& build) {
  RandomWords random(7);
  const auto any = [&](std::uint32_t bound) { return random.below(bound); };
  for (std::size_t at = 0; at + 512 < build.code.size();) {
    FileBytes function = bytes_of({0x55, 0x8b, 0xec, 0x83, 0xec, 4 * any(16)});
    for (std::uint32_t i = any(60); i > 0; --i) {
      switch (any(6)) {
        case 0:  // call
          function.push_back(std::byte{0xe8});
          append_u32(function, any(Build::code_size) - at);
          break;
        case 1:  // and eax, 7fffh
          if (any(20) == 0) function = function + bytes_of({0x25, 0xff, 0x7f, 0, 0});
          break;
        case 2:  // shr ecx, 15
          if (any(20) == 0) function = function + bytes_of({0xc1, 0xe9, 0x0f});
          break;
        case 3:  // mov eax, [ebp + n]
          function = function + bytes_of({0x8b, 0x45, any(256)});
          break;
        case 4:  // fmul of 1/sqrt(2)
          if (any(20) == 0) function = function + bytes_of({0xd8, 0x0d}) + address_bytes(scale + 4);
          break;
        default:  // mov ecx, n
          function.push_back(std::byte{0xb9});
          append_u32(function, random.next());
      }
    }
    function = function + bytes_of({0x8b, 0xe5, 0x5d, 0xc3});
    if (is_free(build.code, at, function.size() + 16)) {
      std::ranges::copy(function, build.code.begin() + static_cast<std::ptrdiff_t>(at));
    }
    at = (at + function.size() + 16) / 16 * 16;
  }
}

/// Copies the code of a DLL that compilers wrote over a part that has nothing of the stand-in.
inline void put_dll(Build& build, const char* name, std::uint64_t address, std::size_t most) {
  const auto path = mingw_dll(Width::bits_32, name);
  if (!path) return;
  const Image dll = Image::load(*path);
  for (const Segment& segment : dll.segments()) {
    if (segment.name != ".text") continue;
    const auto bytes = segment.bytes.first(std::min(segment.bytes.size(), most));
    build.put(address, FileBytes(bytes.begin(), bytes.end()));
  }
}

inline constexpr std::uint64_t decoys = 0x1100000;
inline constexpr std::size_t decoy_size = 0x200;

/// Functions that name the scale and do something else. The last is the unpack but for one bit of one mask.
inline void put_decoys(Build& build) {
  const FileBytes at_scale = address_bytes(scale);
  const FileBytes read_key = bytes_of({0x8b, 0x44, 0x24, 0x04, 0x0f, 0xb7, 0x08, 0x8b, 0x54, 0x24, 0x08});
  std::vector<FileBytes> all = {
      bytes_of({0xb8}) + at_scale + bytes_of({0xc3}),                          // returns its address
      bytes_of({0xd9, 0x05}) + at_scale + bytes_of({0xdd, 0xd8, 0xeb, 0xfe}),  // never ends
      read_key + bytes_of({0xdb, 0x00, 0xd8, 0x0d}) + at_scale +               // one lane four times
          bytes_of({0xd9, 0x12, 0xd9, 0x52, 0x04, 0xd9, 0x52, 0x08, 0xd9, 0x5a, 0x0c, 0xc3}),
      bytes_of({0xd8, 0x0d}) + at_scale + bytes_of({0xa3, 0, 0, 0, 0, 0xc3}),  // faults
  };
  FileBytes near = build.at(one_key, two_keys - one_key);
  const FileBytes mask = bytes_of({0x25, 0xff, 0x7f, 0, 0});
  auto third = near.begin();
  for (int i = 0; i < 3; ++i) third = std::search(third + (i > 0 ? 1 : 0), near.end(), mask.begin(), mask.end());
  REQUIRE(third != near.end());
  *(third + 2) = std::byte{0x3f};
  all.push_back(near);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t address = decoys + i * decoy_size;
    build.put(address - 0x10, FileBytes(decoy_size, std::byte{0xcc}));
    build.put(address, all[i]);
    build.put_call(decoys + 0x4000 + 0x10 * i, address);
  }
}

inline constexpr std::uint64_t endless_decoy = decoys + decoy_size;
inline constexpr std::uint64_t near_decoy = decoys + 4 * decoy_size;

}  // namespace bitwitness::tests::location
