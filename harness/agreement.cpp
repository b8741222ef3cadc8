#include "harness/agreement.hpp"

#include "harness/error.hpp"
#include "harness/replaying.hpp"

#include <algorithm>
#include <thread>

namespace bitwitness {

Agreement check_agreement(const std::string& path, const DecodeOne& decode) {
  try {
    const VectorFile file = VectorFile::open(path);
    const VectorHeader& header = file.header();
    Subject subject;
    subject.name = "the decoder under test";
    subject.packed_size = header.packed_size;
    subject.word_names = header.word_names;
    subject.fields = header.fields;
    subject.word_kind = header.word_kind;
    subject.decode = decode;
    ReplayOptions options;
    options.jobs = std::max(1U, std::thread::hardware_concurrency());
    Report report;
    report.tool_version = BITWITNESS_VERSION;
    report.is_repeatable = false;
    report.image_name = header.image_name;
    report.image_path = path;
    report.image_sha256 = header.image_sha256;
    report.image_format = header.image_format;
    report.engine = header.engine;
    report.stand_in = header.stand_in;
    report.runs.push_back(replay(file, subject, options).report);
    return {report.verdict() == Verdict::agree, to_text(report)};
  } catch (const Error& error) {
    return {false, error.what()};
  }
}

}  // namespace bitwitness
