#pragma once
#include "harness/cli/options.hpp"
#include "harness/report.hpp"
#include "harness/report_html.hpp"

#include <string>

namespace bitwitness::cli {

/// Writes a report to the places that the options name, and as text to standard output unless one of them is that. What
/// fails does not cost the other places; throws Error then, in the end. `timings` is the text for --timings, `extras`
/// is what --html shows besides.
void write_report(const OutputArguments& output, const Report& report, const std::string& timings,
                  const HtmlExtras& extras);

}  // namespace bitwitness::cli
