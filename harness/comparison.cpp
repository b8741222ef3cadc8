#include "harness/comparison.hpp"

#include "harness/comparison_values.hpp"
#include "harness/file_bytes.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness {

namespace {

using comparison_parts::add_change;
using comparison_parts::Listed;
using comparison_parts::tell_values;

std::string name_of(const RunReport& run) {
  const std::string file = file_name_of(run.vector_file);
  return fmt::format("{} against {}, witness {}, {}{}{}", run.routine, run.decoder, run.witness,
                     report_parts::environment_text(run.environment), file.empty() ? "" : ", ", file);
}

RunSide side_of(const RunReport& run) {
  return {.present = true,
          .counts = run.counts,
          .differing = run.differing,
          .max_ulp = run.max_ulp,
          .unstable = run.isolation.unstable,
          .listed = run.differences.size(),
          .untold = run.counts.differed,
          .verdict = run.verdict()};
}

RunComparison begin_comparison(const RunReport& run) {
  RunComparison out;
  out.routine = run.routine;
  out.address = run.address;
  out.decoder = run.decoder;
  out.witness = run.witness;
  out.environment = run.environment;
  out.vector_file = file_name_of(run.vector_file);
  out.word_names = run.word_names;
  out.word_kind = run.word_kind;
  return out;
}

std::string rise(std::string_view what, std::uint64_t before, std::uint64_t after) {
  return fmt::format("{}: {} before, {} now", what, report_parts::distance_text(before),
                     report_parts::distance_text(after));
}

void judge(RunComparison& out) {
  const RunSide& before = out.before;
  const RunSide& after = out.after;
  if (!after.present) {
    out.worse.push_back("the run is gone");
    return;
  }
  if (!before.present) {
    if (after.verdict != Verdict::agree)
      out.worse.push_back(fmt::format("a new run, and it is not one that agrees: {}", to_string(after.verdict)));
    return;
  }
  if (after.counts.not_run > before.counts.not_run) {
    out.worse.push_back(rise("values not run", before.counts.not_run, after.counts.not_run));
  }
  if (after.counts.differed > before.counts.differed) {
    out.worse.push_back(rise("values that differ", before.counts.differed, after.counts.differed));
  }
  if (after.counts.without_result() > before.counts.without_result()) {
    out.worse.push_back(rise("values without a result", before.counts.without_result(), after.counts.without_result()));
  }
  for (std::size_t i = 0; i < after.differing.size(); ++i) {
    if (after.differing[i] > before.differing[i]) {
      out.worse.push_back(
          rise("values that differ in word " + out.word_names[i], before.differing[i], after.differing[i]));
    }
  }
  if (after.counts.known > before.counts.known) {
    out.worse.push_back(rise("values declared to differ", before.counts.known, after.counts.known));
  }
  if (after.max_ulp > before.max_ulp) out.worse.push_back(rise("largest distance", before.max_ulp, after.max_ulp));
  if (after.unstable > before.unstable) {
    out.worse.push_back(rise("values that give other words alone", before.unstable, after.unstable));
  }
  if (out.count(Change::appeared) > 0) {
    out.worse.push_back(fmt::format("values that agreed and differ now: {}", out.count(Change::appeared)));
  }
  if (out.count(Change::worse) > 0) {
    out.worse.push_back(fmt::format("values that differ in more words or farther: {}", out.count(Change::worse)));
  }
  if (before.verdict == Verdict::agree && after.verdict == Verdict::differ && out.worse.empty()) {
    out.worse.push_back("agreed before, does not now");
  }
}

struct Image {
  std::string_view sha256;
  bool stand_in;
};

Image image_of(const Report& report, const RunReport& run) {
  if (run.image) return {run.image->sha256, run.image->stand_in};
  return {report.image_sha256, report.stand_in};
}

std::string_view kind_of(const Image& image) {
  return image.stand_in ? "a stand-in" : "no stand-in";
}

/// Says why two runs with one name cannot be compared; empty when they can.
std::string incomparable(const Report& before_report, const RunReport& before, const Report& after_report,
                         const RunReport& after) {
  const auto other = [&](std::string_view what, const auto& old_one, const auto& new_one) {
    return fmt::format("{}: {}: {} in the old report, {} in the new one", name_of(before), what, old_one, new_one);
  };
  const Image old_image = image_of(before_report, before);
  const Image new_image = image_of(after_report, after);
  if (old_image.stand_in != new_image.stand_in)
    return other("another executable", kind_of(old_image), kind_of(new_image));
  if (old_image.sha256 != new_image.sha256) {
    return other("another executable, SHA-256", old_image.sha256, new_image.sha256);
  }
  if (before.signature != after.signature) return other("another signature", before.signature, after.signature);
  if (before.routine_sha256 != after.routine_sha256) {
    return other("other code of the routine, SHA-256", before.routine_sha256, after.routine_sha256);
  }
  if (before.word_names != after.word_names || before.word_kind != after.word_kind) {
    return fmt::format("{}: other output words", name_of(before));
  }
  if (before.sources != after.sources) return fmt::format("{}: values from other sources", name_of(before));
  if (before.shard != after.shard) {
    const auto text = [](const std::string& shard) { return shard.empty() ? "whole" : shard; };
    return other("another shard", text(before.shard), text(after.shard));
  }
  if (before.distinct != after.distinct) return other("another number of values", before.distinct, after.distinct);
  if (before.counts.not_run > 0) {
    return fmt::format("{}: the old report was interrupted, {} values were not run", name_of(before),
                       before.counts.not_run);
  }
  if (before.by_group != after.by_group) {
    const auto text = [](bool by_group) { return by_group ? "groups of a file of digests" : "single values"; };
    return other("differences are counted by other things", text(before.by_group), text(after.by_group));
  }
  const Listed old_list(before);
  for (const Difference& difference : after.differences) {
    const Difference* known = old_list.find(difference.value);
    if (known != nullptr && known->reference != difference.reference) {
      return fmt::format("{}: the witness gave other words for {}", name_of(before), to_hex(difference.value));
    }
  }
  if (before.digest.empty() && after.digest.empty() && before.counts.not_run == 0 && after.counts.not_run == 0) {
    return fmt::format("{}: both checked only some of a file's values, and not which is in the reports",
                       name_of(before));
  }
  if (after.counts.not_run == 0 && before.digest != after.digest) {
    return fmt::format("{}: other values, or other words of the witness: the digests are not the same",
                       name_of(before));
  }
  return {};
}

using Key = std::tuple<std::string, std::uint64_t, std::string, std::string, std::uint16_t, std::uint32_t, std::string>;

Key key_without_file(const RunReport& run) {
  return {run.routine, run.address, run.decoder, run.witness, run.environment.fpcw, run.environment.mxcsr, {}};
}

/// Tells runs apart. A vector file counts only for what a report has several of: a recording replays as the executable
/// verifies, and files are renamed. What it holds counts where several have one name.
class KeyMaker {
 public:
  KeyMaker(const Report& before, const Report& after) {
    for (const Report* report : {&before, &after}) {
      std::set<Key> keys;
      for (const RunReport& run : report->runs) {
        if (Key key = key_without_file(run); !keys.insert(key).second) several_.insert(std::move(key));
      }
    }
    for (const Report* report : {&before, &after}) {
      std::set<Key> keys;
      for (const RunReport& run : report->runs) {
        if (Key key = (*this)(run); !keys.insert(key).second) same_named_.insert(std::move(key));
      }
    }
  }

