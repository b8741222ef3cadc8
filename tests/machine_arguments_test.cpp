// Every well-behaved routine of the test libraries: arguments placed and results found as its signature says.
#include "tests/machine_runs.hpp"

#include <algorithm>
#include <cmath>
#include <set>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

using Packed = const std::byte*;

struct Case {
  const char* name;
  const char* signature;
  Words (*expected)(Packed);
  std::uint32_t largest = 0xffffffff;  ///< of a packed u32
};

std::uint32_t u8(Packed p, std::size_t at) {
  return read_as<std::uint8_t>(p + at);
}
std::uint32_t u16(Packed p, std::size_t at = 0) {
  return read_as<std::uint16_t>(p + at);
}
std::uint32_t u32(Packed p, std::size_t at = 0) {
  return read_as<std::uint32_t>(p + at);
}
std::uint64_t u64(Packed p, std::size_t at = 0) {
  return read_as<std::uint64_t>(p + at);
}
float f32(Packed p) {
  return read_as<float>(p);
}
double f64(Packed p) {
  return read_as<double>(p);
}
std::uint32_t i8(Packed p, std::size_t at = 0) {
  return static_cast<std::uint32_t>(std::int32_t{read_as<std::int8_t>(p + at)});
}
std::uint32_t i16(Packed p) {
  return static_cast<std::uint32_t>(std::int32_t{read_as<std::int16_t>(p)});
}

Words word(std::uint32_t bits) {
  return {bits};
}
Words word(float value) {
  return {std::bit_cast<std::uint32_t>(value)};
}
Words halves(std::uint64_t bits) {
  return {static_cast<std::uint32_t>(bits), static_cast<std::uint32_t>(bits >> 32)};
}
Words halves(double value) {
  return halves(std::bit_cast<std::uint64_t>(value));
}

template <std::uint32_t Addend>
Words plus(Packed p) {
  return word(u32(p) + Addend);
}

template <std::size_t Count>
Words same(Packed p) {
  Words words;
  for (std::size_t i = 0; i < Count; ++i) words.push_back(u32(p, 4 * i));
  return words;
}

Words six_bytes(Packed p) {
  return {u32(p), u16(p, 4)};
}
Words not_u32(Packed p) {
  return word(~u32(p));
}
Words swapped(Packed p) {
  return {u32(p, 4), u32(p)};
}
Words doubled_f32(Packed p) {
  return word(f32(p) + f32(p));
}
Words doubled_f64(Packed p) {
  return halves(f64(p) + f64(p));
}
Words tripled_u16(Packed p) {
  return word(3 * u16(p));
}
Words half_f32(Packed p) {
  return word(f32(p) / 2);
}
Words one_more_f64(Packed p) {
  return halves(f64(p) + 1);
}
Words times_1_5(Packed p) {
  return word(f32(p) * 1.5F);
}
Words plus_quarter(Packed p) {
  return halves(f64(p) + 0.25);
}
Words first_two_sums(Packed p) {
  return {u32(p) - u32(p, 4), u32(p) + u32(p, 4)};
}
Words sum_of_two(Packed p) {
  return word(u32(p) + u32(p, 4));
}
Words result_too(Packed p) {
  return {u32(p) + 1, u32(p) + 2};
}
Words result_f32_too(Packed p) {
  return {u32(p) ^ 0x80000000, std::bit_cast<std::uint32_t>(f32(p) + f32(p))};
}
Words more_and_double(Packed p) {
  return {u32(p) + 1, 2 * u32(p)};
}
Words negated_bytes(Packed p) {
  return {0 - u8(p, 0), 0 - u8(p, 1), 0 - u8(p, 2), 0 - u8(p, 3)};
}
Words table_value(Packed p) {
  return word(0x11111111 * (u8(p, 0) & 3));
}
Words table_case(Packed p) {
  return word(10 + (u8(p, 0) & 3));
}

