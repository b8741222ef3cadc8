#include "harness/values.hpp"

#include "harness/distinct_values.hpp"
#include "harness/error.hpp"
#include "harness/sha256.hpp"
#include "harness/signature.hpp"
#include "harness/value_file.hpp"
#include "harness/value_generators.hpp"
#include "harness/value_rows.hpp"
#include "harness/value_sorting.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::uint64_t default_seed = 1;

// What a witness that emulates runs on one thread; for estimates only.
constexpr double values_a_second = 500'000;

enum class SourceKind { hex, file, special, fields, random, corpus, all };

struct Source {
  SourceKind kind = SourceKind::special;
  std::string text;      // with what was left open filled in
  std::string argument;  // hex digits or path
  std::uint64_t count = 0;
  std::uint64_t seed = 0;
};

// Texts that come from outside stay on one line of a message, at a bearable length.
std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 80;
  std::string shown(text.substr(0, longest));
  std::ranges::replace_if(
      shown, [](char character) { return static_cast<unsigned char>(character) < ' '; }, '?');
  return text.size() <= longest ? shown : shown + "...";
}

// Reads decimal digits and nothing else.
bool read_number(std::uint64_t& number, std::string_view text) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && !text.empty();
}

Source parse_random(std::string_view text, std::string_view argument) {
  Source source{SourceKind::random, {}, {}, 0, default_seed};
  const std::size_t colon = argument.find(':');
  if (!read_number(source.count, argument.substr(0, colon))) {
    throw Error(
        fmt::format("{}: random takes a number of values, as in random:1000000 or random:1000000:1", excerpt(text)));
  }
  if (colon != argument.npos && !read_number(source.seed, argument.substr(colon + 1))) {
    throw Error(fmt::format("{}: the seed is a decimal number below 2^64", excerpt(text)));
  }
  if (source.count > max_listed) {
    throw Error(fmt::format("{}: at most {} values are held in memory", excerpt(text), max_listed));
  }
  source.text = fmt::format("random:{}:{}", source.count, source.seed);
  return source;
}

Source parse_source(std::string_view text) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view argument = colon == text.npos ? std::string_view{} : text.substr(colon + 1);
  if (colon == text.npos) {
    for (const auto& [kind, word] : {std::pair{SourceKind::special, "special"}, std::pair{SourceKind::fields, "fields"},
                                     std::pair{SourceKind::all, "all"}}) {
      if (name == word) return {kind, word, {}, 0, 0};
    }
  } else if (name == "hex") {
    return {SourceKind::hex, std::string(text), std::string(argument), 0, 0};
  } else if (name == "file") {
    if (argument.empty()) throw Error("file: needs a path, as in file:values.txt");
    return {SourceKind::file, std::string(text), std::string(argument), 0, 0};
  } else if (name == "random") {
    return parse_random(text, argument);
  } else if (name == "corpus") {
    if (argument.empty()) throw Error("corpus: needs a path, as in corpus:animations");
    return {SourceKind::corpus, std::string(text), std::string(argument), 0, 0};
  }
  throw Error(
      fmt::format("{}: not a source of values; there are hex:BYTES, file:PATH, corpus:PATH, special, fields, "
                  "random:N[:SEED], all",
                  text.empty() ? "(empty)" : excerpt(text)));
}

std::string duration(double seconds) {
  constexpr double day = 86'400;
  constexpr double year = 365.25 * day;
  if (seconds >= 1e6 * year) return "more than a million years";
  const auto in = [&](double unit, std::string_view name) {
    return fmt::format("about {:.0f} {}", seconds / unit, name);
  };
  if (seconds >= 2 * year) return in(year, "years");
  if (seconds >= 2 * day) return in(day, "days");
  return in(3600, "hours");
}

std::uint64_t count_of_all(std::size_t packed_size) {
  const std::size_t bits = 8 * packed_size;
  if (bits < 64 && std::uint64_t{1} << bits <= max_enumerated) return std::uint64_t{1} << bits;
  double seconds = 1 / values_a_second;
  for (std::size_t bit = 0; bit < bits && seconds < std::numeric_limits<double>::max() / 2; ++bit) seconds *= 2;
  throw Error(fmt::format("all: 2^{} values would take {} at half a million a second; at most {} are enumerated", bits,
                          duration(seconds), max_enumerated));
}

void append_hex(ValueRows& rows, const Source& source) {
  std::array<std::byte, max_packed_size> value{};
  std::size_t bytes = 0;
  try {
    bytes = read_hex(value, source.argument);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", excerpt(source.text), error.what()));
  }
  if (bytes != rows.packed_size()) {
    throw Error(fmt::format("{} has {} bytes; the routine takes {}", excerpt(source.text), bytes, rows.packed_size()));
  }
  rows.append_value(std::span(value).first(bytes));
}

