#include "harness/error.hpp"
#include "harness/report_places.hpp"
#include "harness/toml_reader.hpp"
#include "harness/values.hpp"
#include "harness/vectors/vector_file.hpp"
#include "harness/vectors/vector_format.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace bitwitness {
namespace {

using toml_reader::shown;
using toml_reader::TableReader;

constexpr std::array failures{OutcomeKind::faulted, OutcomeKind::out_of_budget, OutcomeKind::unwritten,
                              OutcomeKind::disputed};
constexpr std::size_t word_digits = 8;

std::size_t line_of(const toml::node& node) {
  return std::max<std::size_t>(node.source().begin.line, 1);
}

// Runs a parser that says what is wrong; adds where.
template <typename Parse>
auto parsed(const TableReader& reader, std::string_view key, Parse parse) {
  try {
    return parse(reader.text(key));
  } catch (const Error& error) {
    if (!reader.has(key)) throw;
    reader.fail_at(key, error.what());
  }
}

std::uint64_t integer_at(const TableReader& reader, const toml::table& table, std::string_view key,
                         std::uint64_t most) {
  const toml::node* node = table.get(key);
  const auto* integer = node != nullptr ? node->as_integer() : nullptr;
  if (integer == nullptr || integer->get() < 0 || static_cast<std::uint64_t>(integer->get()) > most) {
    reader.fail_at(key, fmt::format("expected an integer from 0 to {}", most));
  }
  return static_cast<std::uint64_t>(integer->get());
}

std::vector<std::string> texts_at(const TableReader& reader, const toml::table& table, std::string_view key) {
  std::vector<std::string> out;
  if (!reader.has(key)) return out;
  if (const auto* array = table.get_as<toml::array>(key); array != nullptr && array->empty()) return out;
  for (auto& item : reader.texts(key)) out.push_back(std::move(item.text));
  return out;
}

/// The JSON that a TOML value is, for what both forms of a file read alike.
nlohmann::json json_of(const toml::node& node, std::string_view origin) {
  using Json = nlohmann::json;
  if (const auto* table = node.as_table()) {
    Json out = Json::object();
    for (const auto& [key, member] : *table) out[std::string(key.str())] = json_of(member, origin);
    return out;
  }
  if (const auto* array = node.as_array()) {
    Json out = Json::array();
    for (const toml::node& item : *array) out.push_back(json_of(item, origin));
    return out;
  }
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) {
    return integer->get() < 0 ? Json(integer->get()) : Json(static_cast<std::uint64_t>(integer->get()));
  }
  throw Error(fmt::format("{}:{}: recorded: neither a text nor an integer", origin, line_of(node)));
}

class TextSource : public vectors::Source {
 public:
  TextSource(std::string_view text, std::string of) {
    name = std::move(of);
    origin_ = shown(name);
    const toml::table root = toml_reader::parse(text, origin_, max_vector_text);
    const TableReader reader(root, origin_, "the vector file");
    reader.require_known({"schema", "detail", "tool", "engine", "image", "routine", "decoder", "witness", "environment",
                          "values", "packed_size", "fields", "words", "recorded", "notes", "vector",
                          "known_difference"});
    read_header(reader, root);
    has_known_differences = reader.has("known_difference");
    for (const toml::table* table : reader.tables("vector")) add(*table);
    header.count = lines_.size();
    if (const std::string flaw = vectors::header_flaw(header); !flaw.empty()) {
      throw Error(fmt::format("{}:1: the vector file contradicts itself: {}", origin_, flaw));
    }
    vectors::TrailerSeal contents({});
    VectorBlock block;
    for (std::size_t index = 0; index < vectors::blocks_of(header.count); ++index) {
      read(block, index);
      contents.add(block.digest, {});
    }
    digest = to_hex(contents.content());
  }

  [[nodiscard]] std::string place(std::size_t index) const override {
    const std::size_t first = index * vector_block_values;
    const std::size_t last = std::min(first + vector_block_values, lines_.size()) - 1;
    return fmt::format("{}:{}: vectors down to line {}", origin_, lines_[first], lines_[last]);
  }

  void read(VectorBlock& out, std::size_t index) const override {
    const std::size_t first = index * vector_block_values;
    const std::size_t count = std::min(vector_block_values, lines_.size() - first);
    out.first = first;
    const auto packed = std::span(packed_).subspan(first * header.packed_size, count * header.packed_size);
    const auto outcomes = std::span(outcomes_).subspan(first, count);
    const auto words = std::span(words_).subspan(first * header.word_count, count * header.word_count);
    out.packed.assign(packed.begin(), packed.end());
    out.outcomes.assign(outcomes.begin(), outcomes.end());
    out.words.assign(words.begin(), words.end());
    out.groups.clear();
    out.digest = vector_digest(packed, outcomes, words);
  }