const Case cases_32[] = {
    {"cdecl_in_out", "cdecl(in u32, out u32)", plus<1>},
    {"cdecl_out_in", "cdecl(out u32, in u32)", plus<2>},
    {"stdcall_in_out", "stdcall(in u32, out u32)", plus<3>},
    {"stdcall_out_in", "stdcall(out u32, in u32)", plus<4>},
    {"thiscall_in_out", "thiscall(in u32, out u32)", plus<5>},
    {"thiscall_out_in", "thiscall(out u32, in u32)", plus<6>},
    {"thiscall_three", "thiscall(in u32, u32 = 700, out u32)", plus<700>},
    {"fastcall_in_out", "fastcall(in u32, out u32)", plus<7>},
    {"fastcall_out_in", "fastcall(out u32, in u32)", plus<8>},
    {"fastcall_three", "fastcall(in u32, out u32, u32 = 1000)", plus<1000>},
    {"fastcall_float_first", "fastcall(value f32, in u32, out u32)", sum_of_two},
    {"fastcall_wide_first", "fastcall(value u64, in u32, out u32)",
     [](Packed p) { return word(u32(p, 8) + (u32(p) ^ u32(p, 4))); }},
    {"constant_u32", "cdecl(in u32, u32 = 0x11223344, out u32)", [](Packed p) { return word(u32(p) ^ 0x11223344); }},
    {"constant_i8", "cdecl(in u32, i8 = -5, out u32)", plus<0xfffffffb>},
    {"constant_i8_wide", "cdecl(in u32, i8 = -5, out u32)", plus<0xfffffffb>},
    {"constant_f32", "cdecl(in f32, f32 = 1.5, out f32)", times_1_5},
    {"constant_f64", "cdecl(in f64, f64 = 0.25, out f64)", plus_quarter},
    {"constant_u64", "cdecl(in u32, u64 = 0x1122334455667788, out u32[2])",
     [](Packed p) {
       return Words{u32(p) ^ 0x55667788, u32(p) ^ 0x11223344};
     }},
    {"constants_between", "cdecl(u32 = 1, in u32, u32 = 2, out u32, u32 = 3)", plus<0x123>},
    {"value_u8", "cdecl(value u8, out u32)", [](Packed p) { return word(u8(p, 0) + 0x100); }},
    {"value_i8", "cdecl(value i8) -> u32", [](Packed p) { return word(i8(p)); }},
    {"value_u16", "cdecl(value u16, out u32)", [](Packed p) { return word(u16(p) + 0x10000); }},
    {"value_i16", "cdecl(value i16) -> u32", [](Packed p) { return word(i16(p)); }},
    {"value_u32", "cdecl(value u32, out u32)", not_u32},
    {"value_u64", "cdecl(value u64, out u32[2])", swapped},
    {"value_f32", "cdecl(value f32) -> f32", doubled_f32},
    {"value_f64", "cdecl(value f64) -> f64", doubled_f64},
    {"value_u8_3", "cdecl(value u8[3], u32 = 0x77, out u32)",
     [](Packed p) { return word((u16(p) | u8(p, 2) << 16) + 0x77000000); }},
    {"value_u8_6", "cdecl(value u8[6], out u32[2])", six_bytes},
    {"value_u8_6_constant", "cdecl(value u8[6], u32 = 0x77, out u32)",
     [](Packed p) { return word(u16(p, 4) + 0x770000); }},
    {"value_u16_3", "cdecl(value u16[3], out u16[3])",
     [](Packed p) {
       return Words{u16(p, 4), u16(p, 2), u16(p)};
     }},
    {"values_three", "cdecl(value u8, value u16, value u32, out u32[3])",
     [](Packed p) {
       return Words{u8(p, 0), u16(p, 1), u32(p, 3)};
     }},
    {"stdcall_value_u64", "stdcall(value u64, out u32)", sum_of_two},
    {"registers_esi_edi", "cdecl(in u8[6] @ esi, out u32[2] @ edi)", six_bytes},
    {"register_value_eax", "cdecl(value u16 @ eax, out u32 @ edi)", tripled_u16},
    {"register_value_xmm1", "cdecl(value f32 @ xmm1, out f32)", doubled_f32},
    {"register_value_f64_xmm2", "cdecl(value f64 @ xmm2, out f64)", doubled_f64},
    {"register_constant_ebx", "cdecl(in u32, u32 = 0x1000 @ ebx, out u32)", plus<0x1000>},
    {"register_constant_xmm7", "cdecl(value f32 @ xmm0, f32 = 2.5 @ xmm7, out f32)",
     [](Packed p) { return word(f32(p) * 2.5F); }},
    {"registers_all",
     "cdecl(in u32 @ eax, out u32 @ ebp, u32 = 1 @ ebx, u32 = 2 @ ecx, u32 = 4 @ edx, u32 = 8 @ esi, u32 = 16 @ edi)",
     plus<31>},
    {"registers_and_stack", "stdcall(in u8[6] @ esi, u32 = 5, out u32 @ edi)", plus<5>},

    {"result_f32", "cdecl(in f32) -> f32", half_f32},
    {"result_f64", "cdecl(in f64) -> f64", one_more_f64},
    {"result_f32_wide", "cdecl(in f64) -> f32", [](Packed p) { return word(static_cast<float>(f64(p))); }},
    {"result_f32_xmm0", "cdecl(in f32) -> f32 @ xmm0", half_f32},
    {"result_f64_xmm3", "cdecl(in f64) -> f64 @ xmm3", one_more_f64},
    {"result_u32", "cdecl(in u32) -> u32", not_u32},
    {"result_u32_ecx", "cdecl(in u32) -> u32 @ ecx", not_u32},
    {"result_u64", "cdecl(in u64) -> u64", swapped},
    {"out_and_result", "cdecl(in u32, out u32) -> u32", result_too},
    {"out_and_result_f32", "stdcall(in f32, out f32) -> f32", result_f32_too},
    {"inout_u32", "cdecl(inout u32)", not_u32},
    {"inout_u8_8", "cdecl(inout u8[8])",
     [](Packed p) {
       Words words;
       for (std::size_t i = 8; i-- > 0;) words.push_back(u8(p, i));
       return words;
     }},
    {"inout_and_out", "cdecl(inout u32, out u32)", more_and_double},
    {"inout_f32_4", "thiscall(inout f32[4])",
     [](Packed p) {
       Words words = same<4>(p);
       for (std::uint32_t& bits : words) bits ^= 0x80000000;
       return words;
     }},
    {"in_and_inout", "cdecl(in u32, inout u32)", sum_of_two},
    {"two_in_two_out", "cdecl(in u32, in u32, out u32, out u32)", first_two_sums},
    {"two_in_u16", "cdecl(in u16, in u16, out u32)", [](Packed p) { return word(u16(p) << 16 | u16(p, 2)); }},
    {"two_words_packed", "fastcall(in u16[2], out u32[2])",
     [](Packed p) {
       return Words{u16(p, 2), u16(p)};
     }},
    {"three_outs", "cdecl(in u8[3], out u8, out u16, out u32)",
     [](Packed p) {
       return Words{(u8(p, 0) + 1) & 0xff, u8(p, 1) + 0x100, u8(p, 2) + 0x10000};
     }},
    {"out_u8_4", "cdecl(in u8[4], out u8[4])",
     [](Packed p) {
       return Words{(u8(p, 0) + 1) & 0xff, (u8(p, 1) + 1) & 0xff, (u8(p, 2) + 1) & 0xff, (u8(p, 3) + 1) & 0xff};
     }},
    {"out_i8_2", "cdecl(in u8[2], out i8[2])",
     [](Packed p) {
       return Words{i8(p), i8(p, 1)};
     }},
    {"out_i16_4", "cdecl(in u8[4], out i16[4])", negated_bytes},
    {"out_u16_3", "cdecl(in u8[6], out u16[3])",
     [](Packed p) {
       return Words{u16(p), u16(p, 2), u16(p, 4)};
     }},
    {"out_u16_3", "cdecl(in u8[2, +2, 2], out u16[1, +2, 1])",  // the middle one is passed over
     [](Packed p) {
       return Words{u16(p), u16(p, 2)};
     }},
    {"out_u16_3", "cdecl(in u8[+2, 4], out u16[+2, 2])",
     [](Packed p) {
       return Words{u16(p), u16(p, 2)};
     }},
    {"out_f64", "cdecl(in u8, out f64)", [](Packed p) { return halves(double{static_cast<double>(u8(p, 0))}); }},
    {"out_f64_2", "cdecl(in u8[2], out f64[2])",
     [](Packed p) {
       Words words = halves(static_cast<double>(u8(p, 0)));
       const Words second = halves(static_cast<double>(u8(p, 1)));
       words.insert(words.end(), second.begin(), second.end());
       return words;
     }},
    {"out_u64", "cdecl(in u32, out u64)",
     [](Packed p) {
       return Words{u32(p), u32(p)};
     }},
    {"out_i64", "cdecl(in u32, out i64)",
     [](Packed p) {
       return Words{u32(p), u32(p) >> 31 != 0 ? 0xffffffff : 0};
     }},
    {"reads_table", "cdecl(in u8, out u32)", table_value},
    {"jumps_by_table", "cdecl(in u8, out u32)", table_case},
    {"calls_another", "cdecl(in u32, out u32)", plus<0x41>},
    {"tail_calls", "cdecl(in u32, out u32)", plus<1>},
    {"returns_by_jump", "cdecl(in u32, out u32)", plus<9>},
    {"uses_deep_stack", "cdecl(in u32, out u32)", plus<10>},
    {"aligns_its_stack", "cdecl(in u32[4], out u32[4])", same<4>},
    {"changes_its_arguments", "cdecl(in u32, out u32)", plus<11>},
    {"straight_2000", "cdecl(in u32, out u32)", plus<1994>},
    {"count_3n_plus_4", "cdecl(value u32) -> u32", [](Packed p) { return word(3 * u32(p)); }, 2000},
};

