#include "harness/cli/rule_sets.hpp"

#include "decoders/quat32_family.hpp"
#include "decoders/quat48_family.hpp"
#include "decoders/quat_xyz_family.hpp"
#include "decoders/registry.hpp"
#include "harness/cli/decoder_subject.hpp"

#include <bit>
#include <optional>
#include <utility>

namespace bitwitness::cli {

namespace {

using decoders::Decoder;
using decoders::quat32_family::Quat32Rule;
using decoders::quat48_family::Quat48Rule;
using decoders::quat_xyz_family::QuatXyzRule;

/// A rule of the 48-bit family on two keys side by side.
struct PairRule {
  Quat48Rule key;
  bool operator==(const PairRule&) const = default;
};

constexpr std::size_t key_size = decoders::quat48_family::packed_size;
constexpr std::size_t key_words = decoders::quat48_family::word_count;

bool decode(const PairRule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  return decode(rule.key, packed.first(key_size), words.first(key_words)) &&
         decode(rule.key, packed.subspan(key_size), words.subspan(key_words));
}

std::string name_of(const PairRule& rule) {
  return "pair/" + name_of(rule.key);
}

std::string sentence_of(const PairRule& rule) {
  return "two keys side by side, each of " + sentence_of(rule.key);
}

void draw_near_unit(const PairRule& rule, std::uint64_t random, std::span<std::byte> packed) {
  draw_near_unit(rule.key, random, packed.first(key_size));
  draw_near_unit(rule.key, std::rotr(random, 32) * 0x9E3779B97F4A7C15u, packed.subspan(key_size));
}

/// Rules of decoders only.
struct NoRule {
  bool operator==(const NoRule&) const = default;
};

bool decode(const NoRule&, std::span<const std::byte>, std::span<std::uint32_t>) {
  return false;
}
std::string name_of(const NoRule&) {
  return {};
}
std::string sentence_of(const NoRule&) {
  return {};
}

void draw_near_unit(const NoRule&, std::uint64_t, std::span<std::byte>) {}

/// Calls the family's `decode`, which a member of that name would hide.
template <typename Rule>
bool decode_by(const Rule& rule, std::span<const std::byte> packed, std::span<std::uint32_t> words) {
  return decode(rule, packed, words);
}

/// Registered decoders first, then the members of a family that none of them stands for.
template <typename Rule>
class Rules final : public RuleSet {
 public:
  /// `known` says which member of the family a registered decoder is.
  Rules(std::vector<const Decoder*> registered, std::vector<Rule> family,
        const std::vector<std::pair<std::string_view, Rule>>& known)
      : registered_(std::move(registered)), family_(std::move(family)) {
    for (const Decoder* decoder : registered_) {
      std::string& sentence = sentences_.emplace_back(decoder->summary);
      std::optional<Rule>& member = members_.emplace_back();
      for (const auto& [name, rule] : known) {
        if (name != decoder->name) continue;
        sentence = sentence_of(rule);
        member = rule;
        std::erase(family_, rule);
      }
    }
  }

  [[nodiscard]] std::size_t size() const override { return registered_.size() + family_.size(); }
  [[nodiscard]] std::size_t packed_size() const override { return registered_.front()->packed_size; }
  [[nodiscard]] std::vector<std::string> word_names() const override {
    return {registered_.front()->word_names.begin(), registered_.front()->word_names.end()};
  }
  [[nodiscard]] WordKind word_kind() const override { return word_kind_of(*registered_.front()); }

  [[nodiscard]] std::string name(std::size_t rule) const override {
    return rule < registered_.size() ? std::string(registered_[rule]->name)
                                     : name_of(family_[rule - registered_.size()]);
  }

  [[nodiscard]] std::string sentence(std::size_t rule) const override {
    return rule < registered_.size() ? sentences_[rule] : sentence_of(family_[rule - registered_.size()]);
  }

  bool decode(std::size_t rule, std::span<const std::byte> packed, std::span<std::uint32_t> words) const override {
    if (rule >= registered_.size()) return decode_by(family_[rule - registered_.size()], packed, words);
    registered_[rule]->decode(packed, words);
    return true;
  }

