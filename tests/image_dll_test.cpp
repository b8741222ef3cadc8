// Executables that no one here wrote, and what loading a large one costs.
#include "harness/error.hpp"
#include "harness/image.hpp"
#include "tests/catch.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#ifdef __linux__
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

#ifdef BITWITNESS_MINGW32_DLL_DIR
constexpr const char* mingw32 = BITWITNESS_MINGW32_DLL_DIR;
#else
constexpr const char* mingw32 = "";
#endif
#ifdef BITWITNESS_MINGW64_DLL_DIR
constexpr const char* mingw64 = BITWITNESS_MINGW64_DLL_DIR;
#else
constexpr const char* mingw64 = "";
#endif

/// The path of a DLL, or nothing after having said that the test is skipped.
std::optional<std::filesystem::path> dll(const char* folder, const char* name) {
  const std::filesystem::path path = std::filesystem::path(folder) / name;
  if (*folder != '\0' && std::filesystem::exists(path)) return path;
  if (std::getenv("BITWITNESS_REQUIRE_FIXTURES") != nullptr) FAIL(name << " is required and not there");
  skip(std::string(name) + " is not installed (Debian: gcc-mingw-w64)");
  return {};
}

/// Address of the first symbol of that name.
std::optional<std::uint64_t> symbol(const Image& image, const std::string& name) {
  const auto found = std::ranges::lower_bound(image.symbols(), name, {}, &NamedAddress::name);
  if (found == image.symbols().end() || found->name != name) return {};
  return found->address;
}

/// The linker's own symbol for each slot of the import address table is where the table of imports says.
void check_slots(const Image& image, const std::string& prefix) {
  std::size_t checked = 0;
  for (const Import& import : image.imports()) {
    const auto slot = symbol(image, prefix + import.name);
    if (!slot) continue;
    CHECK(*slot == import.slot);
    ++checked;
  }
  CHECK(checked > 10);
}

void check_code(const Image& image) {
  for (const NamedAddress& name : image.exports()) {
    const Segment* const segment = image.find(name.address);
    REQUIRE(segment != nullptr);
    if (segment->executable) CHECK_NOTHROW(image.require_code(name.address, name.name));
  }
}

/// Loads an image elsewhere; whatever differs, outside the headers, differs by the distance.
template <typename Pointer>
void check_move(const std::filesystem::path& path, const Image& image, std::uint64_t base) {
  const Image moved = Image::load(path, {.base = base});
  const auto distance = static_cast<Pointer>(base - image.base());
  REQUIRE(moved.segments().size() == image.segments().size());
  std::size_t pointers = 0;
  for (std::size_t i = 1; i < image.segments().size(); ++i) {
    const auto before = image.segments()[i].bytes;
    const auto after = moved.segments()[i].bytes;
    REQUIRE(before.size() == after.size());
    // The distance has zeros in its low 16 bits: the first byte that can differ is the third of a pointer.
    for (std::size_t at = 2; at < before.size(); ++at) {
      if (before[at] == after[at]) continue;
      const std::size_t start = at - 2;
      REQUIRE(start + sizeof(Pointer) <= before.size());
      Pointer old_value = 0;
      Pointer new_value = 0;
      std::memcpy(&old_value, before.data() + start, sizeof(Pointer));
      std::memcpy(&new_value, after.data() + start, sizeof(Pointer));
      REQUIRE(static_cast<Pointer>(old_value + distance) == new_value);
      at = start + sizeof(Pointer) - 1;
      ++pointers;
    }
  }
  CHECK(pointers > 100);
  REQUIRE(moved.symbols().size() == image.symbols().size());
  for (std::size_t i = 0; i < image.symbols().size(); ++i) {
    REQUIRE(moved.symbols()[i].address == image.symbols()[i].address + (base - image.base()));
  }
}

}  // namespace

