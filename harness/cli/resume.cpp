#include "harness/cli/resume.hpp"

#include "harness/cli/engine.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/surroundings.hpp"
#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/report_parts.hpp"
#include "harness/sha256.hpp"
#include "harness/signature.hpp"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::cli {

namespace {

using Clock = std::chrono::steady_clock;

/// The first pause between two writes; each is twice the one before it, up to the longest.
constexpr auto first_pause = std::chrono::seconds(1);
constexpr auto longest_pause = std::chrono::seconds(30);
/// Writing takes at most this part of the time.
constexpr int least_share = 20;

template <typename Work>
auto named(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw Error(fmt::format("--resume {}", error.what()));
  }
}

std::string file_sha256(const std::string& path) {
  const FileBytes file = FileBytes::open(path);
  return sha256_hex(file.bytes());
}

/// The version alone would not tell two builds apart. Read in pieces: a mapped program would count as held memory.
std::string program_sha256() {
  constexpr std::size_t piece = std::size_t{1} << 16;
  std::ifstream program("/proc/self/exe", std::ios::binary);
  if (!program) return "unknown";
  Sha256 hash;
  std::vector<char> bytes(piece);
  while (program.read(bytes.data(), piece) || program.gcount() > 0) {
    hash.update(std::as_bytes(std::span(bytes).first(static_cast<std::size_t>(program.gcount()))));
  }
  return hash.hex();
}

/// Everything that a routine finds in memory.
std::string memory_sha256(const Image& image) {
  Sha256 hash;
  const auto add = [&hash](std::uint64_t number) { hash.update(std::as_bytes(std::span(&number, 1))); };
  for (const Segment& segment : image.segments()) {
    add(segment.address);
    add(segment.bytes.size());
    add((segment.writable ? 1U : 0U) + (segment.executable ? 2U : 0U));
    hash.update(segment.bytes);
  }
  for (const Import& import : image.imports()) add(import.slot);
  return hash.hex();
}

/// Of --memory LOCATION=FILE the file's name without its folders; what is in it the memory's SHA-256 tells.
std::string portable_patch(const std::string& text) {
  const std::size_t content = text.find('=') + 1;
  return text.substr(0, content) + file_name_of(std::string_view(text).substr(content));
}

std::string values_sha256(const ValueSet& values) {
  if (std::ranges::find(values.sources(), "all") != values.sources().end()) return "every value";
  Sha256 hash;
  std::vector<std::byte> packed;
  for (std::uint64_t first = 0; first < values.size(); first += values_per_chunk) {
    const std::uint64_t count = std::min<std::uint64_t>(values_per_chunk, values.size() - first);
    packed.resize(static_cast<std::size_t>(count) * values.packed_size());
    values.read(first, packed);
    hash.update(packed);
  }
  return hash.hex();
}

}  // namespace

RunFingerprint fingerprint_of(const Image& image, const ImageArguments& arguments, const RunSettings& settings,
                              std::span<const Environment> environments, std::span<const ResumedRoutine> routines) {
  RunFingerprint out;
  const auto add = [&out](std::string name, std::string text) { out.emplace_back(std::move(name), std::move(text)); };
  const Engine engine = this_engine();
  add("the version of bitwitness", BITWITNESS_VERSION);
  add("the version of unicorn", engine.unicorn);
  add("the version of capstone", engine.capstone);
  add("the version of lief", engine.lief);
  if (settings.witness != "unicorn") add("the processor", engine.cpu);
  add("the image's SHA-256", image.sha256());
  add("the image's base", report_parts::address_text(image.base()));
  std::vector<std::string> libraries;
  for (const std::string& path : arguments.dlls) {
    libraries.push_back(fmt::format("{} {}", file_name_of(path), file_sha256(path)));
  }
  add("--with-dll", fmt::format("{}", fmt::join(libraries, ", ")));
  std::vector<std::string> patches;
  for (const std::string& text : arguments.memory) patches.push_back(portable_patch(text));
  add("--memory", fmt::format("{}", fmt::join(patches, ", ")));
  add("--no-runtime", arguments.no_runtime ? "given" : "not given");
  add("the SHA-256 of the memory", memory_sha256(image));
  add("the witness", settings.witness);
  std::vector<std::string> texts;
  for (const Environment& environment : environments) texts.push_back(report_parts::environment_text(environment));
  add("the environments", fmt::format("{}", fmt::join(texts, ", ")));
  add("--limit", std::to_string(settings.limit));
  add("--budget", std::to_string(settings.budget));
  add("the sample", std::to_string(RunOptions().sample));
  add("the number of routines", std::to_string(routines.size()));
  for (std::size_t i = 0; i < routines.size(); ++i) {
    const auto& [routine, subject, values] = routines[i];
    const auto add_own = [&](std::string_view name, std::string text) {
      add(fmt::format("routine {}: {}", i + 1, name), std::move(text));
    };
    add_own("its name", routine.name);
    add_own("its address", report_parts::address_text(routine.address));
    add_own("its signature", to_string(routine.signature));
    add_own("the decoder", subject.name);
    // A command's words may be nobody else's business.
    add_own("the SHA-256 of --decoder", subject.option.starts_with("exec:")
                                            ? sha256_hex(std::as_bytes(std::span(subject.option)))
                                            : std::string("of no command"));
    add_own("the decoder's files", fmt::format("{}", fmt::join(subject.notes, "; ")));
    std::vector<std::string> sources;
    for (const std::string& source : values.sources()) sources.push_back(report_parts::portable_source(source));
    add_own("the sources", fmt::format("{}", fmt::join(sources, " ")));
    add_own("the shard", fmt::format("{}/{}", values.shard().index, values.shard().count));
    add_own("the number of values", fmt::format("{} of {}", values.size(), values.whole_size()));
    add_own("the SHA-256 of the values", values_sha256(values));
  }
  add("the program's SHA-256", program_sha256());
  return out;
}

