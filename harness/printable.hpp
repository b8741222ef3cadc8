#pragma once
#include <string>
#include <string_view>

namespace bitwitness {

/// Returns text fit for a one-line message or a report: control characters, backslashes and, unless `keep_utf8`, bytes
/// above 0x7e become `\xNN`.
inline std::string printable(std::string_view text, bool keep_utf8 = false) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != '\\' && (byte < 0x7f || (keep_utf8 && byte >= 0x80))) {
      out.push_back(c);
    } else {
      out += "\\x";
      out.push_back(digits[byte >> 4U]);
      out.push_back(digits[byte & 15U]);
    }
  }
  return out;
}

}  // namespace bitwitness