  [[nodiscard]] Key operator()(const RunReport& run) const {
    Key key = key_without_file(run);
    if (several_.contains(key)) std::get<6>(key) = file_name_of(run.vector_file);
    if (same_named_.contains(key)) std::get<6>(key) += ' ' + run.vector_sha256;
    return key;
  }

 private:
  std::set<Key> several_;
  std::set<Key> same_named_;
};

using ByKey = std::map<Key, const RunReport*>;

ByKey runs_by_key(std::vector<std::string>& reasons, const Report& report, const KeyMaker& key_of,
                  std::string_view which) {
  ByKey by_key;
  for (const RunReport& run : report.runs) {
    if (!by_key.emplace(key_of(run), &run).second) {
      reasons.push_back(fmt::format("{}: is twice in the {} report", name_of(run), which));
    }
  }
  return by_key;
}

/// Says what a run that only the old report has corresponds to in the new one, when that is the same but for one thing.
std::string nearly(const RunReport& before, const ByKey& after, const ByKey& others, const KeyMaker& key_of) {
  for (const auto& [key, candidate] : after) {
    if (others.contains(key)) continue;  // it has its counterpart
    RunReport like = before;
    like.environment = candidate->environment;
    if (key == key_of(like)) {
      return fmt::format("{}: another environment in the new report, {}", name_of(before),
                         report_parts::environment_text(candidate->environment));
    }
    like = before;
    like.address = candidate->address;
    if (key == key_of(like)) {
      return fmt::format("{}: at {} in the old report, at {} in the new one", name_of(before),
                         report_parts::address_text(before.address), report_parts::address_text(candidate->address));
    }
    like = before;
    like.decoder = candidate->decoder;
    if (key == key_of(like))
      return fmt::format("{}: decoder {} in the new report", name_of(before), candidate->decoder);
    like = before;
    like.witness = candidate->witness;
    if (key == key_of(like))
      return fmt::format("{}: witness {} in the new report", name_of(before), candidate->witness);
  }
  return {};
}

RunComparison compare_run(const RunReport& before, const RunReport& after) {
  RunComparison out = begin_comparison(before);
  out.before = side_of(before);
  out.after = side_of(after);
  tell_values(out, before, after);
  judge(out);
  return out;
}

RunComparison lost_run(const RunReport& before) {
  RunComparison out = begin_comparison(before);
  out.before = side_of(before);
  for (const Difference& difference : before.differences) add_change(out, Change::gone, &difference, nullptr);
  judge(out);
  return out;
}

RunComparison added_run(const RunReport& after) {
  RunComparison out = begin_comparison(after);
  out.after = side_of(after);
  for (const Difference& difference : after.differences) add_change(out, Change::appeared, nullptr, &difference);
  judge(out);
  return out;
}

ComparedReport about(const Report& report, const std::string& file) {
  return {file.substr(file.find_last_of("/\\") + 1),
          report.tool_version,
          report.image_name,
          report.image_sha256,
          report.stand_in,
          report.verdict()};
}

/// Says which quirks only one of the emulators has; nothing where one of them is not known to have been tested.
std::vector<std::string> engine_notes(const Engine& before, const Engine& after) {
  if (!before.self_test || !after.self_test || before.self_test->quirks == after.self_test->quirks) return {};
  const auto only = [](const std::vector<std::string>& some, const std::vector<std::string>& others) {
    std::vector<std::string> out;
    std::ranges::set_difference(some, others, std::back_inserter(out));
    return out.empty() ? std::string("none") : fmt::format("{}", fmt::join(out, ", "));
  };
  return {
      fmt::format("the emulators have other quirks: only unicorn {} of the old report: {}; only unicorn {} of the "
                  "new one: {}",
                  before.unicorn, only(before.self_test->quirks, after.self_test->quirks), after.unicorn,
                  only(after.self_test->quirks, before.self_test->quirks))};
}

}  // namespace

