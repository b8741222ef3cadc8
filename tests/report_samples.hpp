#pragma once
#include "harness/report.hpp"
#include "harness/report_parts.hpp"
#include "harness/sha256.hpp"
#include "harness/values.hpp"

#include <string>
#include <utility>
#include <vector>

// Reports as `verify` gives them, for tests of what reads them.

namespace bitwitness::tests {

using Words4 = std::vector<std::uint32_t>;

/// The words that the witness gives for every value here.
inline const Words4 reference_words = {0x3f433af1, 0xbf018814, 0x3e7e3c18, 0xbea2849b};

/// A difference of one ulp in each of the first `words` words, times `distance`.
inline Difference difference(std::string_view value, std::size_t words = 1, std::uint32_t distance = 1) {
  Difference out{parse_hex(value), reference_words, reference_words};
  for (std::size_t i = 0; i < words; ++i) out.subject[i] += distance;
  return out;
}

/// A run over 20,000 values of which those differ, `more` of them beyond the list.
inline RunReport sample_run(std::vector<Difference> differences = {}, std::uint64_t more = 0) {
  RunReport run;
  run.routine = "packed_quat48";
  run.address = 0x103f1d0;
  run.signature = "cdecl(in u8[6], out f32[4])";
  run.routine_sha256 = std::string(64, 'a');
  run.decoder = "packed_quat48";
  run.witness = "unicorn";
  run.sources = {"special", "random:20000:1"};
  run.distinct = 20000;
  run.counts.run = run.distinct;
  run.counts.differed = differences.size() + more;
  run.counts.agreed = run.distinct - run.counts.differed;
  run.digest = std::string(64, 'd');
  run.word_names = {"x", "y", "z", "w"};
  run.differing = {0, 0, 0, 0};
  for (const Difference& one : differences) {
    for (std::size_t word = 0; word < 4; ++word) {
      if (one.reference[word] == one.subject[word]) continue;
      ++run.differing[word];
      run.max_ulp = std::max(run.max_ulp, ulp_distance(one.reference[word], one.subject[word]));
    }
  }
  run.differing[0] += more;
  run.differences = std::move(differences);
  run.isolation.sampled = 32;
  return run;
}

inline Report sample_report(std::vector<RunReport> runs) {
  Report report;
  report.tool_version = "0.1.0";
  report.engine = {"2.0.1", "4.0.2", "0.9.0", "Example CPU"};
  report.image_name = "stand_in_x87.exe";
  report.image_sha256 = "0123456789abcdef" + std::string(48, '0');
  report.stand_in = true;
  report.runs = std::move(runs);
  return report;
}

/// Makes a run the shard of so many values which begins at `first`, with a digest that fits.
inline void make_shard(RunReport& run, Shard shard, std::uint64_t whole) {
  const auto [begin, end] = shard_range(shard, whole);
  run.shard = std::to_string(shard.index) + "/" + std::to_string(shard.count);
  run.counts.agreed -= run.counts.run - (end - begin);
  run.distinct = run.counts.run = end - begin;
  ShardPart part;
  part.first = begin;
  part.whole = whole;
  part.values_sha256 = std::string(64, '7');
  part.limit = 20;
  part.budget = 1'000'000;
  Sha256 digest;
  for (std::uint64_t at = begin; at < end; at += values_per_chunk) {
    const std::string text = std::to_string(at);
    part.chunks.push_back(sha256_hex(std::as_bytes(std::span(text))));
    digest.update(std::as_bytes(std::span(part.chunks.back())));
  }
  run.digest = digest.hex();
  run.part = std::move(part);
}

/// Adds what a run says of facts, in the notes and in its part.
inline void add_facts(RunReport& run, std::vector<Fact> facts) {
  for (std::string& note : report_parts::fact_notes(facts)) run.notes.push_back(std::move(note));
  run.part->facts = std::move(facts);
}

}  // namespace bitwitness::tests
