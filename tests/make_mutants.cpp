// make_mutants HEADER OUTPUT: writes a source file with copies of decoders/packed_quat48.hpp, each with one change: a
// bit of a constant, a mask, a shift, a lane, an operation, the order of the subtractions. A change whose place is not
// in the header any more ends it, so that no change is lost when the decoder is rewritten.

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

struct Change {
  std::string what;
  std::string text;
};

void replace_once(std::string& text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos || text.find(from, at + 1) != std::string::npos) {
    throw std::runtime_error("not there exactly once: " + std::string(from));
  }
  text.replace(at, from.size(), to);
}

class Mutator {
 public:
  explicit Mutator(std::string original) : original_(std::move(original)) {
    changes_.push_back({"nothing", original_});
  }

  /// `context` holds `part` once; each of `others` takes its place.
  void swap(std::string_view context, std::string_view part, const std::vector<std::string>& others) {
    for (const std::string& other : others) {
      std::string changed(context);
      replace_once(changed, part, other);
      Change change{std::string(context) + ": " + std::string(part) + " -> " + other, original_};
      replace_once(change.text, context, changed);
      changes_.push_back(std::move(change));
    }
  }

  void flip_bits(std::string_view context, std::string_view constant, std::uint32_t value, unsigned bits) {
    for (unsigned bit = 0; bit < bits; ++bit) {
      swap(context, constant, {std::to_string(value ^ std::uint32_t{1} << bit) + "u"});
    }
  }

  [[nodiscard]] const std::vector<Change>& changes() const { return changes_; }

 private:
  std::string original_;
  std::vector<Change> changes_;
};

void change_constants(Mutator& mutator) {
  mutator.flip_bits("bit_cast<float>(0x3835065Du)", "0x3835065Du", 0x3835065D, 32);
  mutator.flip_bits("bit_cast<float>(0x3F3504F3u)", "0x3F3504F3u", 0x3F3504F3, 32);
  for (const char* code : {"first & 0x7FFF", "second & 0x7FFF", "load_u16(packed, 4) & 0x7FFF"}) {
    mutator.flip_bits(code, "0x7FFF", 0x7FFF, 16);
  }
  constexpr std::uint64_t one = 0x3FF0'0000'0000'0000;
  for (unsigned bit = 0; bit < 64; ++bit) {
    mutator.swap("((1.0 - wide_a", "1.0",
                 {"std::bit_cast<double>(std::uint64_t{" + std::to_string(one ^ std::uint64_t{1} << bit) + "u})"});
  }
  mutator.swap("radicand > 0.0 ?", "0.0", {"1.0", "-1.0", "0.5"});
  mutator.swap("? radicand : 0.0", "0.0", {"1.0", "-0.0", "0.5"});
}

void change_lanes(Mutator& mutator) {
  mutator.swap("first >> 15)", "15", {"14", "13", "16"});
  mutator.swap("second >> 15)", "15", {"14", "13", "16"});
  mutator.swap("<< 1;", "1", {"0", "2", "3"});
  mutator.swap("first >> 15) |", "|", {"&", "^", "+"});
  mutator.swap("low = lane & 1", "1", {"0", "2", "3"});
  mutator.swap("high = lane >> 1", "1", {"0", "2"});
  mutator.swap("words[1 - (low | high)]", "1", {"0", "2", "3"});
  mutator.swap("words[1 - (low | high)]", "|", {"&", "^"});
  mutator.swap("words[1 - (low | high)]", "-", {"+"});
  mutator.swap("words[2 - high]", "2", {"0", "1", "3"});
  mutator.swap("words[2 - high]", "high", {"low"});
  mutator.swap("words[2 - high]", "-", {"+"});
  mutator.swap("words[3 - (low & high)]", "3", {"0", "1", "2"});
  mutator.swap("words[3 - (low & high)]", "&", {"|", "^"});
  mutator.swap("words[3 - (low & high)]", "-", {"+"});
  mutator.swap("words[lane]", "lane", {"low", "high", "3 - lane", "lane ^ 1", "lane ^ 2", "lane + 1"});
  mutator.swap("omitted_lane(first, second)", "first, second", {"second, first", "first, first", "second, second"});
  for (const char* value : {"<std::uint32_t>(a);", "<std::uint32_t>(b);", "<std::uint32_t>(c);"}) {
    const std::string name(1, value[std::string_view(value).size() - 3]);
    for (const char* other : {"a", "b", "c", "-a", "-b", "-c"}) {
      if (name != other) mutator.swap(value, "(" + name + ")", {"(" + std::string(other) + ")"});
    }
  }
}

