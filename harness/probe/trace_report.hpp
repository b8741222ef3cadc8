#pragma once
#include "harness/probe/trace.hpp"
#include "harness/report.hpp"
#include "harness/subject.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// What a native decoder makes of the traced value.
struct TraceSubject {
  std::string decoder;
  std::vector<std::string> word_names;
  WordKind word_kind = WordKind::f32;
  std::vector<std::uint32_t> words;
};

enum class TraceVerdict : std::uint8_t {
  executed,    ///< it returned; no decoder was asked
  agree,       ///< it returned, and the decoder gives the same bits
  differ,      ///< it returned, and the decoder gives other bits
  failed,      ///< it did not return, or not all of its output was written
  unreliable,  ///< the traced call did otherwise than the machine that verifies
};

std::string_view to_string(TraceVerdict verdict);

/// A trace with what it was made from. Like a report it has no wall-clock time in it: equal runs give equal bytes.
struct TraceReport {
  std::string tool_version;
  Engine engine;
  std::string image_name;
  std::string image_sha256;
  ImageFormat image_format = ImageFormat::pe32;
  bool stand_in = false;
  Trace trace;
  std::optional<TraceSubject> subject;
  std::vector<std::string> notes;

  [[nodiscard]] TraceVerdict verdict() const;
};

/// Writes the text a person reads: one line for each instruction with what it changed, then both sides' words. A
/// register that an instruction only reads is shown unless it is part of an address, which the access shows.
std::string to_text(const TraceReport& report);

/// Writes JSON "bitwitness-trace/1" in pieces, one line for each step, with a final newline.
///
///   { "schema": "bitwitness-trace/1", "tool": {"version"}, "engine": {"unicorn", "capstone", "lief", "cpu"},
///     "image": {"name", "sha256", "format": "pe32"|"pe32+", "stand_in": bool},
///     "routine": {"name", "address", "signature"}, "environment": {"fpcw", "mxcsr"}, "value": "34 12 …",
///     "outcome": "returned"|"faulted"|"out_of_budget"|"unwritten",
///     "failure": null | {"address", "instruction", "reason"},
///     "machine": {"same": bool, "difference"},    whether the machine that verifies ended in the same way, and how not
///     "words": [{"reference", "reference_number", "name"?, "subject"?, "subject_number"?, "ulp"?}],   none unless
///     returned "decoder": null | name, "notes": [..], "verdict": "executed"|"agree"|"differ"|"failed"|"unreliable",
///     "instructions": N, "limit": N, "omitted": N,    executed; steps asked for; executed and not listed
///     "steps": [..] }
///
/// A step, whose keys from "general" on are left out when there is nothing to say:
///
///   { "address", "instruction", "completed": bool, "next": null | address,
///     "general": [{"register", "before", "after"}],                       named or changed; "0x1234"
///     "x87": [{"before", "after"}],    null when empty, else {"register": "st0", "bits": 20 hex digits, "number"}
///     "depth": [before, after],        values on the x87 stack; when there is an "x87"
///     "xmm": [{"register", "before": {"bits": [4], "f32": [4], "f64": [2]}, "after": {..}}],
///     "memory": [{"access": "read"|"write", "address", "where", "size", "before", "after"}],
///           null when unknown or, of a read, not changed; else {"bytes": "34 12", "integer": "0x1234", "numbers":
///           [..]}; "integer" of up to 16 bytes, "numbers" when the instruction takes them for floats or converts
///           integers
///     "flags": {"zf": bool, ..},       those that changed: cf pf af zf sf df of, and c0 c1 c2 c3 of the x87 unit
///     "taken": bool,                   of a conditional jump
///     "fpcw": [before, after], "mxcsr": [before, after] }
///
/// Numbers that JSON has no room for (bits, addresses, floats) are strings.
void write_json(const TraceReport& report, const std::function<void(std::string_view)>& sink);

}  // namespace bitwitness