 private:
  // The table under a key; an empty one when the key is missing.
  const toml::table& table_at(const TableReader& reader, const toml::table& root, std::string_view key) const {
    static const toml::table empty;
    if (!reader.has(key)) return empty;
    const toml::table* table = root.get_as<toml::table>(key);
    if (table == nullptr) reader.fail_at(key, "expected a table");
    return *table;
  }

  void read_header(const TableReader& reader, const toml::table& root) {
    if (reader.text("schema") != vectors::schema) {
      reader.fail_at("schema", fmt::format("expected '{}'", vectors::schema));
    }
    if (reader.has("detail") && reader.text("detail") != to_string(VectorDetail::words)) {
      reader.fail_at("detail", "the text form has words only");
    }
    header.decoder = reader.text("decoder");
    header.witness = reader.text("witness");
    header.packed_size = static_cast<std::size_t>(integer_at(reader, root, "packed_size", max_vector_packed_size));
    if (header.packed_size == 0) reader.fail_at("packed_size", "expected at least 1");
    header.notes = texts_at(reader, root, "notes");
    read_engine(reader, root);
    read_image(reader, root);
    read_routine(reader, root);
    read_environment(reader, root);
    read_fields(reader);
    read_recorded(reader, root);

    const toml::table& values = table_at(reader, root, "values");
    const TableReader values_reader(values, origin_, "[values]");
    values_reader.require_known({"sources", "shard"});
    header.sources = texts_at(values_reader, values, "sources");
    header.shard = values_reader.optional_text("shard").value_or("");
    if (!header.shard.empty())
      parsed(values_reader, "shard", [](const std::string& text) { return parse_shard(text); });

    const toml::table& words = table_at(reader, root, "words");
    if (!reader.has("words")) static_cast<void>(reader.text("words"));  // says that it is missing
    const TableReader words_reader(words, origin_, "[words]");
    words_reader.require_known({"kind", "names"});
    header.word_kind = parsed(words_reader, "kind", vectors::parse_word_kind);
    for (auto& item : words_reader.texts("names")) header.word_names.push_back(std::move(item.text));
    header.word_count = header.word_names.size();
    if (header.word_count > max_vector_words) {
      words_reader.fail_at("names",
                           fmt::format("{} words, at most {} are allowed", header.word_count, max_vector_words));
    }
  }

  void read_engine(const TableReader& reader, const toml::table& root) {
    const TableReader tool(table_at(reader, root, "tool"), origin_, "[tool]");
    tool.require_known({"version"});
    header.tool_version = tool.optional_text("version").value_or("");
    const TableReader engine(table_at(reader, root, "engine"), origin_, "[engine]");
    engine.require_known({"unicorn", "capstone", "lief", "cpu", "self_test", "quirks"});
    header.engine.unicorn = engine.optional_text("unicorn").value_or("");
    header.engine.capstone = engine.optional_text("capstone").value_or("");
    header.engine.lief = engine.optional_text("lief").value_or("");
    header.engine.cpu = engine.optional_text("cpu").value_or("");
    if (engine.has("self_test") || engine.has("quirks")) read_self_test(engine, table_at(reader, root, "engine"));
  }

  void read_self_test(const TableReader& engine, const toml::table& root) {
    const toml::table& table = table_at(engine, root, "self_test");
    const TableReader counts(table, origin_, "[engine.self_test]");
    counts.require_known({"vectors", "as_hardware"});
    constexpr std::uint64_t most = report_places::most_self_test_vectors;
    SelfTestSummary test = {integer_at(counts, table, "vectors", most), integer_at(counts, table, "as_hardware", most),
                            texts_at(engine, root, "quirks")};
    if (const std::string flaw = report_places::self_test_flaw(test); !flaw.empty()) {
      engine.fail_at("self_test", flaw);
    }
    header.engine.self_test = std::move(test);
  }

  void read_image(const TableReader& reader, const toml::table& root) {
    const toml::table& table = table_at(reader, root, "image");
    const TableReader image(table, origin_, "[image]");
    image.require_known({"name", "sha256", "format", "stand_in"});
    header.image_name = image.optional_text("name").value_or("");
    header.image_sha256 = image.optional_text("sha256").value_or("");
    if (image.has("format")) header.image_format = parsed(image, "format", vectors::parse_image_format);
    if (!image.has("stand_in")) return;
    const auto* stand_in = table.get_as<bool>("stand_in");
    if (stand_in == nullptr) image.fail_at("stand_in", "expected true or false");
    header.stand_in = stand_in->get();
  }

  void read_routine(const TableReader& reader, const toml::table& root) {
    const TableReader routine(table_at(reader, root, "routine"), origin_, "[routine]");
    routine.require_known({"name", "address", "signature", "sha256"});
    header.routine = routine.text("name");
    if (routine.has("address")) header.address = parsed(routine, "address", vectors::parse_address);
    header.signature = routine.optional_text("signature").value_or("");
    header.routine_sha256 = routine.optional_text("sha256").value_or("");
  }

