// The caller that runs routines on this computer's processor, in the emulator: it is the same code, and so tried where
// the processor runs none of its width.
#include "harness/host/host_code.hpp"

#include "harness/call_plan.hpp"
#include "harness/call_room.hpp"
#include "harness/emulator.hpp"
#include "harness/host/call_needs.hpp"
#include "harness/lane_kind.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

#include <sys/mman.h>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

struct NoEvents final : EmulatorEvents {
  bool on_port_write(std::uint32_t, std::uint32_t) override { return false; }
  void on_write(std::uint64_t, unsigned) override {}
  bool on_instruction(std::uint64_t) override { return true; }
  bool on_new_code(std::uint64_t, unsigned) override { return true; }
};

class Pages {
 public:
  explicit Pages(std::uint64_t size) : size_(size) {
    void* const at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(at != MAP_FAILED);
    bytes_ = {static_cast<std::byte*>(at), size};
  }
  ~Pages() { ::munmap(bytes_.data(), size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::size_t size_;
  std::span<std::byte> bytes_;
};

/// What a go of the caller leaves.
struct Gone {
  bool is_done = false;  ///< it came to the breakpoint behind the last value
  std::uint64_t odd = 0;
  Words words;
};

/// A routine with its caller and their memory.
class Caller {
 public:
  Caller(const Image& image, const std::string& where, std::string_view signature, const Bytes& packed)
      : image_(image),
        plan_(plan_of(image, signature)),
        count_(packed.size() / plan_.packed_size),
        needs_(host::needs_of(image, image.resolve(where))),
        layout_(host::lay_out_host(plan_, count_)),
        code_(host::make_host_code(plan_, layout_, image.resolve(where), needs_)),
        room_(plan_.layout.whole.size) {
    std::memcpy(plan_.frame.data(), &code_.landing, plan_.is_64_bit ? 8 : 4);
    std::ranges::copy(code_.bytes, at(layout_.code.address));
    std::ranges::copy(packed, at(layout_.values.address));
  }

  [[nodiscard]] const host::HostCode& code() const { return code_; }
  [[nodiscard]] const host::CallNeeds& needs() const { return needs_; }

  Gone go(std::uint64_t enter, std::uint64_t done) {
    std::ranges::fill(std::span(at(layout_.words.address), count_ * 4 * plan_.word_count), std::byte{0});
    host::put_caller_state(at(layout_.state.address), plan_, layout_, filler_of(LaneKind::batch), {});
    std::ranges::copy(plan_.frame, at(plan_.entry_sp));
    put(host::state_left, static_cast<std::uint32_t>(count_));
    put(host::state_fpcw, std::uint32_t{Environment().fpcw});
    put(host::state_mxcsr, Environment().mxcsr);
    for (std::size_t i = 0; i < 4; ++i) put(host::state_poison + 4 * i, poison_of(LaneKind::batch));
    NoEvents events;
    Emulator emulator(plan_.is_64_bit, events);
    map(emulator);
    Emulator::Registers registers;
    registers.general[4] = layout_.state.address + host::state_size;
    const Trap trap = emulator.start(enter, registers);
    Gone gone;
    constexpr unsigned breakpoint = 3;
    gone.is_done =
        trap.kind == Trap::Kind::interrupt && trap.vector == breakpoint && emulator.program_counter() == done;
    std::memcpy(&gone.odd, at(layout_.state.address) + host::state_odd, sizeof gone.odd);
    gone.words.resize(count_ * plan_.word_count);
    std::memcpy(gone.words.data(), at(layout_.words.address), 4 * gone.words.size());
    return gone;
  }

 private:
  static CallPlan plan_of(const Image& image, std::string_view text) {
    const Signature signature = parse_signature(text);
    const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
    const CallPlan sizes = plan_call(signature, is_64_bit, 0, image.imports().size(), {});
    return plan_call(signature, is_64_bit, find_base(image, sizes.layout.whole.size), image.imports().size(),
                     filler_of(LaneKind::batch));
  }

  [[nodiscard]] std::byte* at(std::uint64_t address) const {
    return room_.bytes().data() + (address - plan_.layout.whole.address);
  }

  void put(std::size_t offset, const auto& value) {
    std::memcpy(at(layout_.state.address) + offset, &value, sizeof value);
  }

  /// All of the room is one memory; the input is that which the caller writes.
  void map(Emulator& emulator) {
    const Region& input = plan_.layout.input;
    const auto part = [&](std::uint64_t first, std::uint64_t end, std::uint64_t from, bool is_code) {
      if (first < end) emulator.map(first, {at(from), static_cast<std::size_t>(end - first)}, !is_code, is_code);
    };
    REQUIRE(input.end() <= layout_.code.address);
    part(plan_.layout.whole.address, input.address, plan_.layout.whole.address, false);
    part(input.address, input.end(), layout_.input.address, false);
    part(input.end(), layout_.code.address, input.end(), false);
    part(layout_.code.address, layout_.code.end(), layout_.code.address, true);
    part(layout_.code.end(), plan_.layout.whole.end(), layout_.code.end(), false);
    for (const Segment& segment : image_.segments()) {
      copies_.push_back(std::make_unique<Pages>(segment.bytes.size()));
      std::ranges::copy(segment.bytes, copies_.back()->bytes().begin());
      emulator.map(segment.address, copies_.back()->bytes(), segment.writable, segment.executable);
    }
  }

  const Image& image_;
  CallPlan plan_;
  std::size_t count_;
  host::CallNeeds needs_;
  host::HostLayout layout_;
  host::HostCode code_;
  Pages room_;
  std::vector<std::unique_ptr<Pages>> copies_;
};

Words emulated(const Image& image, const std::string& where, std::string_view signature, const Bytes& packed) {
  Batch batch;
  make_unicorn_machine(image, {"tried", image.resolve(where), parse_signature(signature)})->run(batch, packed, {});
  REQUIRE(batch.incidents.empty());
  return batch.words;
}

}  // namespace

TEST_CASE("The caller gives every value's words, with and without haste") {
  struct Case {
    std::string file;
    std::string where;
    std::string_view signature;
  };
  const std::string stand_ins = BITWITNESS_STAND_INS_DIR;
  const std::string fixtures = BITWITNESS_FIXTURES_DIR;
  const std::vector<Case> cases = {
      {stand_ins + "/stand_in_x87.exe", "0x103f1d0", "cdecl(in u8[6], out f32[4])"},
      {stand_ins + "/stand_in_x87.exe", "0x103f340", "stdcall(in u8[6], in u8[6], out f32[4], out f32[4])"},
      {stand_ins + "/stand_in_sse2.exe", "0x103f1d0", "thiscall(in u8[6], out f32[4])"},
      {fixtures + "/conventions32.dll", "export:result_f32", "cdecl(in u32) -> f32"},
      {fixtures + "/conventions32.dll", "export:out_and_result_f32", "stdcall(in f32, out f32) -> f32"},
      {fixtures + "/conventions32.dll", "export:two_in_two_out", "cdecl(in u32, in u32, out u32, out u32)"},
      {fixtures + "/conventions64.dll", "export:in_out", "win64(in u32, out u32)"},
      {fixtures + "/conventions64.dll", "export:values_mixed",
       "win64(value f32, value u32, value f64, value u16, out u32[5])"},
      {fixtures + "/conventions64.dll", "export:out_and_result_f32", "win64(in f32, out f32) -> f32"},
  };
  for (const Case& one : cases) {
    INFO(one.file << " " << one.where);
    const Image image = Image::load(one.file);
    const std::size_t size = parse_signature(one.signature).packed_size();
    Bytes packed;
    for (std::size_t i = 0; i < 500 * size; ++i) packed.push_back(static_cast<std::byte>(i * 2654435761U >> 13));
    Caller caller(image, one.where, one.signature, packed);
    const Words words = emulated(image, one.where, one.signature, packed);
    const Gone slowly = caller.go(caller.code().enter, caller.code().done);
    CHECK(slowly.is_done);
    CHECK(slowly.words == words);
    REQUIRE(caller.code().hurried_enter != 0);
    const Gone hurried = caller.go(caller.code().hurried_enter, caller.code().hurried_done);
    CHECK(hurried.is_done);
    CHECK(hurried.odd == 0);
    CHECK(hurried.words == words);
  }
}

TEST_CASE("In haste it shows that a call has left the stack or the x87 stack otherwise") {
  const Bytes packed = bytes_of_u32({1, 2, 3});
  const Image image = load_fixture("conventions32.dll");
  for (const char* const name : {"returns_8_bytes", "empties_x87"}) {
    INFO(name);
    Caller caller(image, std::string("export:") + name, "cdecl(in u32, out u32)", packed);
    REQUIRE(caller.code().hurried_enter != 0);
    CHECK(caller.go(caller.code().hurried_enter, caller.code().hurried_done).odd != 0);
  }
}

TEST_CASE("What a routine's instructions make necessary is read off its code") {
  struct Case {
    FileBytes code;
    bool uses_x87 = false;
    bool sets_control = false;
    bool clear_x87_flags = false;
    bool clear_upper_halves = false;
    bool is_unruly = false;
  };
  const std::vector<Case> cases = {
      {.code = bytes_of({0xf3, 0x0f, 0x51, 0xc0, 0xc3})},                                      // sqrtss
      {.code = bytes_of({0xd9, 0xe8, 0xdd, 0xd8, 0xc3}), .uses_x87 = true},                    // fld1; fstp st(0)
      {.code = bytes_of({0xd8, 0xd1, 0xdf, 0xe0, 0xf6, 0xc4, 0x41, 0xc3}), .uses_x87 = true},  // fnstsw ax; test ah, 65
      {.code = bytes_of({0xdf, 0xe0, 0x24, 0x01, 0xc3}), .uses_x87 = true, .clear_x87_flags = true, .is_unruly = true},
      {.code = bytes_of({0xdf, 0xe0, 0xf6, 0xc4, 0x38, 0xc3}),
       .uses_x87 = true,
       .clear_x87_flags = true,
       .is_unruly = true},
      {.code = bytes_of({0xdd, 0xc3, 0xc3}), .uses_x87 = true, .is_unruly = true},            // ffree st(3)
      {.code = bytes_of({0xd9, 0xf7, 0xc3}), .uses_x87 = true, .is_unruly = true},            // fincstp
      {.code = bytes_of({0xd9, 0xf6, 0xc3}), .uses_x87 = true, .is_unruly = true},            // fdecstp
      {.code = bytes_of({0xdb, 0xe2, 0xc3}), .uses_x87 = true, .is_unruly = true},            // fnclex
      {.code = bytes_of({0xdd, 0xd3, 0xc3}), .uses_x87 = true, .is_unruly = true},            // fst st(3)
      {.code = bytes_of({0xdd, 0xd9, 0xc3}), .uses_x87 = true},                               // fstp st(1)
      {.code = bytes_of({0x0f, 0x77, 0xc3}), .is_unruly = true},                              // emms
      {.code = bytes_of({0x0f, 0x6f, 0xc1, 0xc3}), .uses_x87 = true, .is_unruly = true},      // movq mm0, mm1
      {.code = bytes_of({0x0f, 0xae, 0x18, 0xc3}), .is_unruly = true},                        // stmxcsr [eax]
      {.code = bytes_of({0x0f, 0xae, 0x10, 0xc3}), .sets_control = true, .is_unruly = true},  // ldmxcsr [eax]
      {.code = bytes_of({0xd9, 0x28, 0xc3}), .uses_x87 = true, .sets_control = true, .is_unruly = true},  // fldcw [eax]
      {.code = bytes_of({0xdb, 0xe3, 0xc3}), .uses_x87 = true, .sets_control = true, .is_unruly = true},  // fninit
      {.code = bytes_of({0xdd, 0x30, 0xc3}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .is_unruly = true},  // fnsave
      {.code = bytes_of({0xd9, 0x30, 0xc3}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .is_unruly = true},                                                             // fnstenv
      {.code = bytes_of({0xfd, 0xc3}), .sets_control = true, .is_unruly = true},       // std
      {.code = bytes_of({0x9d, 0xc3}), .sets_control = true, .is_unruly = true},       // popf
      {.code = bytes_of({0xc5, 0xfa, 0x58, 0xc0, 0xc3}), .clear_upper_halves = true},  // vaddss
      // push eax; ret and mov [esp], eax; ret: jumps
      {.code = bytes_of({0x50, 0xc3}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .is_unruly = true},
      {.code = bytes_of({0x89, 0x04, 0x24, 0xc3}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .is_unruly = true},
      // call eax; jmp eax; jmp [eax*4 + 0x1000]: whatever that does
      {.code = bytes_of({0xff, 0xd0, 0xc3}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .is_unruly = true},
      {.code = bytes_of({0xff, 0xe0}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .is_unruly = true},
      {.code = bytes_of({0xff, 0x24, 0x85, 0x00, 0x10, 0x00, 0x00}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .is_unruly = true},
      // What it calls counts, beside a jump that hides the rest: call +2; jmp eax; vaddss; ret
      {.code = bytes_of({0xe8, 0x02, 0x00, 0x00, 0x00, 0xff, 0xe0, 0xc5, 0xfa, 0x58, 0xc0, 0xc3}),
       .uses_x87 = true,
       .sets_control = true,
       .clear_x87_flags = true,
       .clear_upper_halves = true,
       .is_unruly = true},
  };
  for (const Case& one : cases) {
    PeBuilder builder;
    builder.sections = {{.name = ".text", .data = one.code}};
    const TemporaryFile file(builder.build().bytes);
    const Image image = Image::load(file.path());
    const host::CallNeeds needs = host::needs_of(image, image.base() + 0x1000);
    INFO("case " << &one - cases.data());
    CHECK(needs.uses_x87 == one.uses_x87);
    CHECK(needs.sets_control == one.sets_control);
    CHECK(needs.clear_x87_flags == one.clear_x87_flags);
    CHECK(needs.clear_upper_halves == one.clear_upper_halves);
    CHECK(needs.is_unruly == one.is_unruly);
  }
}

TEST_CASE("What may leave more behind than a glance tells is not called in haste") {
  const Bytes packed = bytes_of_u32({1, 2, 3});
  const Image image = load_fixture("conventions32.dll");
  for (const char* const name : {"leaves_fpcw", "leaves_mxcsr", "leaves_direction"}) {
    INFO(name);
    const Caller caller(image, std::string("export:") + name, "cdecl(in u32, out u32)", packed);
    CHECK(caller.needs().is_unruly);
    CHECK(caller.code().hurried_enter == 0);
  }
}