TEST_CASE("a 32-bit DLL of MinGW", "[image]") {
  const auto path = dll(mingw32, "libgcc_s_dw2-1.dll");
  if (!path) return;
  const Image image = Image::load(*path);
  CHECK(image.format() == ImageFormat::pe32);
  CHECK(image.name() == "libgcc_s_dw2-1.dll");
  CHECK(image.notes().empty());
  const std::uint64_t routine = image.resolve("symbol:___extendhfsf2");
  CHECK(image.resolve("symbol:___extendsfdf2") == image.resolve("export:__extendsfdf2"));
  CHECK(image.find(routine)->name == ".text");
  CHECK_THROWS_WITH(image.resolve("symbol:__extendhfsf2"), bitwitness::tests::contains_text("close: ___extendhfsf2"));
  const auto is_debug_info = [](const Segment& segment) { return segment.name == ".debug_info"; };
  CHECK(std::ranges::any_of(image.segments(), is_debug_info));
  check_slots(image, "__imp__");
  check_code(image);
  check_move<std::uint32_t>(*path, image, 0x10010000);
}

TEST_CASE("a 64-bit DLL of MinGW", "[image]") {
  const auto path = dll(mingw64, "libgcc_s_seh-1.dll");
  if (!path) return;
  const Image image = Image::load(*path);
  CHECK(image.format() == ImageFormat::pe32_plus);
  CHECK(image.notes().empty());
  CHECK(image.find(image.resolve("symbol:__extendhfsf2"))->name == ".text");
  CHECK(image.resolve("symbol:__extendsfdf2") == image.resolve("export:__extendsfdf2"));
  check_slots(image, "__imp_");
  check_code(image);
}

TEST_CASE("a DLL with thousands of exports", "[image]") {
  const auto path = dll(mingw64, "libstdc++-6.dll");
  if (!path) return;
  const Image image = Image::load(*path);
  CHECK(image.notes().empty());
  CHECK(image.exports().size() > 5000);
  CHECK(image.symbols().size() > 5000);
  check_move<std::uint64_t>(*path, image, 0x7ff612340000);
}

#ifdef __linux__

/// Peak memory of this process since it started its program, in KiB. (getrusage's includes the time before.)
static long peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long value = 0;
    if (word == "VmHWM:" && status >> value) return value;
  }
  return 0;
}

// Run by the test below in a process of its own: a heap that other tests have used hides what a load adds.
TEST_CASE("loads one image and says by how much memory grew", "[.child]") {
  const char* const path = std::getenv("BITWITNESS_TEST_IMAGE");
  if (path == nullptr) return;
  const long before = peak_memory();
  const Image image = Image::load(path, {.base = 0x10000000});
  const long after = peak_memory();
  REQUIRE(image.exports().size() == 1);
  REQUIRE(image.symbols().size() == 1);
  std::ofstream(std::string(path) + ".growth") << after - before;
}

TEST_CASE("a large file is copied at most twice", "[image]") {
  constexpr std::uint32_t size = 64U << 20U;
  constexpr std::uint32_t large_section_offset = 0x100000;
  PeBuilder builder;
  builder.exports = {{"decode", 0x1000}};
  builder.imports = {{"KERNEL32.dll", {"Sleep"}}};
  builder.relocations = {{0x1000, 3}};
  builder.symbols = {{.name = "_decode"}};
  // The tables come first in the file, the large section last, as a hole that takes no room on the disk.
  REQUIRE(builder.build().bytes.size() < large_section_offset);
  builder.sections = {{.name = ".text",
                       .data = FileBytes(16, std::byte{0x90}),
                       .virtual_size = size,
                       .raw_offset = large_section_offset,
                       .raw_size = size}};
  const TemporaryFile file(builder.build().bytes, std::uintmax_t{size} + large_section_offset);

  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("BITWITNESS_TEST_IMAGE", file.path().c_str(), 1);
    const int silent = ::open("/dev/null", O_WRONLY);
    ::dup2(silent, STDOUT_FILENO);
    ::execl("/proc/self/exe", "tests", "[.child]", static_cast<char*>(nullptr));
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(status == 0);
  double kibibytes = 0;
  std::ifstream(file.path().string() + ".growth") >> kibibytes;
  const double copies = kibibytes * 1024 / size;
  INFO("peak growth in units of the file's size: " << copies);
  CHECK(copies > 1.5);  // else this does not measure what it should
  CHECK(copies < 2.5);
}

#endif
