#pragma once
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace bitwitness::bench {

/// How a stand-in's six-byte form takes its arguments.
enum class Form { cdecl_in_out, thiscall_in_out, win64_in_out };

/// What the harness is measured against: Unicorn with the image, a loop in the guest that calls the routine on each
/// packed value, and nothing else. No state is reset between calls, nothing is checked, nothing is compared.
class BareLoop {
 public:
  BareLoop(const Image& image, std::uint64_t routine, Form form, std::size_t values);
  ~BareLoop();
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;

  /// Buffers in guest memory: 6 bytes a value in, 4 words a value out.
  [[nodiscard]] std::span<std::byte> packed();
  [[nodiscard]] std::span<const std::uint32_t> words() const;

  /// Runs every value within one uc_emu_start.
  void run();

  /// Runs every value with a uc_emu_start of its own and arguments written from outside.
  void run_call_by_call();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bitwitness::bench
