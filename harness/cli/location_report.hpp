#pragma once
#include "harness/image.hpp"
#include "harness/probe/location.hpp"
#include "harness/target.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace bitwitness::cli {

/// A call that a target names, and where it may be in the image that was searched.
struct LocatedCall {
  Anchor anchor;
  std::size_t routine = 0;      ///< index of its callee
  std::vector<CallSite> sites;  ///< best first
  bool is_clear = false;        ///< the first is the only one, or alone as far from its callee as in the target
};

/// Everything that reports of a search say.
struct LocationReport {
  const Image& image;
  const Target& target;  ///< with the routines that were asked for
  std::vector<KnownConstant> constants;
  const Location& location;
  std::vector<LocatedCall> calls;
  std::size_t limit = 5;  ///< candidates and calls listed for one routine
};

/// Finds the calls that the target names among those of the routines located.
std::vector<LocatedCall> locate_calls(const Image& image, const Target& target, const Location& location);

/// Prints candidates with their reasons, one routine after the other.
std::string location_text(const LocationReport& report);

/// Prints the same as JSON, schema "bitwitness-location/1".
std::string location_json(const LocationReport& report);

/// Writes a target of what is clear: routines with their signatures, and those anchors that hold in the image.
/// `with_rva` writes locations that do not depend on the base. The text has been read back with parse_target; it is
/// empty when nothing is clear.
std::string located_target(const LocationReport& report, bool with_rva);

}  // namespace bitwitness::cli
