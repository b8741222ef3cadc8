// How a signature's arguments are laid out, as the plan for a call says it.
#include "harness/call_plan.hpp"

#include "tests/catch.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

using namespace bitwitness;

namespace {

constexpr Filler filler = {0xaaa00000, 0xabb00000, 0xcc, 0x7f801234};

CallPlan plan(std::string_view signature, std::uint64_t base = 0x2000'0000, std::size_t imports = 3) {
  const Signature parsed = parse_signature(signature);
  const bool is_64_bit = parsed.convention == Convention::win64;
  require_callable(parsed, is_64_bit);
  return plan_call(parsed, is_64_bit, base, imports, filler);
}

std::uint64_t frame_word(const CallPlan& plan, std::size_t offset) {
  std::uint64_t word = 0;
  std::memcpy(&word, plan.frame.data() + offset, plan.is_64_bit ? 8 : 4);
  return word;
}

std::uint64_t stack_filler(std::uint64_t index) {
  return filler.stack_word + index * filler_stride + filler_stride / 2;
}

std::uint64_t register_filler(std::uint64_t number) {
  return filler.general + number * filler_stride + filler_stride / 2;
}

constexpr std::string_view signatures[] = {
    "cdecl(in u8[6], out f32[4])",
    "stdcall(in u8[56], inout u8[200], out f64[100], out u8)",
    "fastcall(in u32, out u32, value u64, f64 = 0.5) -> f32",
    "thiscall(in u16[3], in u8, out u16[3]) -> u64",
    "win64(value u8[200], in u8[5], out u32[16], value u8[7], value f64, value u8[3])",
    "win64(in u8, out u8) -> f64",
};

}  // namespace

