#pragma once
// Whether this computer runs an image's code on its own processor. Programs that include this file and cannot run all
// of their tests say so and run the rest.
#include "harness/error.hpp"
#include "harness/machine.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <string>

namespace bitwitness::tests {

/// Why it runs no code of that width; empty where it does.
inline std::string why_no_host(unsigned bits) {
  PeBuilder builder;
  builder.is_64 = bits == 64;
  builder.sections = {{.name = ".text", .data = bytes_of({0xc3})}};
  const TemporaryFile file(builder.build().bytes);
  const Image image = Image::load(file.path());
  const Routine routine{"ret", image.base() + 0x1000,
                        parse_signature(bits == 64 ? "win64(value u32) -> u32" : "cdecl(value u32) -> u32")};
  try {
    const auto machine = make_host_machine(image, routine);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// For RestrictTests of programs that run 64-bit code alone.
inline Restriction needs_64_bit_host() {
  return {why_no_host(64), ""};
}

/// For RestrictTests: tests of 64-bit code alone have the tag [64-bit].
inline Restriction needs_host() {
  if (const std::string why = why_no_host(64); !why.empty()) return {why, ""};
  return {why_no_host(32), "[64-bit]"};
}

}  // namespace bitwitness::tests
