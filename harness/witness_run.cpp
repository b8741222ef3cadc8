#include "harness/witness_run.hpp"

#include "harness/chunk_threads.hpp"
#include "harness/environments.hpp"
#include "harness/facts.hpp"
#include "harness/progress_gate.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

using Clock = std::chrono::steady_clock;

/// What running a sample again alone showed.
struct Sampled {
  std::uint64_t count = 0;
  std::uint64_t unstable = 0;
  Smallest<std::vector<std::byte>> first{1};
};

/// What was found in one environment: of a chunk, by a thread, or in all.
struct Share {
  Share(std::size_t limit, std::size_t word_count) : tally(limit, word_count) {}

  void merge(Share&& other) {
    tally.merge(std::move(other.tally));
    sampled.count += other.sampled.count;
    sampled.unstable += other.sampled.unstable;
    sampled.first.merge(std::move(other.sampled.first));
    facts.add(other.facts.take());
    seconds += other.seconds;
  }

  Tally tally;
  Sampled sampled;
  FactSum facts;
  double seconds = 0;
};

/// What was found in all environments.
struct Findings {
  Findings(std::size_t environments, const Share& none) : shares(environments, none) {
    effects.changed.resize(environments);
  }

  void merge(Findings&& other) {
    for (std::size_t i = 0; i < shares.size(); ++i) shares[i].merge(std::move(other.shares[i]));
    add_effects(effects, other.effects);
  }

  std::vector<Share> shares;
  EnvironmentEffects effects;
};

class WitnessRun {
 public:
  WitnessRun(const Image& image, const Routine& routine, std::span<const Environment> environments,
             const ValueSet& values, const EnvironmentChunkTaker& take, const RunOptions& options)
      : image_(image),
        routine_(routine),
        environments_(environments),
        values_(values),
        take_(take),
        options_(options),
        packed_size_(values.packed_size()),
        word_count_(routine.signature.word_count()),
        total_(no_findings()) {
    choose_sample();
  }

