// What routines write: outputs whole and in part, memory of their own, their input; and large values.
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

constexpr const char* plain_32 = "cdecl(in u32, out u32)";
constexpr const char* plain_64 = "win64(in u32, out u32)";

/// The bytes that outputs hold before a call, as one 32-bit word. A routine may give them.
constexpr std::uint32_t poison = 0xffa5a55a;

std::vector<Bytes> u32_values(std::initializer_list<std::uint32_t> values) {
  std::vector<Bytes> all;
  for (const std::uint32_t value : values) all.push_back(bytes_of_u32({value}));
  return all;
}

const char* plain(const Image& image) {
  return image.format() == ImageFormat::pe32 ? plain_32 : plain_64;
}

std::vector<Ended> returned_each(std::initializer_list<std::uint32_t> words) {
  std::vector<Ended> all;
  for (const std::uint32_t word : words) all.push_back(returned({word}));
  return all;
}

}  // namespace

TEST_CASE("A result that happens to be the filler of outputs is a result") {
  const Image image = load_conventions(32);
  Tried one_word(image, "export:copies_4", plain_32);
  const std::vector<std::uint32_t> words = {poison,
                                            poison,
                                            0,
                                            poison ^ 0x10000,
                                            poison ^ 1,
                                            0xffa50000,
                                            0x0000a55a,
                                            0x5aa5a5ff,
                                            poison ^ 0xff,
                                            poison ^ 0xff00,
                                            poison ^ 0xff0000,
                                            poison ^ 0xff000000};
  std::vector<Bytes> values;
  std::vector<Ended> expected;
  for (const std::uint32_t word : words) {
    values.push_back(bytes_of_u32({word}));
    expected.push_back(returned({word}));
  }
  CHECK(one_word.run(values) == expected);
  CHECK(one_word.run_alone(values) == expected);
  const std::vector<Bytes> only_filler(5, bytes_of_u32({poison}));
  CHECK(one_word.run(only_filler) == std::vector<Ended>(5, returned({poison})));
  CHECK(one_word.run_one(bytes_of_u32({poison})) == returned({poison}));

  for (const unsigned bits : {32U, 64U}) {
    const Image other = load_conventions(bits);
    Tried four(other, "export:copies_16", bits == 32 ? "cdecl(in u32[4], out u32[4])" : "win64(in u32[4], out u32[4])");
    for (std::size_t at = 0; at < 4; ++at) {
      Words value = {1, 2, 3, 4};
      value[at] = poison;
      const Bytes packed = bytes_of_u32({value[0], value[1], value[2], value[3]});
      CHECK(four.run_one(packed) == returned(value));
      const std::vector<Bytes> among = {bytes_of_u32({5, 6, 7, 8}), packed, bytes_of_u32({9, 10, 11, 12})};
      CHECK(four.run(among).at(1) == returned(value));
    }
  }
}

TEST_CASE("Filler is a result in outputs of every width") {
  const Image image = load_conventions(32);
  Tried bytes(image, "export:out_u8_4", "cdecl(in u8[4], out u8[4])");
  CHECK(bytes.run_one(bytes_of_u32({poison - 0x01010101})) == returned({0x5a, 0xa5, 0xa5, 0xff}));
  Tried words(image, "export:out_u16_3", "cdecl(in u8[6], out u16[3])");
  const Bytes six = {std::byte{0x5a}, std::byte{0xa5}, std::byte{0xa5},
                     std::byte{0xff}, std::byte{0x5a}, std::byte{0xa5}};
  CHECK(words.run_one(six) == returned({0xa55a, 0xffa5, 0xa55a}));
  Tried signed_words(image, "export:out_i8_2", "cdecl(in u8[2], out i8[2])");
  CHECK(signed_words.run_one({std::byte{0x5a}, std::byte{0xa5}}) == returned({0x5a, 0xffffffa5}));
  Tried wide(image, "export:out_u64", "cdecl(in u32, out u64)");
  CHECK(wide.run_one(bytes_of_u32({poison})) == returned({poison, poison}));
  Tried changed(image, "export:inout_u32", "cdecl(inout u32)");
  CHECK(changed.run_one(bytes_of_u32({~poison})) == returned({poison}));
}

TEST_CASE("A routine that writes back what it found has written it") {
  const Image image = load_conventions(32);
  Tried routine(image, "export:writes_poison", "cdecl(in u32, out u32[2])");
  constexpr std::uint32_t poison_alone = 0x7f5c5ba4;  // what looks unwritten in a batch is decided alone
  const std::vector<Ended> ends = routine.run(u32_values({1, 2}));
  if (tries_host) {  // a store that changes nothing cannot be told from none
    for (const Ended& ended : ends) {
      CHECK(ended.kind == OutcomeKind::unwritten);
      CHECK(ended.reason == "returns without having written all of output word 1 (out u32[2])");
    }
    return;
  }
  CHECK(ends == std::vector<Ended>{returned({2, poison_alone}), returned({3, poison_alone})});
}