const Case cases_64[] = {
    {"in_out", "win64(in u32, out u32)", plus<1>},
    {"out_in", "win64(out u32, in u32)", plus<2>},
    {"shadow_space", "win64(in u32, out u32, u32 = 3, u32 = 4)", plus<0x34>},
    {"six_arguments", "win64(in u32, u32 = 1, u32 = 2, u32 = 3, u32 = 4, out u32)", plus<0x1234>},
    {"constant_i8_wide", "win64(in u32, i8 = -5, out u32)", plus<0xfffffffb>},
    {"constant_u64", "win64(in u64, u64 = 0x1122334455667788, out u64)",
     [](Packed p) { return halves(u64(p) ^ 0x1122334455667788); }},
    {"constant_f32_second", "win64(in f32, f32 = 1.5, out f32)", times_1_5},
    {"constant_f64_third", "win64(in f64, out f64, f64 = 0.25)", plus_quarter},
    {"constant_f64_fifth", "win64(in f64, u32 = 0, u32 = 0, u32 = 0, f64 = 0.25, out f64)", plus_quarter},
    {"value_u8", "win64(value u8, out u32)", [](Packed p) { return word(u8(p, 0) + 0x100); }},
    {"value_i16", "win64(value i16) -> u32", [](Packed p) { return word(i16(p)); }},
    {"value_u64", "win64(value u64, out u32[2])", swapped},
    {"value_f32", "win64(value f32) -> f32", doubled_f32},
    {"value_f64", "win64(value f64) -> f64", doubled_f64},
    {"value_f32_second", "win64(in u32, value f32, out u32)", sum_of_two},
    {"value_f32_fifth", "win64(in u32, u32 = 0, u32 = 0, out u32, value f32)", sum_of_two},
    {"values_mixed", "win64(value f32, value u32, value f64, value u16, out u32[5])",
     [](Packed p) {
       return Words{u32(p), u32(p, 4), u32(p, 8), u32(p, 12), u16(p, 16)};
     }},
    {"value_u8_3", "win64(value u8[3], out u32)", [](Packed p) { return word(u16(p) | u8(p, 2) << 16); }},
    {"value_u8_4", "win64(value u8[4], out u32)", plus<1>},
    {"value_u8_6", "win64(value u8[6], out u32[2])", six_bytes},
    {"value_u16_4", "win64(value u16[4], out u16[4])",
     [](Packed p) {
       return Words{u16(p), u16(p, 2), u16(p, 4), u16(p, 6)};
     }},
    {"value_u8_16", "win64(out u32[4], value u8[16])", same<4>},
    {"value_u8_6_fifth", "win64(u32 = 0, u32 = 0, u32 = 0, out u32[2], value u8[6])", six_bytes},
    {"changes_its_copy", "win64(value u8[6], out u32)", [](Packed p) { return word(u16(p, 4)); }},
    {"registers_rsi_rdi", "win64(in u8[6] @ rsi, out u32[2] @ rdi)", six_bytes},
    {"register_value_r10", "win64(value u16 @ r10, out u32)", tripled_u16},
    {"register_constant_r15", "win64(in u32, u64 = 0x100000001 @ r15, out u64)",
     [](Packed p) {
       return Words{u32(p), u32(p)};
     }},
    {"register_value_xmm9", "win64(value f32 @ xmm9, out f32)", doubled_f32},
    {"registers_all",
     "win64(in u32 @ rax, out u32 @ rbp, u32 = 1 @ rbx, u32 = 2 @ rsi, u32 = 4 @ rdi, u32 = 8 @ r8, u32 = 16 @ r11, "
     "u32 = 32 @ r12, u32 = 64 @ r13, u32 = 128 @ r14)",
     plus<255>},

    {"result_f32", "win64(in f32) -> f32", half_f32},
    {"result_f64", "win64(in f64) -> f64", one_more_f64},
    {"result_f32_xmm2", "win64(in f32) -> f32 @ xmm2", half_f32},
    {"result_u32", "win64(in u32) -> u32", not_u32},
    {"result_u32_r9", "win64(in u32) -> u32 @ r9", not_u32},
    {"result_u64", "win64(in u64) -> u64", swapped},
    {"out_and_result", "win64(in u32, out u32) -> u32", result_too},
    {"out_and_result_f32", "win64(in f32, out f32) -> f32", result_f32_too},
    {"inout_u32", "win64(inout u32)", not_u32},
    {"inout_and_out", "win64(inout u32, out u32)", more_and_double},
    {"two_in_two_out", "win64(in u32, in u32, out u32, out u32)", first_two_sums},
    {"out_i16_4", "win64(in u8[4], out i16[4])", negated_bytes},
    {"out_f64", "win64(in u8, out f64)", [](Packed p) { return halves(static_cast<double>(u8(p, 0))); }},
    {"reads_table", "win64(in u8, out u32)", table_value},
    {"jumps_by_table", "win64(in u8, out u32)", table_case},
    {"calls_another", "win64(in u32, out u32)", plus<0x41>},
    {"stack_alignment", "win64(in u32) -> u32", [](Packed) { return word(8U); }},
    {"aligns_nothing", "win64(in u32[4], out u32[4])", same<4>},
    {"uses_deep_stack", "win64(in u32, out u32)", plus<10>},
    {"straight_2000", "win64(in u32, out u32)", plus<1996>},
    {"count_3n_plus_4", "win64(value u32) -> u32", [](Packed p) { return word(3 * u32(p)); }, 2000},
};

