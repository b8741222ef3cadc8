#include "harness/report_reader.hpp"

#include "harness/file_bytes.hpp"
#include "harness/json_place.hpp"
#include "harness/report_environments.hpp"
#include "harness/report_parts.hpp"
#include "harness/report_places.hpp"
#include "harness/sha256.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace bitwitness {

namespace {

using report_places::is_sha256;
using report_places::PackedSize;
using report_places::read_address;
using report_places::read_engine;
using report_places::read_environment;
using report_places::read_facts;
using report_places::read_failures;
using report_places::read_image;
using report_places::read_isolation;
using report_places::read_sha256;
using report_places::read_word_kind;
using report_places::require_rising;

using Bytes = std::vector<std::byte>;

constexpr std::string_view schema = "bitwitness-report/1";
constexpr std::uint64_t not_a_distance = std::numeric_limits<std::uint64_t>::max();

std::vector<std::uint32_t> read_words(const JsonPlace& place, std::size_t count) {
  std::vector<std::uint32_t> words = place.words();
  place.require(words.size() == count, fmt::format("has not {} words", count));
  for (const JsonPlace& word : place.items()) {
    word.require(word.text() == fmt::format("{:08x}", word.hex(0xffffffff)), "is not 8 lowercase hex digits");
  }
  return words;
}

std::uint64_t read_distance(const JsonPlace& place) {
  if (place.is_null()) return not_a_distance;
  const std::uint64_t distance = place.count();
  place.require(distance != not_a_distance, "is no distance; that of a NaN is null");
  return distance;
}

std::vector<Difference> read_differences(const JsonPlace& list, const RunReport& run, PackedSize& size) {
  std::vector<Difference> out;
  for (const JsonPlace& place : list.items()) {
    place.allow({"value", "reference", "subject", "ulp"});
    Difference difference{size.read(place["value"]), read_words(place["reference"], run.word_names.size()),
                          read_words(place["subject"], run.word_names.size())};
    if (!out.empty()) require_rising(place["value"], out.back().value, difference.value);
    place.require(difference.reference != difference.subject, "has the same words on both sides");
    const std::vector<JsonPlace> distances = place["ulp"].items();
    place["ulp"].require(distances.size() == difference.reference.size(), "has another length than the reference");
    for (std::size_t i = 0; i < distances.size(); ++i) {
      const std::uint64_t distance = ulp_distance(difference.reference[i], difference.subject[i], run.word_kind);
      distances[i].require(read_distance(distances[i]) == distance, "is not the distance of the two words");
      distances[i].require(distance <= run.max_ulp, "is above max_ulp");
    }
    out.push_back(std::move(difference));
  }
  list.require(out.size() <= run.counts.differed, "lists more than counts.differed");
  return out;
}

Counts read_counts(const JsonPlace& place, std::uint64_t distinct) {
  place.allow({"run", "agreed", "differed", "faulted", "out_of_budget", "unwritten", "disputed", "not_run", "known"});
  Counts counts;
  counts.run = place["run"].count();
  counts.not_run = place["not_run"].count();
  place["run"].require(counts.run <= distinct && counts.not_run == distinct - counts.run,
                       "and not_run are not the distinct values together");
  std::uint64_t rest = counts.run;
  const auto part = [&](const char* key) {
    const std::uint64_t count = place[key].count();
    place[key].require(count <= rest, "and what stands before it are more than were run");
    rest -= count;
    return count;
  };
  counts.agreed = part("agreed");
  counts.differed = part("differed");
  counts.faulted = part("faulted");
  counts.out_of_budget = part("out_of_budget");
  counts.unwritten = part("unwritten");
  const auto rare = [&](const char* key) -> std::uint64_t {
    const auto found = place.find(key);
    if (!found) return 0;
    const std::uint64_t count = part(key);
    found->require(count != 0, "is 0; then it is left out");
    return count;
  };
  counts.disputed = rare("disputed");
  counts.known = rare("known");
  place.require(rest == 0, "do not add up to what was run");
  return counts;
}

ShardPart read_part(const JsonPlace& place, const RunReport& run, PackedSize& size) {
  place.allow({"first", "whole", "values_sha256", "limit", "budget", "chunks", "path_notes", "facts"});
  ShardPart part;
  part.first = place["first"].count();
  part.whole = place["whole"].count();
  place["whole"].require(part.first <= part.whole && run.distinct <= part.whole - part.first,
                         "is less than the shard reaches");
  place["first"].require(run.distinct == 0 || part.first % values_per_chunk == 0, "is not where a chunk begins");
  part.values_sha256 = read_sha256(place["values_sha256"]);
  part.limit = place["limit"].count();
  place["limit"].require(run.differences.size() <= part.limit && run.failures.size() <= part.limit,
                         "is less than are listed");
  part.budget = place["budget"].count();
  Sha256 hash;
  for (const JsonPlace& chunk : place["chunks"].items()) {
    part.chunks.push_back(chunk.text());
    chunk.require(is_sha256(part.chunks.back()), "is not a SHA-256 in lowercase hex digits");
    hash.update(std::as_bytes(std::span(part.chunks.back())));
  }
  const std::uint64_t chunks = run.distinct / values_per_chunk + (run.distinct % values_per_chunk != 0 ? 1 : 0);
  place["chunks"].require(part.chunks.size() == chunks,
                          fmt::format("are not {}, one per {} values", chunks, values_per_chunk));
  place["chunks"].require(hash.hex() == run.digest, "do not give the run's digest");
  part.facts = read_facts(place["facts"], size);
  const std::vector<std::string> said = report_parts::fact_notes(part.facts);
  place["facts"].require(said.size() <= run.notes.size() && std::equal(said.rbegin(), said.rend(), run.notes.rbegin()),
                         "are not what the last notes say");
  part.path_notes = place["path_notes"].count();
  place["path_notes"].require(part.path_notes <= run.notes.size() - said.size(), "is more than there are");
  place.require(run.counts.not_run == 0, "is there though the shard was interrupted");
  return part;
}

std::optional<std::size_t> packed_size_of(const RunReport& run, const JsonPlace& place) {
  if (run.signature.empty() || run.signature == "auto") return std::nullopt;
  const Signature signature = place.said([&] { return parse_signature(run.signature); });
  if (signature.convention == Convention::automatic) return std::nullopt;
  place.require(signature.word_count() == run.word_names.size(), "gives another number of words than words.names has");
  return signature.packed_size();
}

void read_values(RunReport& run, const JsonPlace& place) {
  place.allow({"sources", "distinct", "shard"});
  run.sources = place["sources"].texts();
  run.distinct = place["distinct"].count();
  const std::optional<JsonPlace> text = place.find("shard");
  if (!text) return;
  run.shard = text->text();
  const Shard shard = text->said([&] { return parse_shard(run.shard); });
  text->require(shard.count > 1 && fmt::format("{}/{}", shard.index, shard.count) == run.shard,
                "is not one of several, as in 1/4");
}

RunReport read_run(const JsonPlace& place) {
  place.allow({"routine", "decoder", "witness", "environment", "values", "counts", "digest", "words", "differing",
               "max_ulp", "differences", "failures", "isolation", "notes", "verdict", "broken", "image", "vectors",
               "part"});
  RunReport run;
  const JsonPlace routine = place["routine"];
  routine.allow({"name", "address", "signature", "sha256"});
  run.routine = routine["name"].text();
  run.address = read_address(routine["address"]);
  run.signature = routine["signature"].text();
  run.routine_sha256 = read_sha256(routine["sha256"]);
  run.decoder = place["decoder"].text();
  run.witness = place["witness"].text();
  run.environment = read_environment(place["environment"]);
  read_values(run, place["values"]);
  run.counts = read_counts(place["counts"], run.distinct);
  run.digest = read_sha256(place["digest"]);
  const JsonPlace words = place["words"];
  words.allow({"kind", "names"});
  run.word_kind = read_word_kind(words["kind"]);
  run.word_names = words["names"].texts();
  for (const JsonPlace& count : place["differing"].items()) {
    run.differing.push_back(count.count());
    count.require(run.differing.back() <= run.counts.differed, "is more than counts.differed");
  }
  place["differing"].require(run.differing.size() == run.word_names.size(), "has another length than words.names");
  run.max_ulp = read_distance(place["max_ulp"]);
  PackedSize size(packed_size_of(run, routine["signature"]));
  run.differences = read_differences(place["differences"], run, size);
  run.failures = read_failures(place["failures"], size);
  place["failures"].require(run.failures.size() <= run.counts.without_result(), "lists more than were counted");
  run.isolation = read_isolation(place["isolation"], size);
  const std::optional<JsonPlace> vectors = place.find("vectors");
  // A replay of a few values has what was found while all of the file's were recorded.
  place["isolation"]["sampled"].require(vectors || run.isolation.sampled <= run.distinct,
                                        "is more than there are values");
  if (vectors) {
    vectors->allow({"name", "sha256", "by_group"});
    if (const auto by_group = vectors->find("by_group")) {
      run.by_group = by_group->flag();
      by_group->require(run.by_group, "is false; then it is left out");
    }
    run.vector_file = (*vectors)["name"].text();
    (*vectors)["name"].require(!run.vector_file.empty() && file_name_of(run.vector_file) == run.vector_file,
                               "is not a file's name without folders");
    run.vector_sha256 = read_sha256((*vectors)["sha256"]);
  }
  std::uint64_t differing_words = 0;
  for (const std::uint64_t count : run.differing) differing_words += count;  // each is at most counts.differed
  place["differing"].require(run.by_group || differing_words >= run.counts.differed,
                             "has fewer than one word for each value that differs");
  run.notes = place["notes"].texts();
  if (const auto broken = place.find("broken")) {
    run.broken = broken->texts();
    broken->require(!run.broken.empty(), "is empty; then it is left out");
  }
  if (const auto image = place.find("image")) run.image = read_image(*image);
  if (const auto part = place.find("part")) {
    part->require(!run.shard.empty(), "is there without values.shard");
    run.part = read_part(*part, run, size);
  }
  place["verdict"].require(place["verdict"].text() == to_string(run.verdict()),
                           fmt::format("is not \"{}\", which the counts give", to_string(run.verdict())));
  return run;
}

}  // namespace

Report parse_report(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  const JsonPlace document(json, name);
  document["schema"].require(document["schema"].text() == schema, fmt::format("is not \"{}\"", schema));
  document.allow({"schema", "tool", "engine", "image", "notes", "runs", "environments", "verdict"});
  Report report;
  document["tool"].allow({"version"});
  report.tool_version = document["tool"]["version"].text();
  report.engine = read_engine(document["engine"]);
  RunImage image = read_image(document["image"]);
  report.image_name = std::move(image.name);
  report.image_sha256 = std::move(image.sha256);
  report.image_format = image.format;
  report.stand_in = image.stand_in;
  report.notes = document["notes"].texts();
  for (const JsonPlace& run : document["runs"].items()) report.runs.push_back(read_run(run));
  if (const auto environments = document.find("environments")) report_environments::read(report, *environments);
  document["verdict"].require(document["verdict"].text() == to_string(report.verdict()),
                              fmt::format("is not \"{}\", which the runs give", to_string(report.verdict())));
  return report;
}

Report read_report(const std::string& path) {
  const FileBytes contents = FileBytes::open(path);
  const std::span<const std::byte> bytes = contents.bytes();
  return parse_report({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

}  // namespace bitwitness
