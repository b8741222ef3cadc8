#pragma once
#include "harness/host/host_memory.hpp"
#include "harness/host/traced_process.hpp"
#include "harness/image.hpp"
#include "tests/bench/bare_loop.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace bitwitness::bench {

/// What the host witness is measured against: a loop on this computer's processor that loads both control words, copies
/// a packed value in, calls the routine and copies its words out. Nothing is checked and nothing else is set.
class BareHostLoop {
 public:
  BareHostLoop(const Image& image, std::uint64_t routine, Form form, std::size_t values, bool resets_x87);

  [[nodiscard]] std::span<std::byte> packed() const;
  [[nodiscard]] std::span<const std::uint32_t> words() const;

  void run();

 private:
  CallPlan plan_;
  host::HostLayout layout_;
  host::HostCode code_;
  std::unique_ptr<host::HostMemory> memory_;
  host::TracedProcess process_;
};

}  // namespace bitwitness::bench