/// Sets the quiet bit of NaNs: what an emulated x87 does with a signalling one is not what is tested here.
void quieten(Bytes& value, const Signature& signature) {
  std::size_t at = 0;
  for (const Argument& argument : signature.arguments) {
    if (argument.role == Role::out || argument.role == Role::constant) continue;
    for (std::size_t i = 0; i < argument.type.count; ++i, at += size_of(argument.type.scalar)) {
      if (argument.type.scalar == Scalar::f32 && std::isnan(f32(value.data() + at))) value[at + 2] |= std::byte{0x40};
      if (argument.type.scalar == Scalar::f64 && std::isnan(f64(value.data() + at))) value[at + 6] |= std::byte{0x08};
    }
  }
}

std::vector<Bytes> values_for(const Case& tested, const Signature& signature, std::uint64_t seed) {
  std::vector<Bytes> values = some_values(signature.packed_size(), 40, seed);
  for (Bytes& value : values) {
    quieten(value, signature);
    if (tested.largest == 0xffffffff) continue;
    const std::uint32_t limited = u32(value.data()) % (tested.largest + 1);
    std::memcpy(value.data(), &limited, sizeof limited);
  }
  return values;
}

void check(const Image& image, const Case& tested, std::uint64_t seed) {
  INFO(tested.name << " " << tested.signature << ", seed " << seed);
  Tried routine(image, std::string("export:") + tested.name, tested.signature);
  const std::vector<Bytes> values = values_for(tested, routine.signature(), seed);
  std::vector<Ended> expected;
  for (const Bytes& value : values) expected.push_back(returned(tested.expected(value.data())));
  CHECK(routine.run(values) == expected);
  CHECK(routine.run_alone(values) == expected);

  std::vector<Bytes> backwards(values.rbegin(), values.rend());
  std::ranges::reverse(expected);
  CHECK(routine.run(backwards) == expected);
  CHECK(routine.notes().empty());
}

/// The well-behaved routines lie before the first of the others.
std::set<std::string> well_behaved(const Image& image) {
  std::set<std::string> names;
  for (const NamedAddress& exported : image.exports()) {
    if (exported.address < image.resolve("export:clobbers_saved")) names.insert(exported.name);
  }
  return names;
}

template <std::size_t Count>
void check_all(const Image& image, const Case (&cases)[Count]) {
  constexpr std::uint64_t seed = 1;
  std::set<std::string> tested;
  for (const Case& one : cases) {
    check(image, one, seed);
    tested.insert(one.name);
  }
  CHECK(tested == well_behaved(image));
}

}  // namespace

TEST_CASE("Every well-behaved 32-bit routine gives its words") {
  check_all(load_conventions(32), cases_32);
}

TEST_CASE("Every well-behaved 64-bit routine gives its words", "[64-bit]") {
  check_all(load_conventions(64), cases_64);
}

TEST_CASE("Routines give the same words in an image at another base") {
  check_all(load_conventions(32, {.base = 0x20000000}), cases_32);
  check_all(load_conventions(64, {.base = 0x7ff612340000}), cases_64);
}