  void read_environment(const TableReader& reader, const toml::table& root) {
    const TableReader environment(table_at(reader, root, "environment"), origin_, "[environment]");
    environment.require_known({"fpcw", "mxcsr"});
    const auto number = [&](std::string_view key, auto& value) {
      using Number = std::remove_reference_t<decltype(value)>;
      if (!environment.has(key)) return;
      value = static_cast<Number>(parsed(environment, key, [](const std::string& text) {
        return vectors::parse_hex_number(text, std::numeric_limits<Number>::max());
      }));
    };
    number("fpcw", header.environment.fpcw);
    number("mxcsr", header.environment.mxcsr);
  }

  void read_fields(const TableReader& reader) {
    if (!reader.has("fields")) return;
    for (const toml::table* table : reader.tables("fields")) {
      const TableReader field(*table, origin_, fmt::format("field {}", header.fields.size() + 1));
      field.require_known({"name", "offset", "width"});
      constexpr std::uint64_t most = 8 * max_vector_packed_size;
      header.fields.push_back({field.text("name"), static_cast<unsigned>(integer_at(field, *table, "offset", most)),
                               static_cast<unsigned>(integer_at(field, *table, "width", most))});
    }
  }

  void read_recorded(const TableReader& reader, const toml::table& root) {
    if (!reader.has("recorded")) return;
    const toml::node& node = *root.get("recorded");
    nlohmann::json document = {{"recorded", json_of(node, origin_)}};
    nlohmann::json& recorded = document["recorded"];
    // TOML has no null: an unknown address is left out.
    if (recorded.is_object() && recorded.contains("failures") && recorded["failures"].is_array()) {
      for (nlohmann::json& failure : recorded["failures"]) {
        if (failure.is_object() && !failure.contains("address")) failure["address"] = nullptr;
      }
    }
    const std::string place = fmt::format("{}:{}", origin_, line_of(node));
    header.recorded = vectors::read_recorded(JsonPlace(document, place)["recorded"], header.packed_size);
  }

  void add(const toml::table& table) {
    const TableReader vector(table, origin_, fmt::format("vector {}", lines_.size() + 1));
    vector.require_known({"packed", "words", "outcome"});
    const auto packed = parsed(vector, "packed", [](const std::string& text) { return parse_hex(text); });
    if (packed.size() != header.packed_size) {
      vector.fail_at("packed", fmt::format("{} bytes instead of {}", packed.size(), header.packed_size));
    }
    const auto before = std::span<const std::byte>(packed_).last(lines_.empty() ? 0 : header.packed_size);
    if (!before.empty() && !is_less(before, packed)) {
      vector.fail_at("packed", fmt::format("values must rise as little-endian integers, each once; {} is above it",
                                           to_hex(before)));
    }
    const OutcomeKind outcome = vector.has("outcome") ? outcome_of(vector) : OutcomeKind::returned;
    if (outcome == OutcomeKind::returned) {
      add_words(vector);
    } else {
      if (vector.has("words")) vector.fail_at("words", "a value that did not return has none");
      words_.insert(words_.end(), header.word_count, 0);
    }
    packed_.insert(packed_.end(), packed.begin(), packed.end());
    outcomes_.push_back(outcome);
    lines_.push_back(line_of(table));
  }

  static OutcomeKind outcome_of(const TableReader& vector) {
    const std::string text = vector.text("outcome");
    for (const OutcomeKind kind : failures) {
      if (text == to_string(kind)) return kind;
    }
    vector.fail_at("outcome",
                   fmt::format("'{}' is neither faulted, out_of_budget, unwritten nor disputed", shown(text)));
  }

  void add_words(const TableReader& vector) {
    const auto items = vector.texts("words");
    if (items.size() != header.word_count) {
      vector.fail_at("words", fmt::format("{} words instead of {}", items.size(), header.word_count));
    }
    for (const auto& [text, line] : items) {
      if (text.size() != word_digits || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
        vector.fail(line, fmt::format("words: '{}' is not {} lowercase hex digits", shown(text), word_digits));
      }
      words_.push_back(
          static_cast<std::uint32_t>(vectors::parse_hex_number(text, std::numeric_limits<std::uint32_t>::max())));
    }
  }

  std::string origin_;  // the name, as messages show it
  std::vector<std::byte> packed_;
  std::vector<OutcomeKind> outcomes_;
  std::vector<std::uint32_t> words_;
  std::vector<std::size_t> lines_;  // of each vector
};

}  // namespace

std::shared_ptr<const vectors::Source> vectors::open_text(std::string_view text, std::string name) {
  return std::make_shared<TextSource>(text, std::move(name));
}

}  // namespace bitwitness