TEST_CASE("A routine may use its arguments' place on the stack") {
  const Image image = load_fixture("isolation32.dll");
  Tried routine(image, "export:swaps_arguments", "cdecl(in u32, in u32, out u32)");
  const std::vector<Bytes> values = {bytes_of_u32({9, 2}), bytes_of_u32({9, 3}), bytes_of_u32({9, 4})};
  CHECK(routine.run(values) == returned_each({7, 6, 5}));
  CHECK(routine.run_alone(values) == returned_each({7, 6, 5}));
  CHECK(routine.notes().empty());
}

TEST_CASE("A store that begins before an output and ends in it writes it") {
  const Image image = load_fixture("isolation32.dll");
  Tried routine(image, "export:begins_before_output", "cdecl(in u32[2], out u32)");
  const std::vector<Bytes> values = {bytes_of_u32({1, 2}), bytes_of_u32({3, poison}), bytes_of_u32({0, 4})};
  const std::vector<Ended> seconds = returned_each({2, poison, 4});
  CHECK(routine.run(values) == seconds);
  CHECK(routine.run_alone(values) == seconds);
  // On the host the last value has put zeros back before anybody looks; only the one whose word is filler is seen.
  CHECK(routine.notes() == std::vector<std::string>{on_each("2 × writes 4 bytes before argument 2 (out u32)",
                                                            "1 × writes 4 bytes before argument 2 (out u32)")});
}

TEST_CASE("A store far before an output is noted") {
  const Image image = load_fixture("isolation32.dll");
  Tried routine(image, "export:writes_far_before", plain_32);
  CHECK(routine.run(u32_values({1, 2, 3})) == returned_each({2, 3, 4}));
  CHECK(routine.notes() == std::vector<std::string>{"3 × writes 128 bytes before argument 2 (out u32)"});
}

TEST_CASE("Every element of an output must be written") {
  const Image image = load_conventions(32);
  const auto check = [&image](const char* name, const char* signature, std::size_t word) {
    INFO(name << " " << signature);
    Tried routine(image, std::string("export:") + name, signature);
    const std::vector<Bytes> values = some_values(routine.signature().packed_size(), 20, 12);
    for (const bool alone : {false, true}) {
      for (const Ended& ended : alone ? routine.run_alone(values) : routine.run(values)) {
        CHECK(ended.kind == OutcomeKind::unwritten);
        CHECK(ended.reason.starts_with(fmt::format("returns without having written all of output word {} (", word)));
      }
    }
  };
  check("out_u8_4", "cdecl(in u8[4], out u8[5])", 4);
  check("out_u8_4", "cdecl(in u8[4], out u16[3])", 2);
  check("out_i8_2", "cdecl(in u8[2], out u32)", 0);
  check("out_u16_3", "cdecl(in u8[6], out u32[2])", 1);
  check("out_f64", "cdecl(in u8, out f64[2])", 2);
  check("out_u64", "cdecl(in u32, out u64[2])", 2);
  check("two_in_two_out", "cdecl(in u32, in u32, out u32[2], out u32)", 1);
  check("three_outs", "cdecl(in u8[3], out u8, out u32, out u32)", 1);
  check("three_outs", "cdecl(in u8[3], out u16, out u16, out u32)", 0);  // of two bytes it writes one
  check("cdecl_in_out", "cdecl(in u32, out u32, out u32)", 1);
  check("inout_and_out", "cdecl(inout u32, out u32, out u8)", 2);
}

TEST_CASE("A routine with memory of its own finds it as in the file at each batch, and alone at each value") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_conventions(bits);
    Tried routine(image, "export:counts_calls", plain(image));
    const std::vector<Bytes> values = u32_values({100, 100, 100, 7, 0x5a - 4});
    const std::vector<Ended> rising = returned_each({100, 101, 102, 10, 0x5a});
    CHECK(routine.run(values) == rising);
    CHECK(routine.run(values) == rising);
    CHECK(routine.run_alone(values) == returned_each({100, 100, 100, 7, 0x5a - 4}));
    CHECK(routine.run(std::span(values).first(2)) == returned_each({100, 101}));
    CHECK(routine.run_alone(values) == returned_each({100, 100, 100, 7, 0x5a - 4}));
    CHECK(routine.notes() == std::vector<std::string>{
                                 fmt::format("12 × writes to {:#x}, in .data", bits == 32 ? 0x10004000 : 0x180004000)});
    CHECK(routine.machine().observations().begin()->second.first_value == bytes_of_u32({7}));
  }
}

