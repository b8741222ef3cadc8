// What one call leaves must not show in the next, on this computer's processor.
#include "harness/lane_kind.hpp"
#include "harness/machine.hpp"
#include "tests/host_support.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

const RestrictTests restricted(needs_host);

Image image_of(FileBytes code, bool is_64_bit = false) {
  PeBuilder builder;
  builder.is_64 = is_64_bit;
  builder.sections = {{.name = ".text", .data = std::move(code)}};
  const TemporaryFile file(builder.build().bytes);
  return Image::load(file.path());
}

/// Runs code at the start of .text, 64-bit code where the signature is win64's.
Batch run(FileBytes code, std::string_view signature, const Bytes& packed, const Environment& environment = {}) {
  const Image image = image_of(std::move(code), signature.starts_with("win64"));
  const Routine routine{"tried", image.base() + 0x1000, parse_signature(signature)};
  Batch host;
  make_host_machine(image, routine)->run(host, packed, environment);
  return host;
}

}  // namespace

TEST_CASE("A result that an unmasked exception keeps from being stored is a fault, and no stale word") {
  // fld qword [esp + 4]; ret, with overflow unmasked: the store as f32 is the caller's.
  const FileBytes code = bytes_of({0xdd, 0x44, 0x24, 0x04, 0xc3});
  const Bytes packed = bytes_of_u32({0, 0x40450000,           // 42
                                     0x8c2bf8f2, 0x7e37e43c,  // 1e300
                                     0, 0x40080000});         // 3
  const Batch batch = run(code, "cdecl(value f64) -> f32", packed, {.fpcw = 0x0277});
  REQUIRE(batch.outcomes == std::vector{OutcomeKind::returned, OutcomeKind::faulted, OutcomeKind::returned});
  CHECK(batch.words[0] == 0x42280000);
  CHECK(batch.words[2] == 0x40400000);
  REQUIRE(batch.incidents.size() == 1);
  CHECK(batch.incidents[0].reason == "raises the x87 exception (16)");
}

TEST_CASE("A routine that looks at sticky flags finds none of an earlier value's") {
  // fld dword [esp + 4]; fistp dword [esp - 4]; fnstsw ax; and eax, 1; ret: whether the conversion was invalid.
  const FileBytes code = bytes_of({0xd9, 0x44, 0x24, 0x04, 0xdb, 0x5c, 0x24, 0xfc, 0xdf, 0xe0, 0x83, 0xe0, 0x01, 0xc3});
  const Batch batch = run(code, "cdecl(value f32) -> u32", bytes_of_u32({0x3f800000, 0x7f800000, 0x3f800000}));
  CHECK(batch.outcomes == std::vector(3, OutcomeKind::returned));
  CHECK(batch.words == Words{0, 1, 0});
}

TEST_CASE("The stack below a call is the same for every value") {
  // mov eax, [esp - 8]; mov ecx, [esp + 4]; mov [esp - 8], ecx; ret: what an earlier call has left there.
  const FileBytes code = bytes_of({0x8b, 0x44, 0x24, 0xf8, 0x8b, 0x4c, 0x24, 0x04, 0x89, 0x4c, 0x24, 0xf8, 0xc3});
  const Batch batch = run(code, "cdecl(value u32) -> u32", bytes_of_u32({1, 2, 3}));
  CHECK(batch.outcomes == std::vector(3, OutcomeKind::returned));
  CHECK(batch.words[0] == batch.words[1]);
  CHECK(batch.words[1] == batch.words[2]);
}

TEST_CASE("The stack below a 64-bit call is the same for every value", "[64-bit]") {
  // mov eax, [rsp - 0x1f8]; mov [rsp - 0x1f8], ecx; ret
  const FileBytes code =
      bytes_of({0x8b, 0x84, 0x24, 0x08, 0xfe, 0xff, 0xff, 0x89, 0x8c, 0x24, 0x08, 0xfe, 0xff, 0xff, 0xc3});
  const Batch batch = run(code, "win64(value u32) -> u32", bytes_of_u32({1, 2, 3}));
  CHECK(batch.outcomes == std::vector(3, OutcomeKind::returned));
  CHECK(batch.words[0] == batch.words[1]);
  CHECK(batch.words[1] == batch.words[2]);
}

