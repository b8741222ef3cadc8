#pragma once
#include "harness/image.hpp"
#include "harness/probe/instruction_audit.hpp"
#include "harness/report.hpp"

#include <string>
#include <vector>

namespace bitwitness::cli {

/// A routine with what its audit found.
struct AuditedRoutine {
  std::string name;
  std::string note;  ///< what the target says of it
  Audit audit;
};

/// What an audit of several routines was about. Like a report it has no wall-clock time in it.
struct AuditReport {
  std::string tool_version;
  Engine engine;
  std::string image_name;
  std::string image_sha256;
  ImageFormat image_format = ImageFormat::pe32;
  bool stand_in = false;
  std::vector<std::string> notes;
  std::vector<AuditedRoutine> routines;
};

/// Writes the text a person reads: for each routine its rows, worst first, and what was not followed.
std::string to_text(const AuditReport& report);

/// Writes JSON "bitwitness-audit/1" with a final newline.
///
///   { "schema": "bitwitness-audit/1", "tool": {"version"}, "engine": {..}, "image": {..}, "notes": [..],
///     "routines": [{"name", "address", "note"?, "instructions": N, "cut": bool,
///       "trusted": bool,                              whether all is exact or finite and was followed
///       "counts": {"exact": N, "finite": N, "approximate": N, "wrong": N, "refused": N, "unknown": N},   instructions
///       "rows": [{"mnemonic", "class", "reason", "count": N, "first", "addresses": ["0x…"]}],
///       "not_followed": [{"address", "instruction": null | text, "reason"}]}] }
std::string to_json(const AuditReport& report);

}  // namespace bitwitness::cli
