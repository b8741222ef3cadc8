#include "harness/known_differences.hpp"

#include "harness/error.hpp"
#include "harness/report_parts.hpp"
#include "harness/toml_reader.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::size_t max_text = std::size_t{1} << 20;  // as a vector file's text form

std::string said(const KnownDifference& known) {
  return fmt::format("known difference {} of decoder {} ({})", to_hex(known.value), known.decoder, known.place);
}

bool has_reason(const KnownDifference& known) {
  // A letter or a digit: of other scripts any from U+00C0 on that is not of the spaces and signs around U+2000.
  const std::string& text = known.reason;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (std::isalnum(byte) != 0) return true;
    if (byte >= 0xc3 && byte != 0xe2 && byte != 0xef) return true;
  }
  return false;
}

KnownDifference parse_one(const toml::table& table, std::string_view origin) {
  const std::size_t line = std::max<std::size_t>(table.source().begin.line, 1);
  const toml_reader::TableReader reader(table, origin, "known_difference");
  reader.require_known({"value", "decoder", "reason", "file"});
  KnownDifference known;
  known.place = fmt::format("{}:{}", origin, line);
  try {
    known.value = parse_hex(reader.text("value"));
  } catch (const Error& error) {
    if (!reader.has("value")) throw;
    reader.fail_at("value", error.what());
  }
  if (known.value.empty()) reader.fail_at("value", "no bytes");
  known.decoder = reader.text("decoder");
  known.reason = reader.optional_text("reason").value_or("");
  known.file = reader.optional_text("file").value_or("");
  return known;
}

}  // namespace

std::vector<KnownDifference> parse_known_differences(std::string_view text, std::string_view origin, bool alone) {
  const std::string shown = toml_reader::shown(origin);
  const toml::table root = toml_reader::parse(text, shown, max_text);
  const toml_reader::TableReader reader(root, shown, "the file of known differences");
  if (alone) reader.require_known({"known_difference"});
  std::vector<KnownDifference> all;
  for (const toml::table* table : reader.tables("known_difference")) all.push_back(parse_one(*table, shown));
  return all;
}

KnownDifferences::KnownDifferences(std::vector<KnownDifference> all)
    : all_(std::move(all)), seen_(all_.size()), reason_told_(all_.size()) {
  std::map<std::tuple<std::vector<std::byte>, std::string, std::string>, const KnownDifference*> stated;
  for (const KnownDifference& known : all_) {
    const auto [before, is_new] = stated.emplace(std::tuple(known.value, known.decoder, known.file), &known);
    if (!is_new) throw Error(fmt::format("{}: {} is stated twice", known.place, said(*before->second)));
  }
}

std::vector<std::size_t> KnownDifferences::concerning(std::string_view decoder, std::string_view file,
                                                      std::size_t packed_size) const {
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const KnownDifference& known = all_[i];
    const bool fits = known.decoder == decoder && known.value.size() == packed_size;
    if (!fits || !(known.file.empty() || known.file == file)) continue;
    const auto same = [&](std::size_t other) { return all_[other].value == known.value; };
    if (const auto before = std::ranges::find_if(indices, same); before != indices.end()) {
      throw Error(fmt::format("{}: {} is stated twice for {}", known.place, said(all_[*before]), file));
    }
    indices.push_back(i);
  }
  return indices;
}

void KnownDifferences::add(RunReport& report, std::span<const std::size_t> indices,
                           std::span<const KnownState> states) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    const KnownDifference& known = all_[indices[i]];
    if (states[i] == KnownState::absent) continue;
    seen_[indices[i]] = true;
    if (states[i] == KnownState::agreed) {
      report.broken.push_back(said(known) + " agrees now: take it out");
    } else if (states[i] == KnownState::failed) {
      report.broken.push_back(said(known) + " has no recorded result to differ from");
    } else if (has_reason(known)) {
      report.notes.push_back(fmt::format("{}: {}", said(known), known.reason));
    } else {
      report.broken.push_back(said(known) + " lacks a reason");
    }
    if (!has_reason(known)) reason_told_[indices[i]] = true;
  }
}

std::vector<std::string> KnownDifferences::finish(std::span<RunReport> runs) const {
  std::vector<std::string> notes;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const KnownDifference& known = all_[i];
    const auto run = std::ranges::find(runs, known.decoder, &RunReport::decoder);
    if (run == runs.end()) {
      notes.push_back(said(known) + " was not looked at: that decoder was not run");
      continue;
    }
    if (!seen_[i]) run->broken.push_back(said(known) + " is in none of the files");
    if (!has_reason(known) && !reason_told_[i]) run->broken.push_back(said(known) + " lacks a reason");
  }
  return notes;
}

}  // namespace bitwitness
