#pragma once
#include "harness/json_place.hpp"
#include "harness/report.hpp"

#include <string>

#include <nlohmann/json_fwd.hpp>

// What reports say of routines that ran in several environments. For the writers and the reader of reports only.

namespace bitwitness::report_environments {

/// Writes a table of each such routine's environments, and how many values depend on them.
std::string to_text(const Report& report);

/// Writes the same as HTML.
std::string to_html(const Report& report);

/// Writes "environments".
nlohmann::ordered_json to_json(const Report& report);

/// Reads "environments" into a report whose runs are there. Throws Error with file and place for what to_json would not
/// have written.
void read(Report& report, const JsonPlace& list);

}  // namespace bitwitness::report_environments
