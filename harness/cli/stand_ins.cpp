#include "harness/cli/stand_ins.hpp"

#include "harness/error.hpp"

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

constexpr const char* default_stand_in = "stand_in_x87.exe";

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

}  // namespace bitwitness::cli
