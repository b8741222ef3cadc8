#include "harness/guest_runtime.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <string>

namespace bitwitness {
namespace {

std::uint32_t u32_at(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.subspan(offset, sizeof value).data(), sizeof value);
  return value;
}

}  // namespace

GuestRuntime guest_runtime(bool is_64_bit) {
  const std::span<const std::byte> file = embedded_runtime(is_64_bit);
  const std::size_t end = file.size() - sizeof(std::uint32_t);
  std::size_t at = u32_at(file, end);
  GuestRuntime runtime;
  runtime.code = file.first(at);
  while (at < end) {
    const std::uint32_t offset = u32_at(file, at);
    const auto length = std::to_integer<std::size_t>(file[at + 4]);
    const auto name = file.subspan(at + 5, length);
    runtime.functions.push_back({{reinterpret_cast<const char*>(name.data()), name.size()}, offset});
    at += 5 + length;
  }
  return runtime;
}

bool is_c_library(std::string_view library) {
  std::string name(library);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  constexpr std::array<std::string_view, 7> beginnings{"msvcrt.",   "msvcrtd.", "msvcr",          "ucrtbase",
                                                       "vcruntime", "crtdll.",  "api-ms-win-crt-"};
  return std::ranges::any_of(beginnings, [&](std::string_view begin) { return name.starts_with(begin); });
}

}  // namespace bitwitness
