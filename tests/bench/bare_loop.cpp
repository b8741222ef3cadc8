#include "tests/bench/bare_loop.hpp"

#include <array>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <sys/mman.h>
#include <unicorn/unicorn.h>

namespace bitwitness::bench {
namespace {

constexpr std::uint64_t code_address = 0x2000'0000;
constexpr std::uint64_t stack_address = 0x2100'0000;
constexpr std::uint64_t stack_size = 0x10000;
constexpr std::uint64_t packed_address = 0x3000'0000;
constexpr std::uint64_t words_address = 0x4000'0000;
constexpr std::uint64_t page = 4096;

void require(uc_err error) {
  if (error != UC_ERR_OK) throw std::runtime_error(uc_strerror(error));
}

std::uint64_t pages(std::uint64_t bytes) {
  return (bytes + page - 1) / page * page;
}

}  // namespace

struct BareLoop::Impl {
  uc_engine* uc = nullptr;
  std::uint64_t routine = 0;
  Form form = Form::cdecl_in_out;
  std::size_t values = 0;
  std::vector<std::span<std::byte>> mappings;
  std::span<std::byte> packed;
  std::span<std::byte> words;
  std::span<std::byte> stack;

  ~Impl() {
    if (uc != nullptr) uc_close(uc);
    for (const auto& mapping : mappings) munmap(mapping.data(), mapping.size());
  }

  std::span<std::byte> map(std::uint64_t address, std::uint64_t size, std::uint32_t permissions) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap");
    mappings.emplace_back(static_cast<std::byte*>(memory), size);
    require(uc_mem_map_ptr(uc, address, size, permissions, memory));
    return mappings.back();
  }

  void set(int reg, std::uint32_t value) const { uc_reg_write(uc, reg, &value); }

  void write_loop() {
    std::vector<unsigned char> code;
    const auto emit = [&code](std::initializer_list<unsigned> bytes) {
      for (const unsigned byte : bytes) code.push_back(static_cast<unsigned char>(byte));
    };
    if (form == Form::thiscall_in_out) {
      emit({0x89, 0xf1, 0x57});  // mov ecx, esi; push edi
    } else {
      emit({0x57, 0x56});  // push edi; push esi
    }
    emit({0xe8, 0, 0, 0, 0});  // call routine
    const auto distance = static_cast<std::uint32_t>(routine - (code_address + code.size()));
    std::memcpy(code.data() + code.size() - 4, &distance, 4);
    if (form == Form::cdecl_in_out) emit({0x83, 0xc4, 8});  // add esp, 8
    emit({0x83, 0xc6, 6, 0x83, 0xc7, 16, 0x4b});            // add esi, 6; add edi, 16; dec ebx
    emit({0x75, static_cast<unsigned>(-static_cast<int>(code.size() + 2)) & 0xff, 0xf4});  // jnz; hlt
    const auto memory = map(code_address, page, UC_PROT_READ | UC_PROT_EXEC);
    std::memcpy(memory.data(), code.data(), code.size());
  }
};

BareLoop::BareLoop(const Image& image, std::uint64_t routine, Form form, std::size_t values)
    : impl_(std::make_unique<Impl>()) {
  impl_->routine = routine;
  impl_->form = form;
  impl_->values = values;
  require(uc_open(UC_ARCH_X86, UC_MODE_32, &impl_->uc));
  for (const Segment& segment : image.segments()) {
    const auto memory = impl_->map(segment.address, segment.bytes.size(),
                                   UC_PROT_READ | (segment.executable ? UC_PROT_EXEC : UC_PROT_NONE));
    std::memcpy(memory.data(), segment.bytes.data(), segment.bytes.size());
  }
  impl_->write_loop();
  impl_->stack = impl_->map(stack_address, stack_size, UC_PROT_READ | UC_PROT_WRITE);
  impl_->packed = impl_->map(packed_address, pages(values * 6 + 8), UC_PROT_READ);
  impl_->words = impl_->map(words_address, pages(values * 16), UC_PROT_READ | UC_PROT_WRITE);
  const std::uint16_t fpcw = 0x027f;
  const std::uint32_t mxcsr = 0x1f80;
  uc_reg_write(impl_->uc, UC_X86_REG_FPCW, &fpcw);
  uc_reg_write(impl_->uc, UC_X86_REG_MXCSR, &mxcsr);
}

BareLoop::~BareLoop() = default;

std::span<std::byte> BareLoop::packed() {
  return impl_->packed.first(impl_->values * 6);
}

std::span<const std::uint32_t> BareLoop::words() const {
  return {reinterpret_cast<const std::uint32_t*>(impl_->words.data()), impl_->values * 4};
}

void BareLoop::run() {
  impl_->set(UC_X86_REG_ESI, static_cast<std::uint32_t>(packed_address));
  impl_->set(UC_X86_REG_EDI, static_cast<std::uint32_t>(words_address));
  impl_->set(UC_X86_REG_EBX, static_cast<std::uint32_t>(impl_->values));
  impl_->set(UC_X86_REG_ESP, static_cast<std::uint32_t>(stack_address + stack_size - 256));
  require(uc_emu_start(impl_->uc, code_address, 0, 0, 0));
}

void BareLoop::run_call_by_call() {
  const auto sp = static_cast<std::uint32_t>(stack_address + stack_size - 256);
  const std::uint64_t landing = code_address + page - 1;
  for (std::size_t i = 0; i < impl_->values; ++i) {
    const auto in = static_cast<std::uint32_t>(packed_address + 6 * i);
    const auto out = static_cast<std::uint32_t>(words_address + 16 * i);
    std::array<std::uint32_t, 3> frame = {static_cast<std::uint32_t>(landing), in, out};
    if (impl_->form == Form::thiscall_in_out) {
      frame[1] = out;
      impl_->set(UC_X86_REG_ECX, in);
    }
    std::memcpy(impl_->stack.data() + stack_size - 256, frame.data(), sizeof frame);
    impl_->set(UC_X86_REG_ESP, sp);
    require(uc_emu_start(impl_->uc, impl_->routine, landing, 0, 0));
  }
}

}  // namespace bitwitness::bench