  bool draw(std::size_t rule, std::uint64_t random, std::span<std::byte> packed) const override {
    const bool is_registered = rule < registered_.size();
    if (is_registered && !members_[rule]) return false;
    draw_near_unit(is_registered ? *members_[rule] : family_[rule - registered_.size()], random, packed);
    return true;
  }

 private:
  std::vector<const Decoder*> registered_;
  std::vector<Rule> family_;
  std::vector<std::string> sentences_;        // of the registered ones
  std::vector<std::optional<Rule>> members_;  // what each of them is in the family
};

/// Draws of a family's first member, for values tried before anything is known.
template <typename Rule>
ValueDraw draws_of(const Rule& rule) {
  return [rule](std::uint64_t random, std::span<std::byte> packed) { draw_near_unit(rule, random, packed); };
}

std::vector<const Decoder*> decoders_of(const Signature& signature) {
  std::vector<const Decoder*> fitting;
  for (const Decoder& decoder : decoders::registry()) {
    if (decoder.packed_size != signature.packed_size()) continue;
    if (decoder.word_names.size() == signature.word_count()) fitting.push_back(&decoder);
  }
  return fitting;
}

std::vector<PairRule> pairs() {
  std::vector<PairRule> rules;
  for (const Quat48Rule& rule : decoders::quat48_family::enumerate()) rules.push_back({rule});
  return rules;
}

}  // namespace

KnownRules known_rules(const Signature& signature) {
  namespace quat48 = decoders::quat48_family;
  namespace quat32 = decoders::quat32_family;
  namespace xyz = decoders::quat_xyz_family;
  KnownRules known;
  std::vector<const Decoder*> fitting = decoders_of(signature);
  if (fitting.empty()) return known;
  RecognitionOptions& options = known.options;
  options.fields = subject_of(*fitting.back()).fields;
  const std::size_t bytes = signature.packed_size();
  const std::size_t words = signature.word_count();
  if (bytes == quat48::packed_size && words == quat48::word_count) {
    options.draws = {draws_of(quat48::seed_rule)};
    known.rules = std::make_unique<Rules<Quat48Rule>>(
        std::move(fitting), quat48::enumerate(),
        std::vector<std::pair<std::string_view, Quat48Rule>>{{"packed_quat48", quat48::seed_rule},
                                                             {"dunia_quat48", quat48::dunia_rule}});
  } else if (bytes == 2 * key_size && words == 2 * key_words) {
    options.draws = {draws_of(PairRule{quat48::seed_rule})};
    known.rules = std::make_unique<Rules<PairRule>>(
        std::move(fitting), pairs(),
        std::vector<std::pair<std::string_view, PairRule>>{{"packed_quat48_pair", {quat48::seed_rule}}});
  } else if (bytes == quat32::packed_size && words == quat32::word_count) {
    options.draws = {draws_of(quat32::seed_rule)};
    known.rules = std::make_unique<Rules<Quat32Rule>>(
        std::move(fitting), quat32::enumerate(),
        std::vector<std::pair<std::string_view, Quat32Rule>>{{"packed_quat32", quat32::seed_rule}});
  } else if (bytes == xyz::packed_size && words == xyz::word_count) {
    // Any bits would mostly be numbers far above 1 or none at all.
    options.any_bits = false;
    options.draws = {xyz::draw_finite, draws_of(xyz::seed_rule)};
    known.rules = std::make_unique<Rules<QuatXyzRule>>(
        std::move(fitting), xyz::enumerate(),
        std::vector<std::pair<std::string_view, QuatXyzRule>>{{"quat_xyz", xyz::seed_rule}});
  } else {
    known.rules = std::make_unique<Rules<NoRule>>(std::move(fitting), std::vector<NoRule>{},
                                                  std::vector<std::pair<std::string_view, NoRule>>{});
  }
  return known;
}

}  // namespace bitwitness::cli
