#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/unicorn_lane.hpp"

#include <string>

namespace bitwitness {

/// Puts into words what a lane saw, with the names that image and signature give to addresses.
class CallText {
 public:
  CallText(const Image& image, const Routine& routine) : image_(image), routine_(routine) {}

  /// Decides how a call ended. Of a call that returned, the incident is meaningless.
  [[nodiscard]] Incident incident(Lane& lane, const CallEnd& end) const;

  /// "writes to 0x403000 in .data", as in "on 12 values it …".
  [[nodiscard]] std::string trait(const Lane& lane, const Trait& trait) const;

 private:
  /// "at 0x401000, in .text": an address and what lies there, or what led there when that was filler.
  [[nodiscard]] std::string where(const Lane& lane, std::uint64_t address) const;
  [[nodiscard]] std::string place(const Lane& lane, std::uint64_t address) const;
  [[nodiscard]] std::string filler(const Lane& lane, std::uint64_t address) const;
  [[nodiscard]] std::string trap(const Lane& lane, const CallEnd& end) const;
  [[nodiscard]] std::string import(const Lane& lane, std::uint64_t address) const;
  [[nodiscard]] std::string stack_out_of_order(const Lane& lane, const CallEnd& end) const;

  const Image& image_;
  const Routine& routine_;
};

}  // namespace bitwitness
