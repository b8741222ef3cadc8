#pragma once
#include "harness/cli/selection.hpp"
#include "harness/image.hpp"
#include "harness/report.hpp"
#include "harness/report_html.hpp"

#include <cstdint>
#include <stop_token>

namespace bitwitness::cli {

/// Disassembles the routines of a report and traces its first difference, as far as a page has room. What cannot be
/// done, or was stopped, is told in the page; throws nothing for it.
HtmlExtras html_extras(const Image& image, const Selection& selection, const Report& report, std::uint64_t budget,
                       const std::stop_token& stop);

}  // namespace bitwitness::cli
