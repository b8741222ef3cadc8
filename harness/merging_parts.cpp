#include "harness/merging_parts.hpp"

#include "harness/error.hpp"
#include "harness/report_parts.hpp"
#include "harness/vectors/vector_format.hpp"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::merging_parts {

namespace {

/// Missing shards that a message names.
constexpr std::size_t max_named = 5;

Shard shard_of(const ShardFile& file) {
  if (file.shard.empty()) throw Error(fmt::format("{}: is a whole, not a shard (--shard I/N)", file.file));
  try {
    return parse_shard(file.shard);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", file.file, error.what()));
  }
}

std::string missing_text(const std::vector<Shard>& shards, std::uint64_t count) {
  std::string text;
  std::size_t named = 0;
  std::uint64_t expected = 1;
  const auto name_up_to = [&](std::uint64_t last) {
    for (; expected <= last && named < max_named; ++expected, ++named) {
      text += fmt::format("{}{}/{}", named == 0 ? "" : ", ", expected, count);
    }
  };
  for (const Shard& shard : shards) {
    name_up_to(shard.index - 1);
    expected = shard.index + 1;
  }
  if (shards.back().index < count) name_up_to(count);
  const std::uint64_t missing = count - shards.size();
  if (missing > named) text += fmt::format(" and {} more", missing - named);
  return text;
}

/// "243 of 278 as on hardware; quirks: …", or "none".
std::string self_test_text(const Engine& engine) {
  if (!engine.self_test) return "none";
  return fmt::format("{} of {} as on hardware; quirks: {}", engine.self_test->as_hardware, engine.self_test->vectors,
                     fmt::join(engine.self_test->quirks, ", "));
}

}  // namespace

std::vector<std::size_t> order_of(std::span<const ShardFile> files) {
  if (files.empty()) throw Error("no files to merge");
  std::vector<Shard> shards;
  for (const ShardFile& file : files) {
    shards.push_back(shard_of(file));
    if (shards.back().count != shards.front().count) {
      throw Error(fmt::format("{}: is shard {}, {} is {}: of another number", file.file, file.shard, files.front().file,
                              files.front().shard));
    }
  }
  std::vector<std::size_t> order(files.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return shards[i].index; });
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (shards[order[i]].index != shards[order[i - 1]].index) continue;
    const ShardFile& first = files[order[i - 1]];
    const ShardFile& again = files[order[i]];
    throw Error(fmt::format("{}: shard {} is there twice, as file {} ({}) and as file {} of those given", again.file,
                            again.shard, order[i - 1] + 1, first.file, order[i] + 1));
  }
  if (const std::uint64_t count = shards.front().count; files.size() != count) {
    std::vector<Shard> sorted;
    for (const std::size_t i : order) sorted.push_back(shards[i]);
    const std::string others = files.size() == 1 ? "" : fmt::format(" and {} more", files.size() - 1);
    throw Error(fmt::format("{}{}: shard {} is missing", files.front().file, others, missing_text(sorted, count)));
  }
  return order;
}

void require_range(const ShardFile& file, std::uint64_t whole, std::uint64_t first, std::uint64_t count) {
  const auto [begin, end] = shard_range(shard_of(file), whole);
  if (first == begin && count == end - begin) return;
  throw Error(
      fmt::format("{}: shard {} has {} values from number {}; of {} values in all it would have {} from number {}",
                  file.file, file.shard, count, first, whole, end - begin, begin));
}

void require_same(const ShardFile& first, const ShardFile& other, std::string_view what, std::string_view of_first,
                  std::string_view of_other) {
  if (of_first == of_other) return;
  throw Error(fmt::format("{}: {} is '{}', in {} it is '{}'", other.file, what, of_other, first.file, of_first));
}

void require_same(const ShardFile& first, const ShardFile& other, std::string_view what,
                  const std::vector<std::string>& of_first, const std::vector<std::string>& of_other) {
  if (of_first == of_other) return;
  const auto [theirs, ours] = std::ranges::mismatch(of_other, of_first);
  const auto text = [](const auto& at, const auto& all) {
    return at == all.end() ? std::string("none") : "'" + *at + "'";
  };
  throw Error(fmt::format("{}: {} are others than in {}: {} and {}", other.file, what, first.file,
                          text(theirs, of_other), text(ours, of_first)));
}

void require_same(const ShardFile& first, const ShardFile& other, const RunSource& of_first,
                  const RunSource& of_other) {
  const auto same = [&](std::string_view name, std::string_view a, std::string_view b) {
    require_same(first, other, name, a, b);
  };
  same("the image", of_first.image_name, of_other.image_name);
  same("the image's SHA-256", of_first.image_sha256, of_other.image_sha256);
  same("the image's format", to_string(of_first.image_format), to_string(of_other.image_format));
  same("the image being a stand-in", of_first.stand_in ? "true" : "false", of_other.stand_in ? "true" : "false");
  same("the version of bitwitness", of_first.tool_version, of_other.tool_version);
  same("the version of unicorn", of_first.engine.unicorn, of_other.engine.unicorn);
  same("the version of capstone", of_first.engine.capstone, of_other.engine.capstone);
  same("the version of lief", of_first.engine.lief, of_other.engine.lief);
  same("the self-test", self_test_text(of_first.engine), self_test_text(of_other.engine));
}

void require_same(const ShardFile& first, const ShardFile& other, std::string_view prefix, const RunSubject& of_first,
                  const RunSubject& of_other) {
  const auto what = [prefix](std::string_view name) { return fmt::format("{}{}", prefix, name); };
  const auto same = [&](std::string_view name, const auto& a, const auto& b) {
    require_same(first, other, what(name), a, b);
  };
  same("the routine", of_first.routine, of_other.routine);
  same("the address", report_parts::address_text(of_first.address), report_parts::address_text(of_other.address));
  same("the signature", of_first.signature, of_other.signature);
  same("the routine's SHA-256", of_first.routine_sha256, of_other.routine_sha256);
  same("the decoder", of_first.decoder, of_other.decoder);
  same("the witness", of_first.witness, of_other.witness);
  same("the environment", report_parts::environment_text(of_first.environment),
       report_parts::environment_text(of_other.environment));
  same("the sources", of_first.sources, of_other.sources);
  same("the words", of_first.word_names, of_other.word_names);
  same("the kind of the words", vectors::to_string(of_first.word_kind), vectors::to_string(of_other.word_kind));
}

}  // namespace bitwitness::merging_parts
