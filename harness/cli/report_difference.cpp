#include "harness/cli/report_difference.hpp"

#include "harness/cli/options.hpp"
#include "harness/error.hpp"
#include "harness/file_bytes.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

using Json = nlohmann::json;

constexpr std::string_view schema = "bitwitness-report/1";
constexpr std::size_t word_digits = 8;
constexpr std::size_t sha256_digits = 64;

/// A place in a report, for messages: "runs[0].environment.fpcw".
class Place {
 public:
  Place(const Json& json, const std::string& file) : json_(json), file_(file) {}

  [[nodiscard]] Place operator[](const std::string& key) const {
    require(json_.is_object(), "is not an object");
    const auto found = json_.find(key);
    if (found == json_.end()) throw Error(fmt::format("{}: {} is missing", file_, join(key)));
    return {*found, file_, join(key)};
  }

  [[nodiscard]] std::vector<Place> items() const {
    require(json_.is_array(), "is not an array");
    std::vector<Place> out;
    for (std::size_t i = 0; i < json_.size(); ++i) out.push_back({json_[i], file_, fmt::format("{}[{}]", path_, i)});
    return out;
  }

  [[nodiscard]] std::string text() const {
    require(json_.is_string(), "is not a string");
    return json_.get<std::string>();
  }

  [[nodiscard]] std::uint64_t count() const {
    require(json_.is_number_unsigned(), "is not a count");
    return json_.get<std::uint64_t>();
  }

  /// Puts the place before what a parser complains about.
  template <typename Work>
  auto said(Work work) const {
    try {
      return work();
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}: {}", file_, path_, error.what()));
    }
  }

  [[nodiscard]] std::uint64_t hex(std::uint64_t most) const {
    const std::string digits = text();
    return said([&] { return parse_hex_number("hex", digits, most); });
  }

  [[nodiscard]] std::vector<std::byte> bytes() const {
    const std::string digits = text();
    return said([&] { return parse_hex(digits); });
  }

  [[nodiscard]] std::vector<std::uint32_t> words() const {
    std::vector<std::uint32_t> out;
    for (const Place& word : items()) {
      word.require(word.text().size() == word_digits, "is not 8 hex digits");
      out.push_back(static_cast<std::uint32_t>(word.hex(0xffffffff)));
    }
    return out;
  }

  [[nodiscard]] Signature signature() const {
    const std::string text_of_it = text();
    return said([&] { return parse_signature(text_of_it); });
  }

  void require(bool holds, std::string_view otherwise) const {
    if (!holds) throw Error(fmt::format("{}: {} {}", file_, path_.empty() ? "the document" : path_, otherwise));
  }

 private:
  Place(const Json& json, const std::string& file, std::string path)
      : json_(json), file_(file), path_(std::move(path)) {}

  [[nodiscard]] std::string join(const std::string& key) const { return path_.empty() ? key : path_ + '.' + key; }

  const Json& json_;
  const std::string& file_;
  std::string path_;
};

ReportedDifference read_difference(const Place& run, const Place& difference) {
  ReportedDifference out;
  const Place routine = run["routine"];
  out.routine.name = routine["name"].text();
  out.routine.address = routine["address"].hex(~std::uint64_t{0});
  out.routine.signature = routine["signature"].signature();
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
  Json document;
  try {
    const FileBytes contents = FileBytes::open(path);
    const auto* text = reinterpret_cast<const char*>(contents.bytes().data());
    document = Json::parse(text, text + contents.bytes().size());
  } catch (const Json::parse_error& error) {
    throw Error(fmt::format("{}: not JSON, at byte {}", file, error.byte));
  } catch (const Error& error) {
    throw Error(fmt::format("--from-difference {}", error.what()));
  }
  const Place report(document, file);
  report["schema"].require(report["schema"].text() == schema, fmt::format("is not \"{}\"", schema));
  DifferenceSearch search;
  search.image_name = report["image"]["name"].text();
  search.image_sha256 = report["image"]["sha256"].text();
  report["image"]["sha256"].require(search.image_sha256.size() == sha256_digits, "is not a SHA-256");
  for (const Place& run : report["runs"].items()) {
    search.differed += run["counts"]["differed"].count();
    const std::vector<Place> differences = run["differences"].items();
    if (!search.first && !differences.empty()) search.first = read_difference(run, differences.front());
  }
  return search;
}

}  // namespace bitwitness::cli
