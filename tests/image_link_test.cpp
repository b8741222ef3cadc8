#include "harness/error.hpp"
#include "harness/guest_runtime.hpp"
#include "harness/image.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

// Images with what stands around them: libraries, code for imports of the C library, memory, and the thread's block.

namespace bitwitness::tests {
namespace {

template <typename Number>
Bytes packed_of(Number number) {
  const auto bytes = std::bit_cast<std::array<std::byte, sizeof(Number)>>(number);
  return {bytes.begin(), bytes.end()};
}

Words words_of(double number) {
  const auto bits = std::bit_cast<std::uint64_t>(number);
  return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)};
}

Image linked(unsigned bits, Surroundings surroundings = {}) {
  return Image::link(load_fixture(fmt::format("surroundings{}.dll", bits)), std::move(surroundings));
}

std::string error_of(auto&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool has(std::span<const std::string> notes, std::string_view text) {
  return std::ranges::any_of(notes, [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

std::vector<double> some_doubles() {
  std::vector<double> all{0.0,
                          -0.0,
                          1.0,
                          -1.0,
                          0.5,
                          -0.5,
                          1.5,
                          2.5,
                          -2.5,
                          2.0,
                          0.49,
                          1e15,
                          1e300,
                          -1e300,
                          5e-324,
                          4503599627370497.5,
                          -4503599627370497.5,
                          9007199254740993.0,
                          std::numeric_limits<double>::infinity()};
  RandomWords random(7);
  for (int i = 0; i < 300; ++i) {
    const double number = std::bit_cast<double>(random.next());
    if (std::isfinite(number)) all.push_back(number);
    all.push_back(static_cast<double>(static_cast<std::int64_t>(random.next())) / 1e13);
  }
  return all;
}

struct Prefix {
  unsigned bits;
  std::string signature;
};

const std::vector<Prefix> widths{{32, "cdecl"}, {64, "win64"}};

}  // namespace

TEST_CASE("imports of a C library give exact results whatever the precision control", "[surroundings]") {
  struct Function {
    std::string name;
    double (*of)(double);
  };
  const std::vector<Function> functions{{"sqrt", [](double x) { return std::sqrt(x); }},
                                        {"floor", [](double x) { return std::floor(x); }},
                                        {"ceil", [](double x) { return std::ceil(x); }},
                                        {"fabs", [](double x) { return std::fabs(x); }}};
  for (const auto& [bits, convention] : widths) {
    const Image image = linked(bits);
    for (const Function& function : functions) {
      INFO(bits << " " << function.name);
      const bool through_memory = bits == 32 && function.name == "sqrt";
      Tried tried(image, "export:calls_" + function.name,
                  convention + (through_memory ? "(in f64, out f64)" : "(in f64) -> f64"));
      for (const auto fpcw : std::initializer_list<std::uint16_t>{0x027f, 0x037f, 0x007f, 0x0e7f}) {
        std::size_t wrong = 0;
        for (const double number : some_doubles()) {
          if (function.name == "sqrt" && number < 0) continue;
          const Ended ended = tried.run_one(packed_of(number), {.fpcw = fpcw});
          wrong += ended != returned(words_of(function.of(number)));
        }
        INFO(fpcw);
        CHECK(wrong == 0);
      }
    }
    Tried sqrtf(image, "export:calls_sqrtf", convention + "(in f32) -> f32");
    for (const float number : {0.0f, 2.0f, 3.0f, 1e-40f, 3.4e38f}) {
      CHECK(sqrtf.run_one(packed_of(number)) == returned({std::bit_cast<std::uint32_t>(std::sqrt(number))}));
    }
  }
}

TEST_CASE("helpers of compilers work on st0", "[surroundings]") {
  const Image image = linked(32);
  Tried root(image, "export:calls_cisqrt", "cdecl(in f64) -> f64");
  CHECK(root.run_one(packed_of(2.0)) == returned(words_of(std::sqrt(2.0))));
  CHECK(root.run_one(packed_of(2.0), {.fpcw = 0x007f}) == returned(words_of(std::sqrt(2.0))));
  Tried truncate(image, "export:calls_ftol2", "cdecl(in f64) -> u64");
  for (const double number : {0.0, 0.9, -0.9, 2.5, -2.5, 4294967296.75, -9007199254740991.0}) {
    const auto whole = static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
    CHECK(truncate.run_one(packed_of(number)) ==
          returned({static_cast<std::uint32_t>(whole), static_cast<std::uint32_t>(whole >> 32)}));
  }
}

TEST_CASE("memory functions copy, move, set and compare", "[surroundings]") {
  for (const auto& [bits, convention] : widths) {
    INFO(bits);
    const Image image = linked(bits);
    Bytes value(24);
    for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<std::byte>(i + 1);
    const auto words = [](const Bytes& bytes) {
      Words all;
      for (const std::byte byte : bytes) all.push_back(std::to_integer<std::uint32_t>(byte));
      return all;
    };
    CHECK(Tried(image, "export:calls_memcpy", convention + "(in u8[24], out u8[24])").run_one(value) ==
          returned(words(value)));
    Bytes moved = value;
    std::copy_backward(moved.begin(), moved.begin() + 19, moved.end());
    std::copy(moved.begin() + 8, moved.end(), moved.begin() + 3);
    CHECK(Tried(image, "export:calls_memmove", convention + "(in u8[24], out u8[24])").run_one(value) ==
          returned(words(moved)));
    CHECK(Tried(image, "export:calls_memset", convention + "(in u8, out u8[7])").run_one(Bytes{std::byte{0xfe}}) ==
          returned(Words(7, 0xfe)));
    Tried compare(image, "export:calls_memcmp", convention + "(in u8[16], out u32)");
    const auto pair = [](unsigned at, unsigned first, unsigned second) {
      Bytes both(16, std::byte{5});
      both[at] = static_cast<std::byte>(first);
      both[8 + at] = static_cast<std::byte>(second);
      return both;
    };
    CHECK(compare.run_one(pair(0, 5, 5)) == returned({0}));
    CHECK(compare.run_one(pair(7, 0x80, 0x7f)) == returned({1}));
    CHECK(compare.run_one(pair(3, 0x7f, 0x80)) == returned({0xffffffff}));
  }
}

TEST_CASE("the heap gives blocks apart, takes the last one back, and ends", "[surroundings]") {
  for (const auto& [bits, convention] : widths) {
    INFO(bits);
    const Image image = linked(bits);
    Tried tried(image, "export:calls_malloc", convention + "(in u32[2], out u32[3])");
    // The distance is the first block and the sixteen bytes before the second.
    CHECK(tried.run_one(bytes_of_u32({1, 40})) == returned({32, 40, 1}));
    CHECK(tried.run_one(bytes_of_u32({100, 7})) == returned({128, 7, 1}));
    CHECK(tried.run_one(bytes_of_u32({0x20000, 7})) == returned({0, 0, 0}));
    CHECK(tried.run_one(bytes_of_u32({0xffffffff, 7})) == returned({0, 0, 0}));
    std::vector<Bytes> many(5000, bytes_of_u32({64, 64}));
    const auto ends = tried.run(many);
    CHECK(std::ranges::all_of(ends, [](const Ended& ended) { return ended == returned({80, 64, 1}); }));
  }
}

TEST_CASE("what nobody has stays unbound and is named when it is called", "[surroundings]") {
  const Image image = linked(32);
  CHECK(has(image.notes(), "MSVCRT.dll!_CIsqrt runs code of this program's own"));
  CHECK_FALSE(has(image.notes(), "fopen"));
  std::vector<std::string> unbound;
  for (const Import& import : image.imports()) unbound.push_back(import.library + "!" + import.name);
  CHECK(unbound == std::vector<std::string>{"MSVCRT.dll!fopen", "helper.dll!answer"});
  const Ended ended = Tried(image, "export:calls_missing", "cdecl(in u32, out u32)").run_one(bytes_of_u32({1}));
  CHECK(ended.kind == OutcomeKind::faulted);
  CHECK(ended.reason.find("MSVCRT.dll!fopen") != std::string::npos);
  const Image bare = linked(32, {.libraries = {}, .c_runtime = false, .memory = {}});
  CHECK(bare.imports().size() == 15);
  const Ended root = Tried(bare, "export:calls_sqrt", "cdecl(in f64, out f64)").run_one(packed_of(2.0));
  CHECK(root.reason.find("MSVCRT.dll!sqrt") != std::string::npos);
}

TEST_CASE("a library's exports are bound, forwarded ones followed, also between libraries", "[surroundings]") {
  const auto library = [](std::uint64_t base, const BuilderExport& row, FileBytes code) {
    PeBuilder builder;
    builder.image_base = base;
    builder.sections = {{.name = ".text", .data = std::move(code), .address = 0x1000}};
    builder.exports = {row};
    return builder.build().bytes;
  };
  const FileBytes helper = library(0x20000000, {.name = "answer", .forward = "SECOND.Real"}, FileBytes(16));
  // mov eax, [esp + 4]; imul eax, eax, 3; ret
  const FileBytes second = library(0x21000000, {.name = "Real", .address = 0x1000},
                                   bytes_of({0x8b, 0x44, 0x24, 0x04, 0x6b, 0xc0, 0x03, 0xc3}));
  const auto load = [&](const FileBytes& bytes, const std::string& name) {
    return Image::load(TemporaryFile(bytes, 0, name).path());
  };
  Surroundings surroundings;
  surroundings.libraries.push_back(load(helper, "HELPER.DLL"));
  surroundings.libraries.push_back(load(second, "second.dll"));
  const Image image = linked(32, std::move(surroundings));
  Tried tried(image, "export:calls_helper", "cdecl(in u32, out u32)");
  CHECK(tried.run_one(bytes_of_u32({14})) == returned({42}));
  CHECK(has(image.notes(), "HELPER.DLL is mapped at 0x20000000, sha256 "));

  Surroundings circle;
  const FileBytes other = library(0x22000000, {.name = "Real", .forward = "HELPER.answer"}, FileBytes(16));
  circle.libraries.push_back(load(helper, "helper.dll"));
  circle.libraries.push_back(load(other, "SECOND.DLL"));
  const Image endless = linked(32, std::move(circle));
  CHECK(endless.imports().back().name == "answer");
}

TEST_CASE("libraries that overlap, or of another width, are refused", "[surroundings]") {
  Surroundings twice;
  twice.libraries.push_back(load_fixture("surroundings32.dll"));
  CHECK(error_of([&] { linked(32, std::move(twice)); }).find("overlap what is mapped there") != std::string::npos);
  Surroundings wide;
  wide.libraries.push_back(load_fixture("surroundings64.dll"));
  CHECK(error_of([&] { linked(32, std::move(wide)); }).find("is pe32+") != std::string::npos);
}

TEST_CASE("memory is set where something lies, and mapped where nothing does", "[surroundings]") {
  const auto with = [](std::uint64_t address, Bytes bytes) {
    Surroundings surroundings;
    surroundings.memory.push_back({address, std::move(bytes)});
    return linked(32, std::move(surroundings));
  };
  const Image image = with(0x20304050, bytes_of_u32({40}));
  Tried tried(image, "export:reads_memory", "cdecl(in u32, out u32)");
  CHECK(tried.run_one(bytes_of_u32({2})) == returned({42}));
  CHECK(image.find(0x20304000) != nullptr);
  CHECK(image.find(0x20305000) == nullptr);
  const Image bare = linked(32);
  CHECK(Tried(bare, "export:reads_memory", "cdecl(in u32, out u32)").run_one(bytes_of_u32({2})).kind ==
        OutcomeKind::faulted);

  const Image patched = with(0x10003000, bytes_of_u32({0x12345678}));
  CHECK(read_as<std::uint32_t>(patched.read(0x10003000, 4).data()) == 0x12345678);
  CHECK(error_of([&] { with(0x10003ffe, bytes_of_u32({1})); }).find("reach beyond .data") != std::string::npos);
  CHECK(error_of([&] { with(0x10000000 - 2, bytes_of_u32({1})); }).find("overlap") != std::string::npos);
  CHECK(error_of([&] { with(0xfffffffe, bytes_of_u32({1})); }).find("beyond what code can address") !=
        std::string::npos);
  CHECK(error_of([&] { with(0, {}); }).find("0 bytes") != std::string::npos);
}

TEST_CASE("a frame for exceptions finds the thread's block", "[surroundings]") {
  const Image image = linked(32);
  Tried tried(image, "export:has_a_handler", "cdecl(in u32, out u32)");
  CHECK(tried.run_one(bytes_of_u32({41})) == returned({42}));
  std::vector<Bytes> many;
  for (std::uint32_t i = 0; i < 100; ++i) many.push_back(bytes_of_u32({i}));
  const auto ends = tried.run_alone(many);
  for (std::uint32_t i = 0; i < 100; ++i) CHECK(ends[i] == returned({i + 1}));
  const auto notes = tried.notes();
  REQUIRE_FALSE(notes.empty());
  CHECK(notes.front().find("fs:[0x0] in the thread's block") != std::string::npos);
  // A routine that does not name fs finds nothing at address 0.
  CHECK(Tried(image, "export:calls_helper", "cdecl(in u32, out u32)").run_one(bytes_of_u32({1})).kind ==
        OutcomeKind::faulted);
}

TEST_CASE("C libraries are told by name", "[surroundings]") {
  for (const char* name : {"msvcrt.dll", "MSVCR90.dll", "msvcr120d.DLL", "ucrtbase.dll", "VCRUNTIME140.dll",
                           "api-ms-win-crt-math-l1-1-0.dll"}) {
    CHECK(is_c_library(name));
  }
  for (const char* name : {"KERNEL32.dll", "msvcp140.dll", "d3d9.dll", ""}) CHECK_FALSE(is_c_library(name));
}

}  // namespace bitwitness::tests
