#pragma once
#include "harness/report.hpp"

namespace bitwitness::cli {

/// What the program's exit status says.
enum ExitCode : int {
  exit_agreed = 0,           ///< every value agreed, or the command did what it was asked
  exit_differed = 1,         ///< a difference, a value without a result, or an interruption
  exit_refused = 2,          ///< bad input or usage; one line on standard error names it
  exit_nothing_checked = 3,  ///< no value was compared
};

/// Returns the exit status of a report's verdict.
inline ExitCode exit_code_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::agree:
      return exit_agreed;
    case Verdict::vacuous:
      return exit_nothing_checked;
    case Verdict::differ:
    case Verdict::incomplete:
      break;
  }
  return exit_differed;
}

}  // namespace bitwitness::cli
