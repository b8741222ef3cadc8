#include "harness/witness_run.hpp"

#include "harness/chunk_threads.hpp"
#include "harness/environments.hpp"
#include "harness/progress_gate.hpp"
#include "harness/vectors/vector_file.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

using Clock = std::chrono::steady_clock;

class WitnessRun {
 public:
  WitnessRun(const Image& image, const Routine& routine, std::span<const Environment> environments,
             const ValueSet& values, const EnvironmentChunkTaker& take, const RunOptions& options,
             ChunkDigesting digesting, const std::function<void()>& end)
      : image_(image),
        routine_(routine),
        environments_(environments),
        values_(values),
        take_(take),
        options_(options),
        end_(end),
        has_digests_(digesting != ChunkDigesting::none || options.keeping != nullptr),
        keeps_digests_(digesting == ChunkDigesting::kept),
        packed_size_(values.packed_size()),
        word_count_(routine.signature.word_count()),
        chunks_((values.size() + values_per_chunk - 1) / values_per_chunk),
        state_(environments.size(), options.limit, word_count_, keeps_digests_ || options.keeping != nullptr) {
    if (options.keeping != nullptr && options.keeping->from) go_on(*std::exchange(options.keeping->from, std::nullopt));
    choose_sample();
  }

  WitnessResults run() {
    if (!state_.is_complete) execute();
    WitnessResults results;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      EnvironmentFindings& found = state_.found.each[i];
      Isolation isolation{.sampled = found.sampled.count, .unstable = found.sampled.unstable, .first_value = {}};
      if (auto unstable = found.sampled.first.take(); !unstable.empty()) {
        isolation.first_value = std::move(unstable.front());
      }
      results.each.push_back({state_.witness, std::move(state_.paths[i]), std::move(found.tally), std::move(isolation),
                              found.facts.take(), found.seconds});
      results.digests.push_back(state_.digests.hex(i));
      results.chunks.push_back(keeps_digests_ ? state_.digests.kept(i) : std::vector<std::string>());
    }
    results.effects = std::move(state_.found.effects);
    return results;
  }

 private:
  /// One thread's part.
  class Worker : public ChunkWorker {
   public:
    Worker(WitnessRun& run, std::unique_ptr<Machine> machine)
        : run_(run), machine_(std::move(machine)), digests_(run.environments_.size()) {}

    /// A chunk counts in every environment or, when a stop comes meanwhile, in none.
    bool work(std::uint64_t number) override {
      if (run_.was_done(number)) return true;
      first_ = number * values_per_chunk;
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(values_per_chunk, run_.values_.size() - first_));
      packed_.resize(count * run_.packed_size_);
      run_.values_.read(first_, packed_);
      Findings found(run_.environments_.size(), run_.options_.limit, run_.word_count_);
      for (std::size_t i = 0; i < run_.environments_.size(); ++i) {
        const auto start = Clock::now();
        if (!run_in(found, i, number)) return false;
        found.each[i].seconds = std::chrono::duration<double>(Clock::now() - start).count();
        run_.count(count, found.each[i].tally.wrong());
      }
      if (run_.environments_.size() > 1) found.effects.depending = comparison_.depending();
      run_.add(number, std::move(found), digests_);
      return true;
    }

   private:
    bool run_in(Findings& found, std::size_t index, std::uint64_t number) {
      const Environment& environment = run_.environments_[index];
      machine_->run(batch_, packed_, environment);
      if (batch_.unfinished) return false;
      clear_unspecified();
      EnvironmentFindings& share = found.each[index];
      const ReferenceChunk chunk{first_, packed_, batch_.outcomes, batch_.words};
      if (!run_.take_(share.tally, index, number, chunk)) return false;
      if (run_.has_digests_) digests_[index] = vector_digest(chunk.packed, chunk.outcomes, chunk.words);
      share.tally.add_outcomes(chunk, batch_.incidents);
      if (index == 0 && run_.environments_.size() > 1) comparison_.begin(chunk);
      if (index > 0) found.effects.changed[index] = comparison_.compare(chunk);
      if (!repeat_sample(share.sampled, environment)) return false;
      for (const auto& [what, seen] : machine_->observations()) share.facts.add({what, seen.values, seen.first_value});
      machine_->forget_observations();
      return true;
    }

    void clear_unspecified() {
      for (const Incident& incident : batch_.incidents) {
        std::ranges::fill(std::span(batch_.words).subspan(incident.index * run_.word_count_, run_.word_count_), 0);
      }
    }

    /// Returns false when a stop comes meanwhile.
    bool repeat_sample(Sampled& sampled, const Environment& environment) {
      const auto& sample = run_.sample_;
      const auto begin = std::ranges::lower_bound(sample, first_);
      for (auto position = begin; position != sample.end() && *position < first_ + batch_.outcomes.size(); ++position) {
        const auto i = static_cast<std::size_t>(*position - first_);
        if (batch_.outcomes[i] != OutcomeKind::returned) continue;  // decided alone already
        const auto value = std::span<const std::byte>(packed_).subspan(i * run_.packed_size_, run_.packed_size_);
        machine_->run_alone(alone_, value, environment);
        if (alone_.unfinished) return false;
        ++sampled.count;
        const auto words = std::span(batch_.words).subspan(i * run_.word_count_, run_.word_count_);
        if (alone_.outcomes[0] == OutcomeKind::returned && std::ranges::equal(words, alone_.words)) continue;
        ++sampled.unstable;
        if (sampled.first.wants(*position)) sampled.first.add(*position, {value.begin(), value.end()});
      }
      return true;
    }

    WitnessRun& run_;
    std::unique_ptr<Machine> machine_;
    ChunkComparison comparison_;
    std::vector<Sha256Bytes> digests_;  // of the chunk, one per environment
    std::uint64_t first_ = 0;           // position of the chunk's first value
    std::vector<std::byte> packed_;
    Batch batch_;
    Batch alone_;
  };

  /// Takes what an earlier run has done.
  void go_on(RunState&& from) {
    state_ = std::move(from);
    done_before_ = state_.digests.ranges();
    for (const EnvironmentFindings& found : state_.found.each) {
      resumed_ += found.tally.counts.run;
      wrong_ += found.tally.wrong();
    }
    done_ = resumed_;
  }

  void execute() {
    // The first machine is made here, so that a routine that cannot be called is refused before any thread starts.
    std::unique_ptr<Machine> first = make_machine();
    state_.witness = first->witness();
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      state_.paths[i] = describe_path(*first, environments_[i]);
    }
    try {
      work_on_chunks(chunks_, options_.jobs, options_.stop, std::make_unique<Worker>(*this, std::move(first)),
                     [this] { return std::make_unique<Worker>(*this, make_machine()); });
      if (end_ && !options_.stop.stop_requested()) end_();
    } catch (...) {
      if (options_.keeping != nullptr) options_.keeping->keep(state_);
      throw;
    }
    std::vector<Smallest<Failure>> unexplained;
    for (const EnvironmentFindings& found : state_.found.each) unexplained.push_back(found.tally.failures);
    explain();
    if (options_.keeping == nullptr) return;
    state_.is_complete = !options_.stop.stop_requested() && state_.digests.count() == chunks_;
    // What was explained in part is explained again.
    if (!state_.is_complete) exchange_failures(unexplained);
    options_.keeping->keep(state_);
    if (!state_.is_complete) exchange_failures(unexplained);
  }

  void exchange_failures(std::vector<Smallest<Failure>>& with) {
    for (std::size_t i = 0; i < with.size(); ++i) std::swap(state_.found.each[i].tally.failures, with[i]);
  }

  /// What takes long to find out is found out of what is listed alone.
  void explain() {
    std::unique_ptr<Machine> machine;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      Tally& tally = state_.found.each[i].tally;
      if (tally.counts.disputed == 0 || options_.stop.stop_requested()) continue;
      if (machine == nullptr) machine = make_machine();
      tally.failures.change([&](Failure& failure) {
        Incident incident{0, failure.kind, failure.address, failure.instruction, failure.reason};
        machine->explain(incident, failure.value, environments_[i]);
        failure.address = incident.address;
        failure.instruction = std::move(incident.instruction);
        failure.reason = std::move(incident.reason);
      });
    }
  }

  std::unique_ptr<Machine> make_machine() {
    MachineOptions options = options_.machine;
    options.stop = options_.stop;
    options.pulse = [this] {
      const std::scoped_lock lock(mutex_);
      tell_progress();
    };
    return options_.make_machine(image_, routine_, options);
  }

  /// The same machine then runs the sample alone, in a lane that stands already.
  std::vector<std::string> describe_path(Machine& machine, const Environment& environment) const {
    std::vector<std::string> notes;
    if (values_.size() == 0 || options_.stop.stop_requested()) return notes;
    std::vector<std::byte> first(packed_size_);
    values_.read(0, first);
    for (const std::string& clause : machine.path(first, environment)) {
      notes.push_back(fmt::format("on the first value ({}) the routine {}", to_hex(first), clause));
    }
    return notes;
  }

  /// Spreads the sample over the values of all shards, of which a shard takes its own: together they run what the whole
  /// does.
  void choose_sample() {
    const std::uint64_t size = values_.whole_size();
    const std::uint64_t begin = values_.whole_index();
    const std::uint64_t count = std::min<std::uint64_t>(options_.sample, size);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t position =
          count == 1 ? 0 : static_cast<std::uint64_t>(static_cast<long double>(size - 1) * i / (count - 1));
      if (position >= begin && position - begin < values_.size()) sample_.push_back(position - begin);
    }
    sample_.erase(std::unique(sample_.begin(), sample_.end()), sample_.end());
  }

  /// Tells whether an earlier run had done a chunk.
  [[nodiscard]] bool was_done(std::uint64_t chunk) const {
    const auto after = std::ranges::upper_bound(done_before_, chunk, {}, [](const auto& range) { return range.first; });
    return after != done_before_.begin() && chunk < std::prev(after)->second;
  }

  void count(std::size_t values, std::uint64_t wrong) {
    const std::scoped_lock lock(mutex_);
    done_ += values;
    wrong_ += wrong;
    tell_progress();
  }

  /// The lock must be held.
  void tell_progress() {
    if (!options_.progress) return;
    const std::uint64_t total = values_.size() * environments_.size();
    if (gate_.passes(done_ == total)) options_.progress({done_, total, wrong_, resumed_});
  }

  void add(std::uint64_t chunk, Findings&& found, std::span<const Sha256Bytes> digests) {
    const std::scoped_lock lock(mutex_);
    state_.found.merge(std::move(found));
    if (has_digests_) state_.digests.add(chunk, digests);
    if (options_.keeping != nullptr && options_.keeping->is_due()) options_.keeping->keep(state_);
  }

  const Image& image_;
  const Routine& routine_;
  std::span<const Environment> environments_;
  const ValueSet& values_;
  const EnvironmentChunkTaker& take_;
  const RunOptions& options_;
  const std::function<void()>& end_;
  bool has_digests_;
  bool keeps_digests_;
  std::size_t packed_size_;
  std::size_t word_count_;
  std::uint64_t chunks_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> done_before_;  // ranges of chunks
  std::vector<std::uint64_t> sample_;                                 // positions of the values to run again alone

  std::mutex mutex_;  // guards what follows
  RunState state_;
  std::uint64_t resumed_ = 0;
  std::uint64_t done_ = 0;
  std::uint64_t wrong_ = 0;
  ProgressGate gate_;
};

}  // namespace

WitnessResult run_witness(const Image& image, const Routine& routine, const Environment& environment,
                          const ValueSet& values, const ChunkTaker& take, const RunOptions& options) {
  const EnvironmentChunkTaker take_one = [&take](Tally& tally, std::size_t, std::uint64_t number,
                                                 const ReferenceChunk& chunk) { return take(tally, number, chunk); };
  WitnessResults results = run_witness_environments(image, routine, {&environment, 1}, values, take_one, options);
  return std::move(results.each.front());
}

WitnessResults run_witness_environments(const Image& image, const Routine& routine,
                                        std::span<const Environment> environments, const ValueSet& values,
                                        const EnvironmentChunkTaker& take, const RunOptions& options,
                                        ChunkDigesting digesting, const std::function<void()>& end) {
  return WitnessRun(image, routine, environments, values, take, options, digesting, end).run();
}

}  // namespace bitwitness
