#pragma once
#include "harness/report.hpp"

#include <string>
#include <string_view>

namespace bitwitness {

/// Reads a JSON report "bitwitness-report/1", such that to_json gives its bytes again when to_json wrote them. Strict:
/// what is missing, unknown, repeated, of another type or form, or contradicts the rest (counts that do not add up,
/// words of another number, a verdict that the counts do not give) throws Error: one line with the file and the path in
/// it. What JSON leaves out (fields of the values, the image's path) is empty.
Report read_report(const std::string& path);

/// Reads a report from its text; `name` names it in messages.
Report parse_report(std::string_view text, const std::string& name);

}  // namespace bitwitness
