#include "harness/witness_run.hpp"

#include "harness/chunk_threads.hpp"
#include "harness/facts.hpp"
#include "harness/progress_gate.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include <fmt/format.h>

namespace bitwitness {
namespace {

using Observations = std::map<std::string, Observation>;

/// What running a sample again alone showed.
struct Sampled {
  std::uint64_t count = 0;
  std::uint64_t unstable = 0;
  Smallest<std::vector<std::byte>> first{1};
};

class WitnessRun {
 public:
  WitnessRun(const Image& image, const Routine& routine, const Environment& environment, const ValueSet& values,
             const ChunkTaker& take, const RunOptions& options)
      : image_(image),
        routine_(routine),
        environment_(environment),
        values_(values),
        take_(take),
        options_(options),
        packed_size_(values.packed_size()),
        word_count_(routine.signature.word_count()),
        total_(options.limit, word_count_) {
    choose_sample();
  }

  WitnessResult run() {
    const std::uint64_t chunks = (values_.size() + values_per_chunk - 1) / values_per_chunk;
    // The first machine is made here, so that a routine that cannot be called is refused before any thread starts.
    std::unique_ptr<Machine> first = make_machine();
    std::string witness(first->witness());
    std::vector<std::string> path = describe_path(*first);
    work_on_chunks(chunks, options_.jobs, options_.stop, std::make_unique<Worker>(*this, std::move(first)),
                   [this] { return std::make_unique<Worker>(*this, make_machine()); });
    Isolation isolation{.sampled = sampled_.count, .unstable = sampled_.unstable, .first_value = {}};
    if (auto unstable = sampled_.first.take(); !unstable.empty()) isolation.first_value = std::move(unstable.front());
    return {std::move(witness), std::move(path), std::move(total_), std::move(isolation), facts_.take()};
  }

 private:
  /// One thread's part.
  class Worker : public ChunkWorker {
   public:
    Worker(WitnessRun& run, std::unique_ptr<Machine> machine)
        : run_(run), machine_(std::move(machine)), tally_(run.options_.limit, run.word_count_) {}

    bool work(std::uint64_t number) override {
      const std::uint64_t first = number * values_per_chunk;
      const auto count =
          static_cast<std::size_t>(std::min<std::uint64_t>(values_per_chunk, run_.values_.size() - first));
      packed_.resize(count * run_.packed_size_);
      run_.values_.read(first, packed_);
      machine_->run(batch_, packed_, run_.environment_);
      if (batch_.unfinished) return false;
      clear_unspecified();
      const std::uint64_t wrong_before = tally_.wrong();
      const ReferenceChunk chunk{first, packed_, batch_.outcomes, batch_.words};
      if (!run_.take_(tally_, number, chunk)) return false;
      tally_.add_outcomes(chunk, batch_.incidents);
      repeat_sample(first);
      run_.count(count, tally_.wrong() - wrong_before);
      return true;
    }

    void finish() override { run_.merge(std::move(tally_), std::move(sampled_), machine_->observations()); }

   private:
    void clear_unspecified() {
      for (const Incident& incident : batch_.incidents) {
        std::ranges::fill(std::span(batch_.words).subspan(incident.index * run_.word_count_, run_.word_count_), 0);
      }
    }

    void repeat_sample(std::uint64_t first) {
      const auto& sample = run_.sample_;
      const auto begin = std::ranges::lower_bound(sample, first);
      for (auto position = begin; position != sample.end() && *position < first + batch_.outcomes.size(); ++position) {
        const auto i = static_cast<std::size_t>(*position - first);
        if (batch_.outcomes[i] != OutcomeKind::returned) continue;  // decided alone already
        const auto value = std::span<const std::byte>(packed_).subspan(i * run_.packed_size_, run_.packed_size_);
        machine_->run_alone(alone_, value, run_.environment_);
        if (alone_.unfinished) return;
        ++sampled_.count;
        const auto words = std::span(batch_.words).subspan(i * run_.word_count_, run_.word_count_);
        if (alone_.outcomes[0] == OutcomeKind::returned && std::ranges::equal(words, alone_.words)) continue;
        ++sampled_.unstable;
        if (sampled_.first.wants(*position)) sampled_.first.add(*position, {value.begin(), value.end()});
      }
    }

    WitnessRun& run_;
    std::unique_ptr<Machine> machine_;
    Tally tally_;
    Sampled sampled_;
    std::vector<std::byte> packed_;
    Batch batch_;
    Batch alone_;
  };

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
  std::vector<std::string> describe_path(Machine& machine) const {
    std::vector<std::string> notes;
    if (values_.size() == 0 || options_.stop.stop_requested()) return notes;
    std::vector<std::byte> first(packed_size_);
    values_.read(0, first);
    for (const std::string& clause : machine.path(first, environment_)) {
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

  void count(std::size_t values, std::uint64_t wrong) {
    const std::scoped_lock lock(mutex_);
    done_ += values;
    wrong_ += wrong;
    tell_progress();
  }

  /// The lock must be held.
  void tell_progress() {
    if (!options_.progress) return;
    if (gate_.passes(done_ == values_.size())) options_.progress({done_, values_.size(), wrong_});
  }

  void merge(Tally&& tally, Sampled&& sampled, const Observations& observations) {
    const std::scoped_lock lock(mutex_);
    total_.merge(std::move(tally));
    sampled_.count += sampled.count;
    sampled_.unstable += sampled.unstable;
    sampled_.first.merge(std::move(sampled.first));
    for (const auto& [what, seen] : observations) facts_.add({what, seen.values, seen.first_value});
  }

  const Image& image_;
  const Routine& routine_;
  Environment environment_;
  const ValueSet& values_;
  const ChunkTaker& take_;
  const RunOptions& options_;
  std::size_t packed_size_;
  std::size_t word_count_;
  std::vector<std::uint64_t> sample_;  // positions of the values to run again alone

  std::mutex mutex_;  // guards what follows
  Tally total_;
  Sampled sampled_;
  FactSum facts_;
  std::uint64_t done_ = 0;
  std::uint64_t wrong_ = 0;
  ProgressGate gate_;
};

}  // namespace

WitnessResult run_witness(const Image& image, const Routine& routine, const Environment& environment,
                          const ValueSet& values, const ChunkTaker& take, const RunOptions& options) {
  return WitnessRun(image, routine, environment, values, take, options).run();
}

}  // namespace bitwitness