TEST_CASE("Words of a routine with memory of its own may look like filler") {
  const Image image = load_conventions(32);
  Tried routine(image, "export:counts_calls", plain_32);
  CHECK(routine.run(u32_values({poison, poison - 1, poison - 2})) == returned_each({poison, poison, poison}));
}

TEST_CASE("A routine that remembers differs together and alone") {
  const Image image = load_conventions(32);
  Tried routine(image, "export:remembers_last", plain_32);
  const std::vector<Bytes> values = u32_values({11, 22, 33, 44});
  for (int round = 0; round < 2; ++round) {
    CHECK(routine.run(values) == returned_each({0, 11, 22, 33}));
    CHECK(routine.run_alone(values) == returned_each({0, 0, 0, 0}));
  }
}

TEST_CASE("Caches and tables do not change a routine's words") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_conventions(bits);
    Tried cache(image, "export:caches_square", plain(image));
    const std::vector<Bytes> values = u32_values({0, 3, 3, 70000, 3, 0, 0xffffffff});
    const std::vector<Ended> squares = returned_each({0, 9, 9, 605032704, 9, 0, 1});
    CHECK(cache.run(values) == squares);
    CHECK(cache.run_alone(values) == squares);
    CHECK(cache.run(values) == squares);
    // A value that the cache holds writes nothing.
    const std::uint32_t first = bits == 32 ? 0x10004008 : 0x80004004;
    std::vector<std::string> notes;
    for (const std::uint32_t address : {first, first + 4}) {
      notes.push_back(fmt::format("10 × writes to {:#x}, in .data", address + (bits == 32 ? 0 : 0x100000000)));
    }
    CHECK(cache.notes() == notes);
  }
  const Image image = load_conventions(32);
  Tried table(image, "export:builds_table_once", "cdecl(in u8, out u32)");
  std::vector<Bytes> values;
  std::vector<Ended> squares;
  for (std::uint32_t i = 256; i-- > 0;) {
    values.push_back({static_cast<std::byte>(i)});
    squares.push_back(returned({i * i}));
  }
  CHECK(table.run(values) == squares);
  CHECK(table.run_alone(values) == squares);
  REQUIRE_FALSE(table.notes().empty());
  const std::vector<std::string> notes = table.notes();
  const auto* const first_of_table = on_each("1 × writes to 0x10005000, in .bss", "1 × writes to 0x10005004, in .bss");
  CHECK(std::ranges::find(notes, first_of_table) != notes.end());
}

TEST_CASE("Faults and runaways of a routine with memory of its own cost only their values") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_fixture(fmt::format("isolation{}.dll", bits));
    Tried routine(image, "export:counts_all", plain(image), {.budget = 1000});
    const std::vector<Bytes> values = u32_values({0, 1, 4, 2, 8, 3, 12, 1, 2, 3, 16});
    for (int round = 0; round < 2; ++round) {
      const std::vector<Ended> ends = routine.run(values);
      for (std::uint32_t i = 0; i < values.size(); ++i) {
        INFO("value " << i << ": " << ends[i]);
        switch (read_as<std::uint32_t>(values[i].data()) % 4) {
          case 0:
            CHECK(ends[i] == returned({i}));
            break;
          case 1:
            CHECK(ends[i].kind == OutcomeKind::faulted);
            CHECK(ends[i].reason == "reads 4 bytes at 0x10, where nothing is mapped");
            break;
          case 2:
            CHECK(ends[i].kind == OutcomeKind::out_of_budget);
            break;
          default:
            CHECK(ends[i].kind == OutcomeKind::unwritten);
        }
      }
      const std::vector<Ended> alone = routine.run_alone(values);
      for (std::size_t i = 0; i < values.size(); ++i) {
        CHECK(alone[i].kind == ends[i].kind);
        CHECK(alone[i].reason == ends[i].reason);
        if (alone[i].kind == OutcomeKind::returned) CHECK(alone[i].words == Words{0});
      }
    }
  }
}