ValueRows collect(std::size_t packed_size, const std::vector<BitField>& fields, std::span<const Source> sources) {
  ValueRows rows(packed_size);
  const SpecialPlan special = plan_special(fields);
  const SweepPlan sweeps = plan_sweeps(fields);
  std::uint64_t known = 0;
  for (const Source& source : sources) {
    if (source.kind == SourceKind::special) known += special.count;
    if (source.kind == SourceKind::fields) known += sweeps.at_most;
    if (source.kind == SourceKind::random) known += source.count;
  }
  rows.reserve(known);
  for (const Source& source : sources) {
    switch (source.kind) {
      case SourceKind::hex:
        append_hex(rows, source);
        break;
      case SourceKind::file:
        append_file(rows, source.argument);
        break;
      case SourceKind::special:
        append_special(rows, special);
        break;
      case SourceKind::fields:
        append_sweeps(rows, sweeps);
        break;
      case SourceKind::random:
        append_random(rows, fields, source.count, source.seed);
        break;
      case SourceKind::corpus:
      case SourceKind::all:
        break;
    }
  }
  return rows;
}

// Reads every corpus, adds the other sources' rows, and returns what is distinct.
PackedValues read_corpora(std::vector<std::string>& notes, ValueRows rows, std::span<const Source> sources,
                          const ValueOptions& options) {
  if (!options.corpus) throw Error("corpus: there is no reader of files for this decoder");
  MemoryBudget budget(options.memory);
  DistinctValues values(rows.packed_size(), budget);
  for (const Source& source : sources) {
    if (source.kind != SourceKind::corpus) continue;
    for (std::string& note : options.corpus(values, source.argument)) notes.push_back(std::move(note));
  }
  DistinctValues::Feeder feeder(values);
  feeder.add(std::move(rows));
  feeder.close();
  return values.finish();
}

// Hashes rows as packed values.
std::string sha256_of(ValueRows& rows) {
  Sha256 hash;
  std::vector<std::byte> packed;
  for (std::size_t first = 0; first < rows.size(); first += values_per_chunk) {
    const std::size_t count = std::min(values_per_chunk, rows.size() - first);
    packed.resize(count * rows.packed_size());
    for (std::size_t row = 0; row < count; ++row) {
      std::memcpy(packed.data() + row * rows.packed_size(), rows.words().data() + (first + row) * rows.stride(),
                  rows.packed_size());
    }
    hash.update(packed);
  }
  return hash.hex();
}

/// More processes than anybody starts for one run.
constexpr std::uint64_t max_shards = 65'536;

void require_shard(Shard shard) {
  if (shard.index == 0 || shard.index > shard.count) {
    throw Error(fmt::format("shard {}/{}: the first number is from 1 to the second", shard.index, shard.count));
  }
  if (shard.count > max_shards) {
    throw Error(fmt::format("shard {}/{}: at most {} shards are possible", shard.index, shard.count, max_shards));
  }
}

}  // namespace

struct ValueSet::Impl {
  std::size_t packed_size = 0;
  std::uint64_t count = 0;
  Shard shard;
  std::uint64_t whole_size = 0;
  std::uint64_t whole_index = 0;
  std::string whole_sha256;
  std::vector<std::string> sources;
  std::vector<std::string> notes;
  std::uint64_t first = 0;                    // of the shard: of `all` the smallest value, else the first one's index
  std::shared_ptr<const std::byte[]> listed;  // null for `all`

  // Sets what is known of the shard's place; returns its range.
  std::pair<std::uint64_t, std::uint64_t> take_part(Shard wanted, std::uint64_t total) {
    const auto range = shard_range(wanted, total);
    shard = wanted;
    whole_size = total;
    whole_index = range.first;
    count = range.second - range.first;
    return range;
  }
};