TEST_CASE("An x87 register that a call fills below the top is empty at the next", "[64-bit]") {
  FileBytes code;
  const auto add = [&code](std::initializer_list<unsigned> bytes, int times = 1) {
    for (; times > 0; --times) {
      for (const std::byte byte : bytes_of(bytes)) code.push_back(byte);
    }
  };
  add({0xd9, 0xe8}, 6);                 // fld1
  add({0xd9, 0x5c, 0x24, 0xf8});        // fstp dword [rsp - 8]
  add({0xdd, 0xd8}, 5);                 // fstp st(0)
  add({0xd9, 0xe8});                    // fld1
  add({0xdd, 0xd3});                    // fst st(3)
  add({0xdd, 0xd8});                    // fstp st(0)
  add({0x8b, 0x44, 0x24, 0xf8, 0xc3});  // mov eax, [rsp - 8]; ret
  const Batch batch = run(code, "win64(value u32) -> u32", bytes_of_u32({1, 2, 3, 4}));
  CHECK(batch.outcomes == std::vector(4, OutcomeKind::returned));
  CHECK(batch.words == Words(4, 0x3f800000));
}

TEST_CASE("A return to where its caller goes on later is no return", "[64-bit]") {
  // With the nop, nothing at the return tells of it beforehand.
  for (const bool has_nop : {false, true}) {
    for (std::uint8_t by = 1; by < 120; ++by) {
      // mov eax, [rcx]; mov [rdx], eax; test al, 1; je +5; add qword [rsp], …; ret
      FileBytes code = bytes_of({0x8b, 0x01, 0x89, 0x02, 0xa8, 0x01, 0x74, 0x05, 0x48, 0x83, 0x04, 0x24, by, 0xc3});
      if (has_nop) code.insert(code.end() - 1, std::byte{0x90});
      Bytes packed;
      for (std::uint32_t i = 0; i < 64; ++i) {
        const Bytes bytes = bytes_of_u32({i == 33 ? 1U : 2 * i});
        packed.insert(packed.end(), bytes.begin(), bytes.end());
      }
      const Batch batch = run(code, "win64(in u32, out u32)", packed);
      INFO("by " << int{by} << (has_nop ? " behind a nop" : ""));
      for (std::uint32_t i = 0; i < 64; ++i) {
        INFO(i);
        REQUIRE((batch.outcomes[i] == OutcomeKind::returned) == (i != 33));
        if (i != 33) REQUIRE(batch.words[i] == 2 * i);
      }
    }
  }
}

TEST_CASE("A byte that every value leaves as it was is a result where it is written, and none where it is not",
          "[64-bit]") {
  std::uint32_t like_before = 0;
  std::memcpy(&like_before, poison_of(LaneKind::batch).data(), sizeof like_before);
  const auto byte = [like_before](unsigned shift) { return like_before >> shift & 0xff; };
  Bytes packed;
  for (std::uint32_t i = 0; i < 8192; ++i) {
    const Bytes bytes = bytes_of_u32({i});
    packed.insert(packed.end(), bytes.begin(), bytes.end());
  }
  // mov eax, [rcx]; mov [rdx], eax; mov byte [rdx + 4], …; mov word [rdx + 5], ax; mov byte [rdx + 7], …; ret
  const Batch written = run(bytes_of({0x8b, 0x01, 0x89, 0x02, 0xc6, 0x42, 0x04, byte(0), 0x66, 0x89, 0x42, 0x05, 0xc6,
                                      0x42, 0x07, byte(24), 0xc3}),
                            "win64(in u32, out u32[2])", packed);
  CHECK(written.incidents.empty());
  for (std::uint32_t i = 0; i < 8192; ++i) {
    REQUIRE(written.words[2 * i + 1] == ((like_before & 0xff0000ff) | i << 8));
  }
  // The same without the last byte.
  const Batch unwritten =
      run(bytes_of({0x8b, 0x01, 0x89, 0x02, 0xc6, 0x42, 0x04, byte(0), 0x66, 0x89, 0x42, 0x05, 0xc3}),
          "win64(in u32, out u32[2])", Bytes(packed.begin(), packed.begin() + 400));
  CHECK(unwritten.outcomes == std::vector(100, OutcomeKind::unwritten));
}

