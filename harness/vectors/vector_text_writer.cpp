#include "harness/error.hpp"
#include "harness/printable.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"
#include "harness/vectors/vector_file.hpp"
#include "harness/vectors/vector_format.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace bitwitness {
namespace {

// A JSON string is one of TOML, but for the one control character that JSON does not escape.
std::string toml_string(std::string_view text) {
  const std::string json = nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string out;
  for (const char c : json) {
    if (c == '\x7f') {
      out += "\\u007f";
    } else {
      out += c;
    }
  }
  return out;
}

std::string toml_strings(const std::vector<std::string>& texts) {
  std::string out = "[";
  for (const std::string& text : texts) out += (out.size() > 1 ? ",\n  " : "\n  ") + toml_string(text);
  return out + (texts.empty() ? "]" : "\n]");
}

/// Writes JSON as an inline value of TOML. A null is left out with its key.
std::string inline_toml(const nlohmann::ordered_json& json) {
  if (json.is_string()) return toml_string(json.get_ref<const std::string&>());
  if (!json.is_structured()) return json.dump();
  std::string out;
  for (const auto& [key, member] : json.items()) {
    if (member.is_null()) continue;
    if (!out.empty()) out += ", ";
    if (json.is_object()) out += key + " = ";
    out += inline_toml(member);
  }
  return json.is_object() ? "{" + out + "}" : "[" + out + "]";
}

/// "[recorded]", when anything ran.
std::string recorded_toml(const RecordedRun& recorded) {
  const auto json = vectors::recorded_json(recorded);
  if (json == vectors::recorded_json({})) return {};
  std::string out = "\n[recorded]\n";
  for (const auto& [key, member] : json.items()) {
    out += key + " = ";
    if (!member.is_array() || member.empty()) {
      out += inline_toml(member) + '\n';
      continue;
    }
    out += '[';
    for (const auto& item : member) out += (out.back() == '[' ? "\n  " : ",\n  ") + inline_toml(item);
    out += "\n]\n";
  }
  return out;
}

std::string header_toml(const VectorHeader& header) {
  std::string out = fmt::format("schema = {}\ndecoder = {}\nwitness = {}\npacked_size = {}\nnotes = {}\n",
                                toml_string(vectors::schema), toml_string(header.decoder), toml_string(header.witness),
                                header.packed_size, toml_strings(header.notes));
  out += fmt::format("\n[tool]\nversion = {}\n", toml_string(header.tool_version));
  out +=
      fmt::format("\n[engine]\nunicorn = {}\ncapstone = {}\nlief = {}\ncpu = {}\n", toml_string(header.engine.unicorn),
                  toml_string(header.engine.capstone), toml_string(header.engine.lief), toml_string(header.engine.cpu));
  if (const auto& test = header.engine.self_test) {
    out += fmt::format("quirks = {}\nself_test = {{vectors = {}, as_hardware = {}}}\n", toml_strings(test->quirks),
                       test->vectors, test->as_hardware);
  }
  out += fmt::format("\n[image]\nname = {}\nsha256 = {}\nformat = {}\nstand_in = {}\n", toml_string(header.image_name),
                     toml_string(header.image_sha256), toml_string(to_string(header.image_format)), header.stand_in);
  out += fmt::format("\n[routine]\nname = {}\naddress = {}\nsignature = {}\nsha256 = {}\n", toml_string(header.routine),
                     toml_string(report_parts::address_text(header.address)), toml_string(header.signature),
                     toml_string(header.routine_sha256));
  out += fmt::format("\n[environment]\nfpcw = \"{:04x}\"\nmxcsr = \"{:04x}\"\n", header.environment.fpcw,
                     header.environment.mxcsr);
  std::vector<std::string> sources;
  for (const std::string& source : header.sources) sources.push_back(report_parts::portable_source(source));
  out += fmt::format("\n[values]\nsources = {}\nshard = {}\n", toml_strings(sources), toml_string(header.shard));
  out += fmt::format("\n[words]\nkind = {}\nnames = {}\n", toml_string(vectors::to_string(header.word_kind)),
                     toml_strings(header.word_names));
  out += recorded_toml(header.recorded);
  for (const BitField& field : header.fields) {
    out += fmt::format("\n[[fields]]\nname = {}\noffset = {}\nwidth = {}\n", toml_string(field.name), field.offset,
                       field.width);
  }
  return out;
}

}  // namespace

std::string to_toml(const VectorFile& file) {
  if (file.detail() == VectorDetail::digests) {
    throw Error(fmt::format("{}: the text form has words, this file digests only", printable(file.name(), true)));
  }
  if (file.has_known_differences()) {
    throw Error(fmt::format("{}: its known differences would be lost in the text form", printable(file.name(), true)));
  }
  const std::size_t word_count = file.header().word_count;
  std::string out = header_toml(file.header());
  VectorBlock block;
  for (std::size_t index = 0; index < file.block_count(); ++index) {
    file.read(block, index);
    for (std::size_t i = 0; i < block.outcomes.size(); ++i) {
      const auto packed =
          std::span<const std::byte>(block.packed).subspan(i * file.header().packed_size, file.header().packed_size);
      out += fmt::format("\n[[vector]]\npacked = \"{}\"\n", to_hex(packed));
      if (block.outcomes[i] != OutcomeKind::returned) {
        out += fmt::format("outcome = {}\n", toml_string(to_string(block.outcomes[i])));
        continue;
      }
      const auto words = std::span<const std::uint32_t>(block.words).subspan(i * word_count, word_count);
      out += fmt::format("words = [\"{:08x}\"]\n", fmt::join(words, "\", \""));
    }
    if (out.size() > max_vector_text) {
      throw Error(
          fmt::format("{}: its text form would exceed {} bytes", printable(file.name(), true), max_vector_text));
    }
  }
  // What the reader would refuse (a line of a hundred dots, say) is refused here.
  static_cast<void>(VectorFile::parse(std::as_bytes(std::span(out)), "text form of " + file.name()));
  return out;
}

}  // namespace bitwitness