  WitnessResults run() {
    const std::uint64_t chunks = (values_.size() + values_per_chunk - 1) / values_per_chunk;
    // The first machine is made here, so that a routine that cannot be called is refused before any thread starts.
    std::unique_ptr<Machine> first = make_machine();
    const std::string witness(first->witness());
    std::vector<std::vector<std::string>> paths;
    for (const Environment& environment : environments_) paths.push_back(describe_path(*first, environment));
    work_on_chunks(chunks, options_.jobs, options_.stop, std::make_unique<Worker>(*this, std::move(first)),
                   [this] { return std::make_unique<Worker>(*this, make_machine()); });
    explain();
    WitnessResults results;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      Share& share = total_.shares[i];
      Isolation isolation{.sampled = share.sampled.count, .unstable = share.sampled.unstable, .first_value = {}};
      if (auto unstable = share.sampled.first.take(); !unstable.empty()) {
        isolation.first_value = std::move(unstable.front());
      }
      results.each.push_back({witness, std::move(paths[i]), std::move(share.tally), std::move(isolation),
                              share.facts.take(), share.seconds});
    }
    results.effects = std::move(total_.effects);
    return results;
  }

 private:
  /// One thread's part.
  class Worker : public ChunkWorker {
   public:
    Worker(WitnessRun& run, std::unique_ptr<Machine> machine)
        : run_(run), machine_(std::move(machine)), found_(run.no_findings()) {}

    /// A chunk counts in every environment or, when a stop comes meanwhile, in none.
    bool work(std::uint64_t number) override {
      first_ = number * values_per_chunk;
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(values_per_chunk, run_.values_.size() - first_));
      packed_.resize(count * run_.packed_size_);
      run_.values_.read(first_, packed_);
      Findings found = run_.no_findings();
      for (std::size_t i = 0; i < run_.environments_.size(); ++i) {
        const auto start = Clock::now();
        if (!run_in(found, i, number)) return false;
        found.shares[i].seconds = std::chrono::duration<double>(Clock::now() - start).count();
        run_.count(count, found.shares[i].tally.wrong());
      }
      if (run_.environments_.size() > 1) found.effects.depending = comparison_.depending();
      found_.merge(std::move(found));
      return true;
    }

    void finish() override { run_.merge(std::move(found_)); }

   private:
    bool run_in(Findings& found, std::size_t index, std::uint64_t number) {
      const Environment& environment = run_.environments_[index];
      machine_->run(batch_, packed_, environment);
      if (batch_.unfinished) return false;
      clear_unspecified();
      Share& share = found.shares[index];
      const ReferenceChunk chunk{first_, packed_, batch_.outcomes, batch_.words};
      if (!run_.take_(share.tally, index, number, chunk)) return false;
      share.tally.add_outcomes(chunk, batch_.incidents);
      if (index == 0 && run_.environments_.size() > 1) comparison_.begin(chunk);
      if (index > 0) found.effects.changed[index] = comparison_.compare(chunk);
      repeat_sample(share.sampled, environment);
      for (const auto& [what, seen] : machine_->observations()) share.facts.add({what, seen.values, seen.first_value});
      machine_->forget_observations();
      return true;
    }

    void clear_unspecified() {
      for (const Incident& incident : batch_.incidents) {
        std::ranges::fill(std::span(batch_.words).subspan(incident.index * run_.word_count_, run_.word_count_), 0);
      }
    }

    void repeat_sample(Sampled& sampled, const Environment& environment) {
      const auto& sample = run_.sample_;
      const auto begin = std::ranges::lower_bound(sample, first_);
      for (auto position = begin; position != sample.end() && *position < first_ + batch_.outcomes.size(); ++position) {
        const auto i = static_cast<std::size_t>(*position - first_);
        if (batch_.outcomes[i] != OutcomeKind::returned) continue;  // decided alone already
        const auto value = std::span<const std::byte>(packed_).subspan(i * run_.packed_size_, run_.packed_size_);
        machine_->run_alone(alone_, value, environment);
        if (alone_.unfinished) return;
        ++sampled.count;
        const auto words = std::span(batch_.words).subspan(i * run_.word_count_, run_.word_count_);
        if (alone_.outcomes[0] == OutcomeKind::returned && std::ranges::equal(words, alone_.words)) continue;
        ++sampled.unstable;
        if (sampled.first.wants(*position)) sampled.first.add(*position, {value.begin(), value.end()});
      }
    }

    WitnessRun& run_;
    std::unique_ptr<Machine> machine_;
    Findings found_;
    ChunkComparison comparison_;
    std::uint64_t first_ = 0;  // position of the chunk's first value
    std::vector<std::byte> packed_;
    Batch batch_;
    Batch alone_;
  };

  /// What takes long to find out is found out of what is listed alone.
  void explain() {
    std::unique_ptr<Machine> machine;
    for (std::size_t i = 0; i < environments_.size(); ++i) {
      Tally& tally = total_.shares[i].tally;
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

  [[nodiscard]] Findings no_findings() const { return {environments_.size(), Share(options_.limit, word_count_)}; }

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
    if (gate_.passes(done_ == total)) options_.progress({done_, total, wrong_});
  }

  void merge(Findings&& found) {
    const std::scoped_lock lock(mutex_);
    total_.merge(std::move(found));
  }

  const Image& image_;
  const Routine& routine_;
  std::span<const Environment> environments_;
  const ValueSet& values_;
  const EnvironmentChunkTaker& take_;
  const RunOptions& options_;
  std::size_t packed_size_;
  std::size_t word_count_;
  std::vector<std::uint64_t> sample_;  // positions of the values to run again alone

  std::mutex mutex_;  // guards what follows
  Findings total_;
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
                                        const EnvironmentChunkTaker& take, const RunOptions& options) {
  return WitnessRun(image, routine, environments, values, take, options).run();
}

}  // namespace bitwitness
