#include "harness/cli/report_difference.hpp"

#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/json_place.hpp"

#include <optional>
#include <span>
#include <string_view>

#include <fmt/format.h>

namespace bitwitness::cli {

namespace {

constexpr std::string_view schema = "bitwitness-report/1";
constexpr std::size_t sha256_digits = 64;

Signature read_signature(const JsonPlace& place) {
  const std::string text = place.text();
  return place.said([&] { return parse_signature(text); });
}

ReportedDifference read_difference(const JsonPlace& run, const JsonPlace& difference) {
  ReportedDifference out;
  const JsonPlace routine = run["routine"];
  out.routine.name = routine["name"].text();
  out.routine.address = routine["address"].hex(~std::uint64_t{0});
  out.routine.signature = read_signature(routine["signature"]);
  out.decoder = run["decoder"].text();
  out.environment.fpcw = static_cast<std::uint16_t>(run["environment"]["fpcw"].hex(0xffff));
  out.environment.mxcsr = static_cast<std::uint32_t>(run["environment"]["mxcsr"].hex(0xffff));
  out.value = difference["value"].bytes();
  out.reference = difference["reference"].words();
  out.subject = difference["subject"].words();
  const Signature& signature = out.routine.signature;
  routine["signature"].require(signature.convention != Convention::automatic, "is open (auto)");
  difference["value"].require(out.value.size() == signature.packed_size(), "has not the size that the signature takes");
  difference["reference"].require(out.reference.size() == signature.word_count(),
                                  "has not as many words as the signature gives");
  difference["subject"].require(out.subject.size() == out.reference.size(), "has another length than the reference");
  return out;
}

}  // namespace

DifferenceSearch find_difference(const std::string& path) {
  const std::string file = "--from-difference " + path;
  std::optional<FileBytes> contents;
  try {
    contents = FileBytes::open(path);
  } catch (const Error& error) {
    throw Error(fmt::format("--from-difference {}", error.what()));
  }
  const std::span<const std::byte> bytes = contents->bytes();
  const nlohmann::json document = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, file);
  const JsonPlace report(document, file);
  report["schema"].require(report["schema"].text() == schema, fmt::format("is not \"{}\"", schema));
  DifferenceSearch search;
  search.image_name = report["image"]["name"].text();
  search.image_sha256 = report["image"]["sha256"].text();
  report["image"]["sha256"].require(search.image_sha256.size() == sha256_digits, "is not a SHA-256");
  for (const JsonPlace& run : report["runs"].items()) {
    search.differed += run["counts"]["differed"].count();
    const std::vector<JsonPlace> differences = run["differences"].items();
    if (!search.first && !differences.empty()) search.first = read_difference(run, differences.front());
  }
  return search;
}

}  // namespace bitwitness::cli