TEST_CASE("Outputs that hold what stood there before are results, and unwritten ones are not", "[64-bit]") {
  // mov eax, [rcx]; cmp eax, 7; je +6; mov [rdx], eax; mov [rdx + 4], eax; … ret: 7 leaves both words as they are.
  const FileBytes code = bytes_of({0x8b, 0x01, 0x83, 0xf8, 0x07, 0x74, 0x05, 0x89, 0x02, 0x89, 0x42, 0x04, 0xc3});
  Bytes packed;
  std::uint32_t like_before = 0;
  std::memcpy(&like_before, poison_of(LaneKind::batch).data(), sizeof like_before);
  const std::vector<std::uint32_t> odd = {7, like_before, like_before & 0xffff, like_before & 0xffff0000};
  for (std::uint32_t i = 0; i < 8192; ++i) {
    const std::uint32_t value = i % 1000 == 999 ? odd[i / 1000 % odd.size()] : i + 8;
    const Bytes bytes = bytes_of_u32({value});
    packed.insert(packed.end(), bytes.begin(), bytes.end());
  }
  const Batch batch = run(code, "win64(in u32, out u32[2])", packed);
  for (std::uint32_t i = 0; i < 8192; ++i) {
    INFO(i);
    const std::uint32_t value = i % 1000 == 999 ? odd[i / 1000 % odd.size()] : i + 8;
    if (value == 7) {
      REQUIRE(batch.outcomes[i] == OutcomeKind::unwritten);
      continue;
    }
    REQUIRE(batch.outcomes[i] == OutcomeKind::returned);
    REQUIRE(batch.words[2 * i] == value);
    REQUIRE(batch.words[2 * i + 1] == value);
  }
}

TEST_CASE("What an argument passes over is the same for every value") {
  // mov ecx, [esp + 4]; movzx eax, byte [ecx + 2]; inc byte [ecx + 2]; mov [ecx], ax; ret
  const FileBytes code =
      bytes_of({0x8b, 0x4c, 0x24, 0x04, 0x0f, 0xb6, 0x41, 0x02, 0xfe, 0x41, 0x02, 0x66, 0x89, 0x01, 0xc3});
  const Batch batch = run(code, "cdecl(inout u16[1, +2, 1])", bytes_of_u32({0x00010001, 0x00020002, 0x00030003}));
  CHECK(batch.outcomes == std::vector(3, OutcomeKind::returned));
  CHECK(batch.words == Words{0xb5, 1, 0xb5, 2, 0xb5, 3});
}

TEST_CASE("Upper halves of vector registers do not pass from value to value") {
  // vextractf128 xmm1, ymm0, 1; movd eax, xmm1; vbroadcastss ymm0, dword [esp + 4]; ret
  const FileBytes code = bytes_of(
      {0xc4, 0xe3, 0x7d, 0x19, 0xc1, 0x01, 0x66, 0x0f, 0x7e, 0xc8, 0xc4, 0xe2, 0x7d, 0x18, 0x44, 0x24, 0x04, 0xc3});
  const Batch batch = run(code, "cdecl(value u32) -> u32", bytes_of_u32({1, 2, 3}));
  if (!__builtin_cpu_supports("avx2")) return skip("this processor has no AVX2");
  CHECK(batch.words == Words{0, 0, 0});
}

TEST_CASE("A first value that does not end is interrupted when its path is asked for") {
  const Image image = image_of(bytes_of({0xeb, 0xfe}));  // jmp $
  const Routine routine{"tried", image.base() + 0x1000, parse_signature("cdecl(value u32) -> u32")};
  const auto machine = make_host_machine(image, routine, {.budget = 1000});
  CHECK(machine->path(bytes_of_u32({1}), {}).empty());
  std::size_t states = 0;
  machine->follow(bytes_of_u32({1}), {}, [&states](const FollowedState&) { return ++states < 1000; });
  CHECK(states == 1000);
}