TEST_CASE("A routine that patches its own code is run as patched, and fresh again where it must be") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_fixture(fmt::format("isolation{}.dll", bits));
    Tried routine(image, "export:grows_its_code", plain(image));
    const std::vector<Bytes> values = u32_values({10, 10, 10, 10, 7});
    for (int round = 0; round < 2; ++round) {
      CHECK(routine.run(values) == returned_each({10, 11, 12, 13, 11}));
      CHECK(routine.run_alone(values) == returned_each({10, 10, 10, 10, 7}));
    }
    CHECK(routine.notes() == std::vector<std::string>{fmt::format("10 × writes to {:#x}, in .patched",
                                                                  bits == 32 ? 0x10002001 : 0x180002001)});

    Tried patched(image, "export:patches_when_odd", plain(image));
    const std::vector<Bytes> mixed = u32_values({2, 7, 8, 6, 9, 10, 12});
    for (int round = 0; round < 2; ++round) {
      CHECK(patched.run(mixed) == returned_each({4, 7, 7, 7, 9, 9, 9}));
      CHECK(patched.run_alone(mixed) == returned_each({4, 7, 4, 4, 9, 4, 4}));
    }
  }
}

TEST_CASE("A routine that writes its input is noted once a value and costs the next nothing") {
  const Image image = load_fixture("isolation32.dll");
  Tried routine(image, "export:clears_input", "cdecl(in u32[4], out u32)");
  const std::vector<Bytes> values = {bytes_of_u32({1, 2, 3, 4}), bytes_of_u32({5, 6, 7, 8}),
                                     bytes_of_u32({9, 0, 0, 0})};
  CHECK(routine.run(values) == returned_each({2, 6, 10}));
  CHECK(routine.run_alone(values) == returned_each({2, 6, 10}));
  CHECK(routine.notes() == std::vector<std::string>{"3 × writes to its input, in argument 1 (in u32[4])"});
}

TEST_CASE("The largest values and outputs are passed whole") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_fixture(fmt::format("isolation{}.dll", bits));
    const std::string convention = bits == 32 ? "cdecl" : "win64";
    std::vector<Bytes> values = some_values(256, 4, 13);
    for (std::size_t i = 0; i < 256; ++i) values[0][i] = static_cast<std::byte>(i);

    Tried copy(image, "export:copies_256", convention + "(in u8[256], out u8[256])");
    Tried sum(image, "export:sums_256", convention + "(value u8[256]) -> u32");
    std::vector<Ended> copies;
    std::vector<Ended> sums;
    for (const Bytes& value : values) {
      Words words;
      for (const std::byte byte : value) words.push_back(std::to_integer<std::uint32_t>(byte));
      sums.push_back(returned({std::accumulate(words.begin(), words.end(), 0U)}));
      copies.push_back(returned(std::move(words)));
    }
    CHECK(copy.run(values) == copies);
    CHECK(copy.run_alone(values) == copies);
    CHECK(sum.run(values) == sums);
    CHECK(sum.run_alone(values) == sums);
    CHECK(copy.notes().empty());
    CHECK(sum.notes().empty());

    Tried wide(image, "export:copies_256", convention + "(in u8[256], out u64[32])");
    const Words expected = wide.run_one(values[0]).words;
    REQUIRE(expected.size() == 64);
    for (std::uint32_t i = 0; i < 64; ++i) CHECK(expected[i] == 0x03020100 + 0x04040404 * i);
    Tried too_little(image, "export:copies_256", convention + "(in u8[255], out u8[256])");
    CHECK(too_little.run_one(Bytes(255)).kind == OutcomeKind::returned);  // one byte of filler behind the value
    Tried too_much(image, "export:copies_256", convention + "(in u8[256], out u8[255])");
    const Ended ended = too_much.run_one(values[0]);
    CHECK(ended.kind == OutcomeKind::faulted);
    CHECK(is_like(ended.reason, "writes 1 byte at 0x*000, just past the end of argument 2 (out u8[255])"));
    CHECK(is_like(ended.instruction, "rep movsb *"));
  }
}

TEST_CASE("A store in the last page of 64-bit addresses is a fault like any other", "[64-bit]") {
  PeBuilder builder;
  builder.is_64 = true;
  // mov rax, -0x1000 or -8; mov [rax], rcx; ret
  for (const auto& [low, high] : {std::pair{0x00U, 0xf0U}, std::pair{0xf8U, 0xffU}}) {
    builder.sections = {
        {.name = ".text",
         .data = bytes_of({0x48, 0xb8, low, high, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x48, 0x89, 0x08, 0xc3})}};
    const TemporaryFile file(builder.build().bytes);
    const Image image = Image::load(file.path());
    Tried tried(image, fmt::format("{:#x}", image.base() + 0x1000), "win64(in u32) -> u32");
    const Ended ended = tried.run_one(bytes_of_u32({1}));
    CHECK(ended.kind == OutcomeKind::faulted);
    CHECK(is_like(ended.reason, "writes 8 bytes at 0xfffffffffffff*"));
  }
}
