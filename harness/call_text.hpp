#pragma once
#include "harness/call_end.hpp"
#include "harness/call_plan.hpp"
#include "harness/image.hpp"
#include "harness/machine.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace bitwitness {

/// The surroundings of a call, which messages refer to.
struct CallContext {
  const CallPlan& plan;
  const Filler& filler;
  std::optional<Region> thread_block = {};  ///< what fs or gs leads to, if anything
  std::string over_budget = {};     ///< the reason when a call does not end: "has executed 12 instructions and …"
  std::string_view processor = {};  ///< "the emulated CPU"
};

/// Puts into words what a lane saw, with the names that image and signature give to addresses.
class CallText {
 public:
  CallText(const Image& image, const Routine& routine) : image_(image), routine_(routine) {}

  /// Decides how a call ended. Of a call that returned, the incident is meaningless. `outside` are the bytes of the
  /// instruction when it lies outside the image.
  [[nodiscard]] Incident incident(const CallContext& lane, const CallEnd& end,
                                  std::span<const std::byte> outside) const;

  /// "writes to 0x403000 in .data", as in "on 12 values it …".
  [[nodiscard]] std::string trait(const CallContext& lane, const Trait& trait) const;

 private:
  /// "at 0x401000, in .text": an address and what lies there, or what led there when that was filler.
  [[nodiscard]] std::string where(const CallContext& lane, std::uint64_t address) const;
  [[nodiscard]] std::string place(const CallContext& lane, std::uint64_t address) const;
  [[nodiscard]] std::string filler(const CallContext& lane, std::uint64_t address) const;
  [[nodiscard]] std::string trap(const CallContext& lane, const CallEnd& end) const;
  [[nodiscard]] std::string import(const CallContext& lane, std::uint64_t address) const;
  [[nodiscard]] std::string stack_out_of_order(const CallContext& lane, const CallEnd& end) const;

  const Image& image_;
  const Routine& routine_;
};

}  // namespace bitwitness
