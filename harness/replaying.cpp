#include "harness/replaying.hpp"

#include "harness/chunk_threads.hpp"
#include "harness/error.hpp"
#include "harness/printable.hpp"
#include "harness/progress_gate.hpp"
#include "harness/replay_groups.hpp"
#include "harness/tally.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

class Replaying {
 public:
  Replaying(const VectorFile& file, const Subject& subject, const ReplayOptions& options)
      : file_(file),
        header_(file.header()),
        subject_(subject),
        options_(options),
        known_(options.known),
        only_(options.only),
        states_(options.known.size(), KnownState::absent),
        found_(options.only.size()),
        total_(options.limit, header_.word_count),
        groups_(options.limit) {
    require_fit();
    subject_.word_kind = header_.word_kind;
    to_run_ = options_.only.empty() ? header_.count : options_.only.size();
  }

  Replay run() {
    const auto make = [this] { return std::make_unique<Worker>(*this); };
    work_on_chunks(file_.block_count(), options_.jobs, options_.stop, make(), make);
    if (subject_.finish && !options_.stop.stop_requested()) subject_.finish();
    if (!options_.stop.stop_requested()) require_found();
    return {report(), std::move(states_)};
  }

 private:
  class Worker : public ChunkWorker {
   public:
    explicit Worker(Replaying& run)
        : run_(run), tally_(run.options_.limit, run.header_.word_count), groups_(run.options_.limit) {}

    bool work(std::uint64_t number) override {
      run_.file_.read(block_, static_cast<std::size_t>(number));
      const std::uint64_t run_before = tally_.counts.run;
      const std::uint64_t wrong_before = tally_.wrong();
      if (!(run_.file_.detail() == VectorDetail::words ? check_words() : check_groups())) return false;
      run_.count(tally_.counts.run - run_before, tally_.wrong() - wrong_before);
      return true;
    }

    void finish() override { run_.merge(std::move(tally_), std::move(groups_)); }

   private:
    bool check_words() {
      if (run_.only_.size() > 0) keep_only();
      const ReferenceChunk chunk{block_.first, block_.packed, block_.outcomes, block_.words};
      if (!tally_.compare(chunk, run_.subject_, run_.options_.stop, run_.known_)) return false;
      tally_.add_outcomes(chunk, {});
      if (run_.known_.size() > 0) run_.look_for_known(block_);
      return true;
    }

    void keep_only() {
      const std::size_t size = run_.header_.packed_size;
      const std::size_t words = run_.header_.word_count;
      std::size_t kept = 0;
      for (std::size_t i = 0; i < block_.outcomes.size(); ++i) {
        if (!run_.is_wanted(std::span(block_.packed).subspan(i * size, size))) continue;
        std::copy_n(block_.packed.begin() + static_cast<std::ptrdiff_t>(i * size), size,
                    block_.packed.begin() + static_cast<std::ptrdiff_t>(kept * size));
        std::copy_n(block_.words.begin() + static_cast<std::ptrdiff_t>(i * words), words,
                    block_.words.begin() + static_cast<std::ptrdiff_t>(kept * words));
        block_.outcomes[kept++] = block_.outcomes[i];
      }
      block_.packed.resize(kept * size);
      block_.words.resize(kept * words);
      block_.outcomes.resize(kept);
    }

    bool check_groups() {
      const std::size_t count = block_.outcomes.size();
      const std::size_t size = run_.header_.packed_size;
      if (!decode_block()) return false;
      tally_.add_outcomes({block_.first, block_.packed, block_.outcomes, {}}, {});
      const std::uint64_t differed_before = tally_.counts.differed;
      for (std::size_t first = 0; first < count; first += vector_group_values) {
        const std::size_t values = std::min(vector_group_values, count - first);
        const auto packed = std::span<const std::byte>(block_.packed).subspan(first * size, values * size);
        const auto outcomes = std::span<const OutcomeKind>(block_.outcomes).subspan(first, values);
        const auto words = std::span<const std::uint32_t>(words_).subspan(first * word_count(), values * word_count());
        const auto returned = static_cast<std::uint64_t>(std::ranges::count(outcomes, OutcomeKind::returned));
        if (vector_digest(packed, outcomes, words) == block_.groups[first / vector_group_values]) {
          tally_.counts.agreed += returned;
          continue;
        }
        tally_.counts.differed += returned;
        groups_.add(block_.first + first, packed, size);
      }
      // Values and groups could have been written anew under the digest of other ones.
      if (tally_.counts.differed == differed_before &&
          vector_digest(block_.packed, block_.outcomes, words_) != block_.digest) {
        run_.fail(fmt::format("the values from the {}th on are not those that were recorded", block_.first + 1));
      }
      return true;
    }