Comparison compare(const Report& before, const std::string& before_file, const Report& after,
                   const std::string& after_file) {
  Comparison out;
  out.before = about(before, before_file);
  out.after = about(after, after_file);
  out.notes = engine_notes(before.engine, after.engine);
  const KeyMaker key_of(before, after);
  const ByKey old_runs = runs_by_key(out.incomparable, before, key_of, "old");
  const ByKey new_runs = runs_by_key(out.incomparable, after, key_of, "new");
  bool any_match = false;
  for (const RunReport& run : before.runs) {
    const auto found = new_runs.find(key_of(run));
    if (found != new_runs.end()) {
      any_match = true;
      std::string reason = incomparable(before, run, after, *found->second);
      if (reason.empty()) {
        out.runs.push_back(compare_run(run, *found->second));
      } else {
        out.incomparable.push_back(std::move(reason));
      }
    } else if (std::string reason = nearly(run, new_runs, old_runs, key_of); !reason.empty()) {
      out.incomparable.push_back(std::move(reason));
    } else {
      out.runs.push_back(lost_run(run));
    }
  }
  for (const RunReport& run : after.runs) {
    if (!old_runs.contains(key_of(run))) out.runs.push_back(added_run(run));
  }
  if (!any_match && out.incomparable.empty()) out.incomparable.push_back("the reports have no run in common");
  return out;
}

}  // namespace bitwitness