ValueSet::ValueSet(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ValueSet::ValueSet(ValueSet&&) noexcept = default;
ValueSet& ValueSet::operator=(ValueSet&&) noexcept = default;
ValueSet::~ValueSet() = default;

ValueSet ValueSet::build(std::size_t packed_size, std::span<const BitField> fields,
                         std::span<const std::string> sources, const ValueOptions& options) {
  if (packed_size == 0 || packed_size > max_packed_size) {
    throw Error(fmt::format("packed values of {} bytes; possible are 1 to {}", packed_size, max_packed_size));
  }
  require_shard(options.shard);
  std::vector<Source> parsed;
  for (const std::string& source : sources) parsed.push_back(parse_source(source));
  if (parsed.empty()) parsed = {parse_source("special"), parse_source("fields"), parse_source("random:1000000")};
  const auto has = [&](SourceKind kind) { return std::ranges::find(parsed, kind, &Source::kind) != parsed.end(); };

  auto impl = std::make_unique<Impl>();
  impl->packed_size = packed_size;
  const std::vector<BitField> usable = checked_fields(packed_size, fields);
  if (has(SourceKind::all)) {
    const auto [begin, end] = impl->take_part(options.shard, count_of_all(packed_size));
    impl->first = begin;
    impl->sources = {"all"};
    return ValueSet(std::move(impl));
  }

  try {
    ValueRows rows = collect(packed_size, usable, parsed);
    if (has(SourceKind::corpus)) {
      const PackedValues all = read_corpora(impl->notes, std::move(rows), parsed, options);
      const auto [begin, end] = impl->take_part(options.shard, all.count);
      if (options.shard.count > 1) {
        impl->whole_sha256 = sha256_hex({all.bytes.get(), static_cast<std::size_t>(all.count) * packed_size});
      }
      impl->first = begin;
      impl->listed = all.bytes;
    } else {
      sort_distinct(rows);
      const auto [begin, end] = impl->take_part(options.shard, rows.size());
      if (options.shard.count > 1) impl->whole_sha256 = sha256_of(rows);
      impl->listed = rows.release_packed(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
    }
  } catch (const std::bad_alloc&) {
    throw Error("not enough memory for the values asked for");
  }
  for (Source& source : parsed) impl->sources.push_back(std::move(source.text));
  return ValueSet(std::move(impl));
}

std::size_t ValueSet::packed_size() const {
  return impl_->packed_size;
}

std::uint64_t ValueSet::size() const {
  return impl_->count;
}

Shard ValueSet::shard() const {
  return impl_->shard;
}

std::uint64_t ValueSet::whole_size() const {
  return impl_->whole_size;
}

std::uint64_t ValueSet::whole_index() const {
  return impl_->whole_index;
}

const std::string& ValueSet::whole_sha256() const {
  return impl_->whole_sha256;
}

void ValueSet::read(std::uint64_t first, std::span<std::byte> out) const {
  const std::size_t bytes = impl_->packed_size;
  const std::size_t count = out.size() / bytes;
  if (out.size() % bytes != 0 || first > impl_->count || count > impl_->count - first) {
    throw Error(fmt::format("{} bytes from value {} asked of a set of {} values of {} bytes", out.size(), first,
                            impl_->count, bytes));
  }
  if (impl_->listed) {
    const auto at = static_cast<std::size_t>(impl_->first + first);
    if (count != 0) std::memcpy(out.data(), impl_->listed.get() + at * bytes, out.size());
    return;
  }
  std::uint64_t value = impl_->first + first;
  for (std::size_t at = 0; at < out.size(); at += bytes, ++value) std::memcpy(out.data() + at, &value, bytes);
}

std::span<const std::string> ValueSet::sources() const {
  return impl_->sources;
}

std::span<const std::string> ValueSet::notes() const {
  return impl_->notes;
}

std::pair<std::uint64_t, std::uint64_t> shard_range(Shard shard, std::uint64_t total) {
  const std::uint64_t chunks = total / values_per_chunk + (total % values_per_chunk != 0 ? 1 : 0);
  const auto begin = [&](std::uint64_t index) {
    const std::uint64_t chunk = index * (chunks / shard.count) + std::min(index, chunks % shard.count);
    return std::min(chunk * values_per_chunk, total);
  };
  return {begin(shard.index - 1), begin(shard.index)};
}

Shard parse_shard(std::string_view text) {
  if (text.empty()) throw Error("shard: nothing is given; expected I/N, two decimal numbers as in 1/4");
  const std::size_t slash = text.find('/');
  Shard shard;
  if (slash == text.npos || !read_number(shard.index, text.substr(0, slash)) ||
      !read_number(shard.count, text.substr(slash + 1))) {
    throw Error(fmt::format("shard {}: expected I/N, two decimal numbers as in 1/4", excerpt(text)));
  }
  require_shard(shard);
  return shard;
}

bool is_less(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve(3 * bytes.size());
  for (const std::byte byte : bytes) {
    fmt::format_to(std::back_inserter(text), "{}{:02x}", text.empty() ? "" : " ", std::to_integer<unsigned>(byte));
  }
  return text;
}

std::vector<std::byte> parse_hex(std::string_view text) {
  std::vector<std::byte> bytes((text.size() + 1) / 2);
  try {
    bytes.resize(read_hex(bytes, text));
  } catch (const Error& error) {
    throw Error(fmt::format("\"{}\": {}", excerpt(text), error.what()));
  }
  return bytes;
}

}  // namespace bitwitness
