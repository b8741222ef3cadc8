#pragma once
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/probe/recognition.hpp"

#include <string>
#include <vector>

namespace bitwitness::cli {

/// What was found about one routine in one environment.
struct RecognitionRun {
  Routine routine;
  Environment environment;
  const RuleSet* rules = nullptr;  ///< null when no known rule has the routine's sizes: then nothing was run
  Recognition found;
  std::vector<std::string> notes;
};

/// Everything that one call of the command found.
struct RecognitionReport {
  const Image* image = nullptr;
  std::vector<std::string> notes;  ///< about the image and the target
  std::vector<RecognitionRun> runs;
};

/// Writes the text a person reads.
std::string to_text(const RecognitionReport& report);

/// Writes JSON "bitwitness-recognition/1" with a final newline.
std::string to_json(const RecognitionReport& report);

}  // namespace bitwitness::cli
