#pragma once
// What the tests of the machine share: values, words, and one routine of a test library with its machine.
#include "harness/image.hpp"
#include "harness/machine.hpp"
#include "harness/value_generators.hpp"
#include "tests/catch.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

// The same tests are built once for each witness.
#ifndef BITWITNESS_TRIED_MACHINE
#define BITWITNESS_TRIED_MACHINE make_unicorn_machine
#define BITWITNESS_TRIES_HOST false
#endif

namespace bitwitness::tests {

/// Whether what is tried runs on this computer's own processor: it counts no instructions, sees what has changed and
/// not what was stored, and executes what the emulator refuses.
inline constexpr bool tries_host = BITWITNESS_TRIES_HOST;

/// What each witness says where they differ by nature.
template <typename Value>
constexpr Value on_each(Value emulator, Value host) {
  return tries_host ? host : emulator;
}

/// The reason of a call that does not return. A budget below a million instructions is 20 ms on the host.
inline std::string over_budget(std::uint64_t budget) {
  if (!tries_host) return fmt::format("has executed {} instructions and not returned", budget);
  return fmt::format("has run for {} ms of processor time and not returned",
                     std::max<std::uint64_t>(budget / 50'000, 20));
}

using Bytes = std::vector<std::byte>;
using Words = std::vector<std::uint32_t>;

template <typename Value>
Value read_as(const std::byte* from) {
  Value value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline Bytes bytes_of_u32(std::initializer_list<std::uint32_t> words) {
  Bytes bytes;
  for (const std::uint32_t word : words) {
    for (unsigned shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(word >> shift));
  }
  return bytes;
}

inline Bytes joined(std::span<const Bytes> values) {
  Bytes all;
  for (const Bytes& value : values) all.insert(all.end(), value.begin(), value.end());
  return all;
}

/// How one value ended: words when it returned, otherwise what is known of it.
struct Ended {
  OutcomeKind kind = OutcomeKind::returned;
  Words words;
  std::uint64_t address = 0;
  std::string instruction;
  std::string reason;
  bool operator==(const Ended&) const = default;
};

inline Ended returned(Words words) {
  return {OutcomeKind::returned, std::move(words), 0, {}, {}};
}

/// Ends as they can be compared: on the host it is chance where in its loop a call is stopped.
inline std::vector<Ended> comparable(std::vector<Ended> ends) {
  for (Ended& ended : ends) {
    if (!tries_host || ended.kind != OutcomeKind::out_of_budget) continue;
    ended.address = 0;
    ended.instruction.clear();
  }
  return ends;
}

inline std::ostream& operator<<(std::ostream& out, const Ended& ended) {
  out << to_string(ended.kind);
  for (const std::uint32_t word : ended.words) out << fmt::format(" {:08x}", word);
  if (!ended.reason.empty()) out << fmt::format(" {:#x}: {}: {}", ended.address, ended.instruction, ended.reason);
  return out;
}

/// Tells whether a text has the form of a pattern, in which `*` stands for any run of characters.
inline bool is_like(std::string_view text, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= text.size(); ++at) {
    if (is_like(text.substr(at), rest)) return true;
  }
  return false;
}

/// Loads one of the libraries that tests/fixtures/README.md describes.
inline Image load_fixture(std::string_view file, const ImageOptions& options = {}) {
  return Image::load(std::filesystem::path(BITWITNESS_FIXTURES_DIR) / file, options);
}

inline Image load_conventions(unsigned bits, const ImageOptions& options = {}) {
  return load_fixture(fmt::format("conventions{}.dll", bits), options);
}

/// A routine with its machine. Every run is checked for what all runs have in common.
class Tried {
 public:
  Tried(const Image& image, const std::string& location, std::string_view signature, const MachineOptions& options = {})
      : routine_{location, image.resolve(location), parse_signature(signature)},
        machine_(BITWITNESS_TRIED_MACHINE(image, routine_, options)) {}

  std::vector<Ended> run(std::span<const Bytes> values, const Environment& environment = {}) {
    Batch batch;
    machine_->run(batch, joined(values), environment);
    return ends(batch, values.size());
  }

  std::vector<Ended> run_alone(std::span<const Bytes> values, const Environment& environment = {}) {
    Batch batch;
    machine_->run_alone(batch, joined(values), environment);
    return ends(batch, values.size());
  }

  Ended run_one(const Bytes& value, const Environment& environment = {}) {
    return run(std::span(&value, 1), environment).at(0);
  }

  /// "8 × leaves 3 values on the x87 stack", in the order of the sentences.
  [[nodiscard]] std::vector<std::string> notes() const {
    std::vector<std::string> all;
    for (const auto& [what, observation] : machine_->observations()) {
      all.push_back(fmt::format("{} × {}", observation.values, what));
    }
    return all;
  }

  [[nodiscard]] const Signature& signature() const { return routine_.signature; }
  [[nodiscard]] Machine& machine() { return *machine_; }

 private:
  std::vector<Ended> ends(const Batch& batch, std::size_t count) const {
    const std::size_t width = routine_.signature.word_count();
    REQUIRE(batch.outcomes.size() == count);
    REQUIRE(batch.words.size() == count * width);
    std::vector<Ended> all(count);
    std::size_t incident = 0;
    for (std::size_t i = 0; i < count; ++i) {
      all[i].kind = batch.outcomes[i];
      if (all[i].kind == OutcomeKind::returned) {
        const auto words = std::span(batch.words).subspan(i * width, width);
        all[i].words.assign(words.begin(), words.end());
        continue;
      }
      REQUIRE(incident < batch.incidents.size());
      const Incident& found = batch.incidents[incident++];
      REQUIRE(found.index == i);
      REQUIRE(found.kind == all[i].kind);
      all[i].address = found.address;
      all[i].instruction = found.instruction;
      all[i].reason = found.reason;
    }
    REQUIRE(incident == batch.incidents.size());
    return all;
  }

  Routine routine_;
  std::unique_ptr<Machine> machine_;
};

/// Values of `size` bytes: the limits of every field a value may have, then random ones.
inline std::vector<Bytes> some_values(std::size_t size, std::size_t random_count, std::uint64_t seed) {
  std::vector<Bytes> values;
  for (const unsigned fill : {0x00U, 0xffU, 0x80U, 0x7fU, 0x01U})
    values.emplace_back(size, static_cast<std::byte>(fill));
  for (const std::size_t at : {std::size_t{0}, size - 1}) {  // the lowest and the highest bit
    values.emplace_back(size, std::byte{0});
    values.back()[at] = at == 0 ? std::byte{1} : std::byte{0x80};
  }
  RandomWords random(seed);
  for (std::size_t i = 0; i < random_count; ++i) {
    Bytes value(size);
    for (std::byte& byte : value) byte = static_cast<std::byte>(random.next());
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace bitwitness::tests

#if BITWITNESS_TRIES_HOST
#include "tests/host_support.hpp"

namespace bitwitness::tests {
inline const RestrictTests needs_host_here(needs_host);
}
#endif
