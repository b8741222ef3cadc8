// Every function of DLLs that nobody here wrote is probed without a crash, in little time.

#include "harness/image.hpp"
#include "harness/probe/inference.hpp"
#include "tests/catch.hpp"

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

using namespace bitwitness;

namespace {

namespace fs = std::filesystem;

constexpr double most_seconds = 20;  // a few on a machine that does nothing else

std::vector<fs::path> libraries() {
  std::vector<fs::path> paths;
  for (const std::string folder : {BITWITNESS_MINGW32_DLL_DIR, BITWITNESS_MINGW64_DLL_DIR}) {
    if (folder.empty() || !fs::is_directory(folder)) continue;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".dll") paths.push_back(entry.path());
    }
  }
  return paths;
}

}  // namespace

namespace {

// Probes every `step`-th exported function and returns how many there were.
std::size_t probe_exports(std::size_t step) {
  std::size_t functions = 0;
  std::size_t probed = 0;
  for (const fs::path& path : libraries()) {
    const Image image = Image::load(path);
    for (const NamedAddress& named : image.exports()) {
      const Segment* segment = image.find(named.address);
      if (segment == nullptr || !segment->executable) continue;
      if (functions++ % step != 0) continue;
      INFO(path << " " << named.name);
      const auto start = std::chrono::steady_clock::now();
      const Inference inference = infer(image, named.address);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      CHECK(seconds < most_seconds);
      CHECK((!inference.candidates.empty() || !inference.seen.empty()));
      ++probed;
    }
  }
  if (probed == 0) tests::skip("no DLL of the compiler is installed");
  return probed;
}

}  // namespace

TEST_CASE("exported functions of the compiler's DLLs are probed") {
  const std::size_t probed = probe_exports(16);
  if (probed != 0) CHECK(probed > 60);
}

// Three minutes: `inference_sweep_test '[all]'`.
TEST_CASE("every exported function of the compiler's DLLs is probed", "[.][all]") {
  const std::size_t probed = probe_exports(1);
  if (probed != 0) CHECK(probed > 1000);
}