    /// Fills `words_` with what the decoder gives, 0 for a value without a recorded result.
    bool decode_block() {
      const std::size_t size = run_.header_.packed_size;
      words_.resize(block_.outcomes.size() * word_count());
      if (run_.subject_.decode_batch) {
        const ReferenceChunk chunk{block_.first, block_.packed, block_.outcomes, {}};
        const auto returned = tally_.returned_values(chunk, size);
        decoded_.resize(returned.size() / size * word_count());
        if (!run_.subject_.decode_batch(returned, decoded_, run_.options_.stop)) return false;
      }
      std::size_t next = 0;
      for (std::size_t i = 0; i < block_.outcomes.size(); ++i) {
        const auto words = std::span(words_).subspan(i * word_count(), word_count());
        if (block_.outcomes[i] != OutcomeKind::returned) {
          std::ranges::fill(words, 0);
        } else if (run_.subject_.decode_batch) {
          std::ranges::copy(std::span(decoded_).subspan(next++ * word_count(), word_count()), words.begin());
        } else {
          run_.subject_.decode(std::span<const std::byte>(block_.packed).subspan(i * size, size), words);
        }
      }
      return true;
    }

    [[nodiscard]] std::size_t word_count() const { return run_.header_.word_count; }

    Replaying& run_;
    Tally tally_;
    GroupTally groups_;
    VectorBlock block_;
    std::vector<std::uint32_t> words_;
    std::vector<std::uint32_t> decoded_;  ///< of the values that returned
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(fmt::format("{}: {}", printable(file_.name(), true), what));
  }

  void require_fit() const {
    if (subject_.packed_size != header_.packed_size || subject_.word_names.size() != header_.word_count) {
      fail(fmt::format("its values have {} bytes and {} words, decoder {} takes {} and gives {}", header_.packed_size,
                       header_.word_count, subject_.name, subject_.packed_size, subject_.word_names.size()));
    }
    for (const std::vector<std::byte>& value : options_.only) {
      if (value.size() != header_.packed_size) {
        fail(fmt::format("its values have {} bytes, {} has {}", header_.packed_size, to_hex(value), value.size()));
      }
    }
    if (file_.detail() == VectorDetail::words) return;
    const std::string why =
        fmt::format("it holds digests of {} values each, which do not tell single values: ", vector_group_values);
    if (!options_.only.empty()) fail(why + "--values cannot be used");
    if (!options_.known.empty()) fail(why + "known differences cannot be used");
  }

  void require_found() const {
    const auto missing = std::ranges::find(found_, false);
    if (missing == found_.end()) return;
    const auto index = static_cast<std::size_t>(missing - found_.begin());
    fail(fmt::format("the value {} is not in it", to_hex(options_.only[index])));
  }

  bool is_wanted(std::span<const std::byte> value) {
    const std::size_t index = only_.find(value);
    if (index == only_.size()) return false;
    const std::scoped_lock lock(mutex_);
    found_[index] = true;
    return true;
  }

