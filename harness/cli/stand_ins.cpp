#include "harness/cli/stand_ins.hpp"

#include "harness/error.hpp"

#include <array>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

constexpr const char* default_stand_in = "stand_in_x87.exe";

/// Signatures by the start of the file's name: a stand-in and its broken twins are written with the same conventions.
struct KnownSignature {
  std::string_view prefix;
  std::string_view twin_prefix;
  std::string_view routine;
  std::string_view signature;
};

constexpr auto known_signatures = std::to_array<KnownSignature>({
    {"stand_in_x87", "broken_x87_", "packed_quat48", "cdecl(in u8[6], out f32[4])"},
    {"stand_in_x87", "broken_x87_", "packed_quat48_pair", "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])"},
    {"stand_in_sse2", "broken_sse2_", "packed_quat48", "thiscall(in u8[6], out f32[4])"},
    {"stand_in_sse2", "broken_sse2_", "packed_quat48_pair", "fastcall(in u8[12], out f32[8])"},
});

}  // namespace

std::filesystem::path find_stand_in() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& folder :
       {program / ".." / "stand_ins", program / "stand_ins", program / ".." / "share" / "bitwitness" / "stand_ins",
        fs::path(BITWITNESS_STAND_INS_DIR)}) {
    const fs::path path = folder / default_stand_in;
    if (fs::is_regular_file(path, error)) return path.lexically_normal();
  }
  throw Error(fmt::format("--image is needed: the stand-in {} is neither beside the program nor in {}",
                          default_stand_in, BITWITNESS_STAND_INS_DIR));
}

std::optional<std::string_view> stand_in_signature(const Image& image, std::string_view routine) {
  if (!image.is_stand_in()) return std::nullopt;
  for (const KnownSignature& known : known_signatures) {
    const bool named = image.name().starts_with(known.prefix) || image.name().starts_with(known.twin_prefix);
    if (named && known.routine == routine) return known.signature;
  }
  return std::nullopt;
}

}  // namespace bitwitness::cli