Resumption::Resumption(const std::string& path)
    : file_(named([&path] { return std::make_unique<ResumeFile>(path); })), pause_(first_pause) {}

void Resumption::begin(const RunFingerprint& fingerprint, std::span<const ResumedRoutine> routines,
                       std::size_t environments, std::size_t limit) {
  const bool has_something = named([&] { return file_->load(fingerprint, routines.size()); });
  for (std::size_t i = 0; i < routines.size(); ++i) {
    const ValueSet& values = routines[i].values;
    RunState state = named([&] {
      return file_->state(i, {environments, limit, routines[i].routine.signature.word_count(), values});
    });
    Run& run = runs_.emplace_back();
    run.values = values.size();
    run.done = run.done_before = state.found.each.front().tally.counts.run;
    run.is_complete = state.is_complete;
    run.keeping.from = std::move(state);
    run.keeping.is_due = [this] { return Clock::now() >= due_; };
    run.keeping.keep = [this, i](const RunState& found) { keep(i, found); };
  }
  due_ = Clock::now() + pause_;
  if (!has_something) return;
  complain(is_complete() ? fmt::format("--resume {}: all {} values were done before, none is run again", file_->path(),
                                       done_text(&Run::done_before))
                         : fmt::format("--resume {}: goes on with {} values that were done before", file_->path(),
                                       done_text(&Run::done_before)));
}

void Resumption::keep(std::size_t run, const RunState& state) {
  const auto start = Clock::now();
  try {
    file_->keep(run, state);
    failure_ = nullptr;
    runs_[run].done = state.found.each.front().tally.counts.run;
    runs_[run].is_complete = state.is_complete;
  } catch (const Error& error) {
    // The run may have taken hours; the next attempt may do better.
    if (!failure_) complain(fmt::format("--resume {} (the run goes on)", error.what()));
    failure_ = std::make_exception_ptr(Error(fmt::format("--resume {}", error.what())));
  }
  const auto now = Clock::now();
  pause_ = std::min<Clock::duration>(2 * pause_, longest_pause);
  due_ = now + std::max(pause_, least_share * (now - start));
}

void Resumption::end() const {
  if (failure_) std::rethrow_exception(failure_);
  if (is_complete()) return;
  complain(fmt::format("--resume {}: {} values are done and kept; the same command goes on with them", file_->path(),
                       done_text(&Run::done)));
}

std::string Resumption::done_text(std::uint64_t Run::*done) const {
  std::uint64_t sum = 0;
  std::uint64_t all = 0;
  for (const Run& run : runs_) {
    sum += run.*done;
    all += run.values;
  }
  return sum == all ? std::to_string(all) : fmt::format("{} of {}", sum, all);
}

bool Resumption::is_complete() const {
  return std::ranges::all_of(runs_, [](const Run& run) { return run.is_complete; });
}

}  // namespace bitwitness::cli
