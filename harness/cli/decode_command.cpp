#include "harness/cli/command.hpp"
#include "harness/cli/decoder_subject.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/output.hpp"
#include "harness/error.hpp"
#include "harness/report_parts.hpp"
#include "harness/values.hpp"

#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness::cli {

namespace {

struct Arguments {
  std::string decoder;
  std::vector<std::string> values;
  std::optional<std::string> json;
};

struct Decoded {
  std::vector<std::byte> value;
  std::vector<std::uint32_t> words;
};

Decoded decode(const decoders::Decoder& decoder, const std::string& text) {
  Decoded decoded;
  try {
    decoded.value = parse_hex(text);
  } catch (const Error& error) {
    throw Error(fmt::format("decode {} {}: {}", decoder.name, text, error.what()));
  }
  if (decoded.value.size() != decoder.packed_size) {
    throw Error(fmt::format("decode {} {}: {} bytes, and the decoder takes {}", decoder.name, text,
                            decoded.value.size(), decoder.packed_size));
  }
  decoded.words.resize(decoder.word_names.size());
  decoder.decode(decoded.value, decoded.words);
  return decoded;
}

std::string text_of(const decoders::Decoder& decoder, const Decoded& decoded) {
  std::string line = to_hex(decoded.value) + " ";
  std::string lanes;
  std::size_t width = 0;
  for (const std::string_view name : decoder.word_names) width = std::max(width, name.size());
  for (std::size_t i = 0; i < decoded.words.size(); ++i) {
    line += fmt::format(" {:08x}", decoded.words[i]);
    lanes += fmt::format("  {:{}}  {:08x}  {}\n", decoder.word_names[i], width, decoded.words[i],
                         report_parts::number_text(decoded.words[i], word_kind_of(decoder)));
  }
  return line + '\n' + lanes;
}

nlohmann::ordered_json json_of(const decoders::Decoder& decoder, const Decoded& decoded) {
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < decoded.words.size(); ++i) {
    // A number as text: JSON has no NaN and no infinity.
    words.push_back({{"name", decoder.word_names[i]},
                     {"bits", fmt::format("{:08x}", decoded.words[i])},
                     {"number", report_parts::number_text(decoded.words[i], word_kind_of(decoder))}});
  }
  return {{"value", to_hex(decoded.value)}, {"words", std::move(words)}};
}

int run(const Arguments& arguments) {
  const decoders::Decoder& decoder = require_decoder(arguments.decoder);
  std::string text;
  nlohmann::ordered_json values = nlohmann::ordered_json::array();
  for (const std::string& value : arguments.values) {
    const Decoded decoded = decode(decoder, value);
    text += text_of(decoder, decoded);
    values.push_back(json_of(decoder, decoded));
  }
  const nlohmann::ordered_json document = {
      {"schema", "bitwitness-decode/1"}, {"decoder", decoder.name}, {"values", std::move(values)}};
  const std::string json = document.dump(2) + '\n';
  if (arguments.json && *arguments.json != "-") write_file("--json", *arguments.json, json);
  write_standard_output(arguments.json && *arguments.json == "-" ? json : text);
  return exit_agreed;
}

}  // namespace

Command add_decode_command(CLI::App& program) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* parser = program.add_subcommand("decode", "Decode packed values with a native decoder");
  parser->add_option("name", arguments->decoder, "decoder (see: list decoders)")->type_name("NAME")->required();
  parser->add_option("hex", arguments->values, "packed values: hex bytes in memory order")
      ->type_name("HEX")
      ->required();
  parser->add_option("--json", arguments->json, "write JSON; - is standard output")->type_name("FILE");
  return {parser, [arguments] { return run(*arguments); }};
}

}  // namespace bitwitness::cli