TEST_CASE("Regions of a call lie apart, on pages, with nothing mapped between them") {
  for (const std::string_view signature : signatures) {
    for (const std::uint64_t base : {std::uint64_t{0x2000'0000}, std::uint64_t{0x1'8200'0000}}) {
      INFO(signature << " at " << base);
      const CallPlan planned = plan(signature, base, 1000);
      std::vector<Region> regions = {planned.layout.code,   planned.layout.control, planned.layout.input,
                                     planned.layout.result, planned.layout.stack,   planned.layout.traps};
      for (const Slot& slot : planned.slots) {
        if (slot.role == Role::in) {
          CHECK(slot.region.address >= planned.layout.input.address);
          CHECK(slot.region.end() < planned.layout.input.end());  // filler behind it
          continue;
        }
        const std::uint64_t size = round_up_to_page(slot.region.size);
        CHECK(slot.region.end() % page_size == 0);  // a write past it leaves the page
        regions.push_back({slot.region.end() - size, size});
      }
      std::ranges::sort(regions, {}, &Region::address);
      CHECK(regions.front().address == base);
      CHECK(regions.back().end() <= planned.layout.whole.end());
      for (std::size_t i = 0; i < regions.size(); ++i) {
        CHECK(regions[i].address % page_size == 0);
        CHECK(regions[i].size % page_size == 0);
        if (i > 0) CHECK(regions[i - 1].end() + page_size <= regions[i].address);
      }
      CHECK(planned.layout.traps.size >= 1000 * trap_stride);
    }
  }
}

TEST_CASE("Slots take consecutive bytes of the value and do not touch one another") {
  const CallPlan planned = plan("cdecl(in u8[6], value u16, in u8[3], inout u32, out u8[5], in u64)");
  std::vector<std::pair<std::size_t, std::size_t>> found;  // offset in the value, argument
  for (const Slot& slot : planned.slots) {
    if (slot.role != Role::out) found.emplace_back(slot.packed_offset, slot.argument);
  }
  CHECK(found == std::vector<std::pair<std::size_t, std::size_t>>{{0, 0}, {8, 2}, {11, 3}, {15, 5}});
  CHECK(planned.packed_size == 23);
  CHECK(planned.word_count == 6);
  for (const Slot& a : planned.slots) {
    for (const Slot& b : planned.slots) {
      if (&a != &b) CHECK((a.region.end() < b.region.address || b.region.end() < a.region.address));
    }
  }
}

TEST_CASE("Stack arguments begin at a multiple of 16, in order, and filler follows them") {
  const CallPlan planned = plan("cdecl(in u32, i8 = -2, value u8[6], f64 = 1, out u32)");
  CHECK((planned.entry_sp + 4) % 16 == 0);
  CHECK(planned.argument_bytes == 4 + 4 + 8 + 8 + 4);
  CHECK(frame_word(planned, 4) == planned.slots[0].region.address);
  CHECK(frame_word(planned, 8) == 0xfffffffe);
  REQUIRE(planned.patches.size() == 1);
  CHECK(planned.patches[0].place == Patch::Place::stack);
  CHECK(planned.patches[0].target == 12);
  CHECK(planned.patches[0].size == 6);
  CHECK(frame_word(planned, 20) == 0);
  CHECK(frame_word(planned, 24) == 0x3ff00000);
  CHECK(frame_word(planned, 28) == planned.slots[1].region.address);
  CHECK(planned.filler_offset == 32);
  CHECK(planned.filler_bytes == 4 * filler_words);
  for (std::size_t i = 0; i < filler_words; ++i) CHECK(frame_word(planned, 32 + 4 * i) == stack_filler(i));
  CHECK(planned.entry_sp + planned.frame.size() <= planned.layout.stack.end());
}

TEST_CASE("Each convention leaves the stack pointer where it says") {
  const auto removed = [](std::string_view signature) {
    const CallPlan planned = plan(signature);
    return planned.returned_sp - planned.entry_sp - (planned.is_64_bit ? 8 : 4);
  };
  CHECK(removed("cdecl(in u32, out u32)") == 0);
  CHECK(removed("stdcall(in u32, out u32)") == 8);
  CHECK(removed("stdcall(value u8[3], value u64, out u32)") == 16);
  CHECK(removed("stdcall(in u32 @ esi, out u32)") == 4);
  CHECK(removed("thiscall(in u32, out u32)") == 4);
  CHECK(removed("fastcall(in u32, out u32)") == 0);
  CHECK(removed("fastcall(in u32, out u32, u32 = 1)") == 4);
  CHECK(removed("win64(in u32, out u32, u32 = 1, u32 = 2, u32 = 3)") == 0);
}

TEST_CASE("Registers that hold no argument hold filler, each its own") {
  const CallPlan planned = plan("cdecl(in u8[6] @ esi, value u16 @ ecx, f32 = 2 @ xmm3, out u32)");
  for (const std::size_t number : {0U, 2U, 3U, 5U, 7U}) CHECK(planned.general[number] == register_filler(number));
  CHECK(planned.general[4] == planned.entry_sp);
  CHECK(planned.general[6] == planned.slots[0].region.address);
  CHECK(planned.general[1] == 0);  // patched with each value
  CHECK(planned.xmm[3] == std::array<std::uint32_t, 4>{0x40000000, 0, 0, 0});
  CHECK(planned.xmm[2] == std::array<std::uint32_t, 4>{0x7f801234, 0x7f801234, 0x7f801234, 0x7f801234});
  REQUIRE(planned.patches.size() == 1);
  CHECK(planned.patches[0].place == Patch::Place::general);
  CHECK(planned.patches[0].target == 1);
  CHECK(planned.patches[0].size == 2);
  CHECK(planned.patches[0].width == 4);
}

TEST_CASE("win64 keeps room for register arguments and passes odd sizes as aligned copies") {
  const CallPlan planned = plan("win64(value u8[7], in u32, value u8[200], u16 = 9, value u8[6], value f32, out u32)");
  CHECK((planned.entry_sp + 8) % 16 == 0);
  CHECK(planned.argument_bytes == 32 + 3 * 8);
  for (std::size_t i = 0; i < win64_home_words; ++i) CHECK(frame_word(planned, 8 + 8 * i) == stack_filler(i));
  CHECK(planned.general[9] == 9);
  CHECK(frame_word(planned, 8 + 48) == planned.slots[1].region.address);
  std::vector<std::uint64_t> copies;  // addresses of what the patches fill, in order of the arguments
  for (const Patch& patch : planned.patches) {
    CHECK(patch.place == Patch::Place::stack);
    if (patch.target >= planned.filler_offset) copies.push_back(planned.entry_sp + patch.target);
  }
  REQUIRE(copies.size() == 3);
  CHECK(copies == std::vector<std::uint64_t>{planned.general[1], planned.general[8], frame_word(planned, 8 + 32)});
  for (const std::uint64_t address : copies) {
    CHECK(address % 16 == 0);
    CHECK(address >= planned.entry_sp + planned.filler_offset + planned.filler_bytes);
  }
  CHECK(copies[1] >= copies[0] + 7);
  CHECK(copies[2] >= copies[1] + 200);
  CHECK(copies[2] + 6 <= planned.entry_sp + planned.frame.size());
  CHECK(planned.entry_sp + planned.frame.size() <= planned.layout.stack.end());
}

TEST_CASE("An output word is described as the signature spells what gives it") {
  const Signature signature = parse_signature("cdecl(in u8, out f32[2], inout u8[3], out f64) -> u64");
  CHECK(describe_output(signature, 0) == "out f32[2]");
  CHECK(describe_output(signature, 1) == "out f32[2]");
  CHECK(describe_output(signature, 2) == "inout u8[3]");
  CHECK(describe_output(signature, 4) == "inout u8[3]");
  CHECK(describe_output(signature, 5) == "out f64");
  CHECK(describe_output(signature, 6) == "out f64");
  CHECK(describe_output(signature, 7) == "the result (u64)");
  CHECK(describe_output(signature, 8) == "the result (u64)");
}
