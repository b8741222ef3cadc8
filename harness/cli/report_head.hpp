#pragma once
#include "harness/image.hpp"
#include "harness/report.hpp"

#include <utility>

namespace bitwitness::cli {

/// Says in a command's report what it is made with and which image it is about, whose notes come first.
template <typename AnyReport>
void set_head(AnyReport& report, const Image& image, Engine engine) {
  report.tool_version = BITWITNESS_VERSION;
  report.engine = std::move(engine);
  report.image_name = image.name();
  report.image_sha256 = image.sha256();
  report.image_format = image.format();
  report.stand_in = image.is_stand_in();
  report.notes.assign(image.notes().begin(), image.notes().end());
}

}  // namespace bitwitness::cli
