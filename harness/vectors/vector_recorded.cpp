#include "harness/report_objects.hpp"
#include "harness/report_parts.hpp"
#include "harness/report_places.hpp"
#include "harness/values.hpp"
#include "harness/vectors/vector_format.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness {

namespace {

std::size_t size_of(const VectorHeader& header) {
  return vectors::header_json(header, VectorDetail::digests).size();
}

/// Takes off the end of a list what frees so many bytes, and says how many it took.
template <typename Item, typename Size>
std::uint64_t shorten(std::vector<Item>& list, std::size_t& excess, Size size) {
  std::uint64_t taken = 0;
  for (; excess > 0 && !list.empty(); ++taken) {
    excess -= std::min<std::size_t>(excess, size(list.back()));
    list.pop_back();
  }
  return taken;
}

}  // namespace

std::vector<std::string> notes_of(const VectorHeader& header) {
  std::vector<std::string> notes = header.notes;
  const RecordedRun& recorded = header.recorded;
  notes.insert(notes.end(), recorded.path.begin(), recorded.path.end());
  for (std::string& note : report_parts::fact_notes(recorded.facts)) notes.push_back(std::move(note));
  if (recorded.facts_left_out > 0) {
    notes.push_back(
        fmt::format("{} more facts were left out of the vector file's header, which had no room for them; where "
                    "shards were merged, the others may count too few values",
                    recorded.facts_left_out));
  }
  return notes;
}

void fit_header(VectorHeader& header) {
  constexpr std::size_t slack = 256;  // what says that something was left out
  const std::size_t size = size_of(header);
  if (size <= vectors::max_header_size) return;
  std::size_t excess = size - vectors::max_header_size + slack;
  RecordedRun& recorded = header.recorded;
  // An array of one has two brackets, where a list's element has a comma.
  if (shorten(recorded.failures, excess, [](const Failure& failure) {
        return report_objects::failures_json(std::span(&failure, 1))
                   .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
                   .size() -
               2;
      }) > 0) {
    recorded.limit = recorded.failures.size();
  }
  recorded.facts_left_out += shorten(recorded.facts, excess, [](const Fact& fact) {
    return report_objects::facts_json(std::span(&fact, 1))
               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)
               .size() -
           2;
  });
  if (const std::uint64_t notes = shorten(recorded.path, excess, [](const std::string& note) { return note.size(); });
      notes > 0) {
    recorded.path.push_back(fmt::format("{} notes about the first value were left out: no room for them", notes));
  }
}

void require_header(const VectorHeader& header) {
  std::string flaw = vectors::header_flaw(header);
  constexpr std::size_t most = vectors::max_header_size - vector_header_reserve;
  if (const std::size_t size = flaw.empty() ? size_of(header) : 0; size > most) {
    flaw = fmt::format("its header would have {} bytes before anything has run, at most {} are allowed", size, most);
  }
  if (!flaw.empty()) throw Error("a vector file cannot be written: " + flaw);
}

namespace vectors {

std::string recorded_flaw(const VectorHeader& header) {
  const auto is_value = [&](const std::vector<std::byte>& value) { return value.size() == header.packed_size; };
  const auto& [isolation, path, facts, left_out, failures, limit] = header.recorded;
  if (isolation.sampled > header.count || isolation.unstable > isolation.sampled) {
    return fmt::format("of {} values {} ran alone and {} gave other words", header.count, isolation.sampled,
                       isolation.unstable);
  }
  if (isolation.unstable > 0 ? !is_value(isolation.first_value) : !isolation.first_value.empty()) {
    return "the first value that gave other words alone is not one of its values";
  }
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (i > 0 && facts[i - 1].what >= facts[i].what) return "its facts are not sorted";
    if (facts[i].values == 0 || !is_value(facts[i].first_value)) return "a fact is about none of its values";
  }
  if (failures.size() > limit || failures.size() > header.count) {
    return fmt::format("{} values without a result where {} are listed at most, of {}", failures.size(), limit,
                       header.count);
  }
  for (std::size_t i = 0; i < failures.size(); ++i) {
    if (!is_value(failures[i].value)) return "a value without a result is not one of its values";
    if (i > 0 && !is_less(failures[i - 1].value, failures[i].value)) return "values without a result do not rise";
  }
  return {};
}

nlohmann::ordered_json recorded_json(const RecordedRun& recorded) {
  return {{"isolation", report_objects::isolation_json(recorded.isolation)},
          {"path", recorded.path},
          {"facts", report_objects::facts_json(recorded.facts)},
          {"facts_left_out", recorded.facts_left_out},
          {"failures", report_objects::failures_json(recorded.failures)},
          {"limit", recorded.limit}};
}

RecordedRun read_recorded(const JsonPlace& place, std::size_t packed_size) {
  place.allow({"isolation", "path", "facts", "facts_left_out", "failures", "limit"});
  report_places::PackedSize size(packed_size);
  return {.isolation = report_places::read_isolation(place["isolation"], size),
          .path = place["path"].texts(),
          .facts = report_places::read_facts(place["facts"], size),
          .facts_left_out = place["facts_left_out"].count(),
          .failures = report_places::read_failures(place["failures"], size),
          .limit = place["limit"].count()};
}

}  // namespace vectors

}  // namespace bitwitness