  /// Which of the known values a block holds, and whether they have words; whether they differ the tallies know.
  void look_for_known(const VectorBlock& block) {
    const std::size_t size = header_.packed_size;
    const auto value_at = [&](std::size_t i) {
      return std::span<const std::byte>(block.packed).subspan(i * size, size);
    };
    for (std::size_t k = 0; k < options_.known.size(); ++k) {
      std::size_t low = 0;
      std::size_t high = block.outcomes.size();
      while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (is_less(value_at(middle), options_.known[k])) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low == block.outcomes.size() || !std::ranges::equal(value_at(low), options_.known[k])) continue;
      const std::scoped_lock lock(mutex_);
      states_[k] = block.outcomes[low] == OutcomeKind::returned ? KnownState::agreed : KnownState::failed;
    }
  }

  void count(std::uint64_t values, std::uint64_t wrong) {
    if (!options_.progress) return;
    const std::scoped_lock lock(mutex_);
    done_ += values;
    wrong_ += wrong;
    if (gate_.passes(done_ == to_run_)) options_.progress({done_, to_run_, wrong_});
  }

  void merge(Tally&& tally, GroupTally&& groups) {
    const std::scoped_lock lock(mutex_);
    total_.merge(std::move(tally));
    groups_.merge(std::move(groups));
  }

  RunReport report() {
    RunReport report;
    report.routine = header_.routine;
    report.address = header_.address;
    report.signature = header_.signature;
    report.routine_sha256 = header_.routine_sha256;
    report.decoder = subject_.name;
    report.decoder_option = subject_.option;
    report.witness = header_.witness;
    report.environment = header_.environment;
    report.sources = header_.sources;
    report.shard = header_.shard;
    report.distinct = to_run_;
    report.counts = total_.counts;
    report.counts.not_run = to_run_ - total_.counts.run;
    if (report.counts.not_run == 0 && options_.only.empty()) report.digest = file_.digest();
    report.fields = header_.fields.empty() ? subject_.fields : header_.fields;
    report.word_names = header_.word_names;
    report.word_kind = header_.word_kind;
    report.differing = total_.differing;
    report.max_ulp = total_.max_ulp;
    report.differences = total_.differences.take();
    report.failures = total_.failures.take();
    for (Failure& failure : report.failures) tell_recorded(failure);
    report.isolation = header_.recorded.isolation;
    report.vector_file = file_.name();
    report.by_group = file_.detail() == VectorDetail::digests;
    report.notes = subject_.notes;
    if (!options_.only.empty()) {
      report.notes.push_back(fmt::format("{} of the file's {} values, as asked for", to_run_, header_.count));
    }
    if (file_.detail() == VectorDetail::digests) {
      for (std::string& note : groups_.take_notes()) report.notes.push_back(std::move(note));
    }
    for (std::string& note : notes_of(header_)) report.notes.push_back(std::move(note));
    for (std::size_t k = 0; k < states_.size(); ++k) {
      const std::size_t index = known_.find(options_.known[k]);
      if (index < total_.known_held.size() && total_.known_held[index]) states_[k] = KnownState::held;
    }
    return report;
  }

  /// How the value failed when it was recorded, where the header lists it.
  void tell_recorded(Failure& failure) const {
    const std::vector<Failure>& listed = header_.recorded.failures;
    const auto at = std::ranges::lower_bound(
        listed, failure.value, [](const auto& a, const auto& b) { return is_less(a, b); }, &Failure::value);
    const bool is_listed = at != listed.end() && at->value == failure.value && at->kind == failure.kind;
    if (is_listed) failure = *at;
    failure.reason += failure.reason.empty() ? "so it was recorded" : " (so it was recorded)";
  }

  const VectorFile& file_;
  const VectorHeader& header_;
  Subject subject_;
  const ReplayOptions& options_;
  KnownValues known_;
  KnownValues only_;
  std::uint64_t to_run_ = 0;

  std::mutex mutex_;  // guards what follows
  std::vector<KnownState> states_;
  std::vector<bool> found_;
  Tally total_;
  GroupTally groups_;
  std::uint64_t done_ = 0;
  std::uint64_t wrong_ = 0;
  ProgressGate gate_;
};

}  // namespace

Replay replay(const VectorFile& file, const Subject& subject, const ReplayOptions& options) {
  return Replaying(file, subject, options).run();
}

}  // namespace bitwitness