void change_arithmetic(Mutator& mutator) {
  mutator.swap("load_u16(packed, 0)", "0", {"1", "2", "4"});
  mutator.swap("load_u16(packed, 2)", "2", {"0", "1", "3", "4"});
  mutator.swap("load_u16(packed, 4)", "4", {"0", "2", "3"});
  mutator.swap("component(first & 0x7FFF)", "first", {"second"});
  mutator.swap("component(second & 0x7FFF)", "second", {"first"});
  for (const char* code : {"component(first &", "component(second &", "component(load_u16(packed, 4) &"}) {
    mutator.swap(code, "&", {"|", "^"});
  }
  mutator.swap(
      "static_cast<float>(code * scale) - bias", "static_cast<float>(code * scale) - bias",
      {"static_cast<float>(code * scale) + bias", "bias - static_cast<float>(code * scale)",
       "static_cast<float>(code * scale - bias)", "static_cast<float>(code) * static_cast<float>(scale) - bias",
       "static_cast<float>(code / scale) - bias", "static_cast<float>((code + 1) * scale) - bias",
       "static_cast<float>((code - 1) * scale) - bias"});
  const std::string sum = "((1.0 - wide_a * wide_a) - wide_b * wide_b) - wide_c * wide_c";
  for (const char* part : {"(1.0 - wide_a * wide_a)", ") - wide_b", ") - wide_c"}) {
    std::string added(part);
    added.replace(added.find('-'), 1, "+");
    mutator.swap(sum, part, {added});
  }
  for (const char* part : {"wide_a * wide_a", "wide_b * wide_b", "wide_c * wide_c"}) {
    const std::string name(part, 6);
    for (const char* other : {"wide_a", "wide_b", "wide_c"}) {
      if (name != other) mutator.swap(sum, part, {name + " * " + other, std::string(other) + " * " + other});
    }
    mutator.swap(sum, part, {name + " + " + name, name, "0.0"});
  }
  // Every component is a multiple of 2^-25 and below 1, so each square and difference is exact: orders do not matter.
  for (const char* order : {"abc", "acb", "bac", "bca", "cab", "cba"}) {
    std::string text = "((1.0 - wide_0 * wide_0) - wide_1 * wide_1) - wide_2 * wide_2";
    for (int place = 0; place < 3; ++place) {
      for (std::size_t at; (at = text.find("wide_" + std::to_string(place))) != std::string::npos;) {
        text[at + 5] = order[place];
      }
    }
    if (text != sum) mutator.swap(sum, sum, {text});
  }
  mutator.swap(sum, sum,
               {"1.0 - (wide_a * wide_a + wide_b * wide_b + wide_c * wide_c)",
                "static_cast<double>(((1.0f - a * a) - b * b) - c * c)"});
  mutator.swap("radicand > 0.0", ">", {"<", ">=", "<=", "!="});
  mutator.swap(
      "std::sqrt(radicand > 0.0 ? radicand : 0.0)", "std::sqrt(radicand > 0.0 ? radicand : 0.0)",
      {"std::sqrt(radicand)", "(radicand > 0.0 ? radicand : 0.0)", "-std::sqrt(radicand > 0.0 ? radicand : 0.0)",
       "std::sqrt(static_cast<float>(radicand > 0.0 ? radicand : 0.0))",
       "std::sqrt(radicand < 0.0 ? -radicand : radicand)"});
  mutator.swap("radicand(a, b, c))", "a, b, c", {"a, b, a", "a, a, c", "b, b, c", "a, c, b"});
}

std::string read(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty()) throw std::runtime_error(std::string("cannot read ") + path);
  return text;
}

/// The namespace of the six-byte form, without its frame.
std::string decoder_in(const std::string& header) {
  const std::string_view begin = "namespace bitwitness::decoders::packed_quat48 {";
  const std::size_t from = header.find(begin);
  const std::size_t to = header.find("}  // namespace bitwitness::decoders::packed_quat48\n");
  if (from == std::string::npos || to == std::string::npos) throw std::runtime_error("no namespace packed_quat48");
  std::string text = header.substr(from + begin.size(), to - from - begin.size());
  for (const char* name : {"place(std::span<std::uint32_t> words", "packed, std::span<std::uint32_t> words"}) {
    std::string wrapped(name);
    replace_once(wrapped, "std::span<std::uint32_t>", "MutantWords");
    replace_once(text, name, wrapped);
  }
  return text;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

void write(const char* path, const std::vector<Change>& changes) {
  std::ofstream file(path, std::ios::binary);
  file << "#include \"decoders/packed_quat48.hpp\"\n#include \"tests/mutants.hpp\"\n\nnamespace bitwitness::tests {\n"
          "using decoders::Field;\nusing decoders::load_u16;\n";
  for (std::size_t i = 0; i < changes.size(); ++i) {
    file << "namespace mutant_" << i << " {" << changes[i].text << "}\n";
  }
  file << "constexpr Mutant all[] = {\n";
  for (std::size_t i = 0; i < changes.size(); ++i) {
    file << "    {" << quoted(changes[i].what) << ", mutant_" << i << "::decode},\n";
  }
  file << "};\nstd::span<const Mutant> mutants() { return all; }\n}\n";
  if (!file.flush()) throw std::runtime_error(std::string("cannot write ") + path);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::runtime_error("usage: make_mutants HEADER OUTPUT");
    Mutator mutator(decoder_in(read(argv[1])));
    change_constants(mutator);
    change_lanes(mutator);
    change_arithmetic(mutator);
    write(argv[2], mutator.changes());
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "make_mutants: " << error.what() << '\n';
    return 1;
  }
}
