#include "harness/verification.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "harness/disassembly.hpp"
#include "harness/error.hpp"
#include "harness/sha256.hpp"

namespace bitwitness {
namespace {

/// Values that a machine runs at a time. The report must not depend on the number of threads, and what a routine with memory
/// of its own gives depends on which values share a batch: so the size is fixed.
constexpr std::size_t batch_values = 8192;

constexpr std::chrono::milliseconds progress_interval{100};

/// A routine may write to as many addresses as it likes; each is a fact of its own.
constexpr std::size_t max_notes = 20;

/// The findings with the smallest positions, at most `limit` of them.
template <typename Finding>
class Smallest {
 public:
  explicit Smallest(std::size_t limit) : limit_(limit) {}

  [[nodiscard]] bool wants(std::uint64_t position) const {
    return limit_ != 0 && (kept_.size() < limit_ || position < kept_.rbegin()->first);
  }

  void add(std::uint64_t position, Finding finding) {
    kept_.emplace(position, std::move(finding));
    if (kept_.size() > limit_) kept_.erase(std::prev(kept_.end()));
  }

  void merge(Smallest&& other) {
    for (auto& [position, finding] : other.kept_) {
      if (wants(position)) add(position, std::move(finding));
    }
  }

  std::vector<Finding> take() {
    std::vector<Finding> all;
    for (auto& [position, finding] : kept_) all.push_back(std::move(finding));
    return all;
  }

 private:
  std::size_t limit_;
  std::map<std::uint64_t, Finding> kept_;
};

/// What one thread has found.
struct Tally {
  Tally(std::size_t limit, std::size_t words) : differences(limit), failures(limit), unstable(1), differing(words, 0) {}

  Counts counts;
  Smallest<Difference> differences;
  Smallest<Failure> failures;
  Smallest<std::vector<std::byte>> unstable;
  std::uint64_t sampled = 0;
  std::uint64_t unstable_count = 0;
  std::vector<std::uint64_t> differing;
  std::uint64_t max_ulp = 0;
  std::map<std::string, Observation> observations;
};

/// Chains the digests of batches in order, whichever thread finishes first.
class OrderedDigest {
 public:
  void add(std::uint64_t batch, std::string digest) {
    pending_.emplace(batch, std::move(digest));
    while (!pending_.empty() && pending_.begin()->first == next_) {
      hash_.update(std::as_bytes(std::span(pending_.begin()->second)));
      pending_.erase(pending_.begin());
      ++next_;
    }
  }

  [[nodiscard]] std::string hex() const { return hash_.hex(); }

 private:
  Sha256 hash_;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::string> pending_;
};

void merge_observations(std::map<std::string, Observation>& into, const std::map<std::string, Observation>& from) {
  for (const auto& [what, observation] : from) {
    Observation& known = into[what];
    known.values += observation.values;
    if (known.first_value.empty() || is_less(observation.first_value, known.first_value)) {
      known.first_value = observation.first_value;
    }
  }
}

class Verification {
 public:
  Verification(const Image& image, const Routine& routine, const Subject& subject, const Environment& environment,
               const ValueSet& values, const VerifyOptions& options)
      : image_(image),
        routine_(routine),
        subject_(subject),
        environment_(environment),
        values_(values),
        options_(options),
        packed_size_(subject.packed_size),
        word_count_(subject.word_names.size()),
        total_(options.limit, word_count_),
        batches_((values.size() + batch_values - 1) / batch_values) {
    choose_sample();
  }

  RunReport run() {
    const auto jobs = static_cast<unsigned>(
        std::clamp<std::uint64_t>(options_.jobs, 1, std::max<std::uint64_t>(batches_, 1)));
    // The first machine is made here, so that a routine that cannot be called is refused before any thread starts.
    std::unique_ptr<Machine> first = make_machine();
    witness_ = first->witness();
    std::vector<std::jthread> threads;
    try {
      for (unsigned i = 1; i < jobs; ++i) threads.emplace_back([this] { guarded_work(nullptr); });
    } catch (...) {
      next_batch_ = batches_;  // the threads there are finish the batch they are at
      throw;
    }
    guarded_work(std::move(first));
    threads.clear();
    if (failure_) std::rethrow_exception(failure_);
    return report();
  }

 private:
  std::unique_ptr<Machine> make_machine() {
    MachineOptions options = options_.machine;
    options.stop = options_.stop;
    options.pulse = [this] {
      const std::scoped_lock lock(mutex_);
      tell_progress();
    };
    return options_.make_machine(image_, routine_, options);
  }

  void choose_sample() {
    const std::uint64_t size = values_.size();
    const std::uint64_t count = std::min<std::uint64_t>(options_.sample, size);
    for (std::uint64_t i = 0; i < count; ++i) {
      sample_.push_back(count == 1 ? 0 : static_cast<std::uint64_t>(static_cast<long double>(size - 1) * i / (count - 1)));
    }
    sample_.erase(std::unique(sample_.begin(), sample_.end()), sample_.end());
  }

  void guarded_work(std::unique_ptr<Machine> machine) {
    try {
      if (machine == nullptr) machine = make_machine();
      work(*machine);
    } catch (...) {
      const std::scoped_lock lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_batch_ = batches_;
    }
  }

  void work(Machine& machine) {
    Tally tally(options_.limit, word_count_);
    std::vector<std::byte> packed;
    std::vector<std::uint32_t> subject(word_count_);
    Batch batch;
    Batch alone;
    while (!options_.stop.stop_requested()) {
      const std::uint64_t number = next_batch_.fetch_add(1);
      if (number >= batches_) break;
      const std::uint64_t first = number * batch_values;
      const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(batch_values, values_.size() - first));
      packed.resize(count * packed_size_);
      values_.read(first, packed);
      machine.run(batch, packed, environment_);
      if (batch.unfinished) break;
      judge(tally, batch, subject, packed, first);
      repeat_sample(tally, machine, alone, batch, packed, first);
      finish_batch(number, batch, packed, tally);
    }
    merge_observations(tally.observations, machine.observations());
    merge(std::move(tally));
  }

  void judge(Tally& tally, Batch& batch, std::vector<std::uint32_t>& subject, std::span<const std::byte> packed,
             std::uint64_t first) const {
    std::size_t incident = 0;
    const std::size_t count = batch.outcomes.size();
    tally.counts.run += count;
    for (std::size_t i = 0; i < count; ++i) {
      const auto value = packed.subspan(i * packed_size_, packed_size_);
      const auto reference = std::span(batch.words).subspan(i * word_count_, word_count_);
      if (batch.outcomes[i] != OutcomeKind::returned) {
        count_failure(tally, batch.outcomes[i]);
        std::ranges::fill(reference, 0);  // unspecified, and hashed
        const Incident& what = batch.incidents[incident++];
        if (tally.failures.wants(first + i)) {
          tally.failures.add(first + i, {{value.begin(), value.end()}, what.kind, what.address, what.instruction, what.reason});
        }
        continue;
      }
      subject_.decode(value, subject);
      if (std::ranges::equal(reference, subject)) {
        ++tally.counts.agreed;
        continue;
      }
      ++tally.counts.differed;
      for (std::size_t word = 0; word < word_count_; ++word) {
        if (reference[word] == subject[word]) continue;
        ++tally.differing[word];
        tally.max_ulp = std::max(tally.max_ulp, ulp_distance(reference[word], subject[word], subject_.word_kind));
      }
      if (tally.differences.wants(first + i)) {
        tally.differences.add(first + i, {{value.begin(), value.end()}, {reference.begin(), reference.end()}, subject});
      }
    }
  }

  static void count_failure(Tally& tally, OutcomeKind kind) {
    switch (kind) {
      case OutcomeKind::faulted:
        ++tally.counts.faulted;
        break;
      case OutcomeKind::out_of_budget:
        ++tally.counts.out_of_budget;
        break;
      case OutcomeKind::unwritten:
        ++tally.counts.unwritten;
        break;
      case OutcomeKind::returned:
        break;
    }
  }

  void repeat_sample(Tally& tally, Machine& machine, Batch& alone, const Batch& batch, std::span<const std::byte> packed,
                     std::uint64_t first) const {
    const auto begin = std::ranges::lower_bound(sample_, first);
    for (auto position = begin; position != sample_.end() && *position < first + batch.outcomes.size(); ++position) {
      const auto i = static_cast<std::size_t>(*position - first);
      if (batch.outcomes[i] != OutcomeKind::returned) continue;  // decided alone already
      const auto value = packed.subspan(i * packed_size_, packed_size_);
      machine.run_alone(alone, value, environment_);
      if (alone.unfinished) return;
      ++tally.sampled;
      const auto words = std::span(batch.words).subspan(i * word_count_, word_count_);
      if (alone.outcomes[0] == OutcomeKind::returned && std::ranges::equal(words, alone.words)) continue;
      ++tally.unstable_count;
      if (tally.unstable.wants(*position)) tally.unstable.add(*position, {value.begin(), value.end()});
    }
  }

  void finish_batch(std::uint64_t number, const Batch& batch, std::span<const std::byte> packed, const Tally& tally) {
    Sha256 hash;
    hash.update(packed);
    hash.update(std::as_bytes(std::span(batch.outcomes)));
    hash.update(std::as_bytes(std::span(batch.words)));
    std::string digest = hash.hex();
    const std::scoped_lock lock(mutex_);
    digest_.add(number, std::move(digest));
    done_ += batch.outcomes.size();
    // Each thread's tally only grows; what it held at its last report is replaced.
    wrong_by_thread_[std::this_thread::get_id()] = tally.counts.run - tally.counts.agreed;
    tell_progress();
  }

  /// The lock must be held.
  void tell_progress() {
    if (!options_.progress) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_progress_ < progress_interval && done_ != values_.size()) return;
    last_progress_ = now;
    Progress progress{done_, values_.size(), 0};
    for (const auto& [thread, count] : wrong_by_thread_) progress.differed += count;
    options_.progress(progress);
  }

  void merge(Tally&& tally) {
    const std::scoped_lock lock(mutex_);
    total_.counts.run += tally.counts.run;
    total_.counts.agreed += tally.counts.agreed;
    total_.counts.differed += tally.counts.differed;
    total_.counts.faulted += tally.counts.faulted;
    total_.counts.out_of_budget += tally.counts.out_of_budget;
    total_.counts.unwritten += tally.counts.unwritten;
    total_.differences.merge(std::move(tally.differences));
    total_.failures.merge(std::move(tally.failures));
    total_.unstable.merge(std::move(tally.unstable));
    total_.sampled += tally.sampled;
    total_.unstable_count += tally.unstable_count;
    total_.max_ulp = std::max(total_.max_ulp, tally.max_ulp);
    for (std::size_t word = 0; word < word_count_; ++word) total_.differing[word] += tally.differing[word];
    merge_observations(total_.observations, tally.observations);
  }

  RunReport report() {
    RunReport report;
    report.routine = routine_.name;
    report.address = routine_.address;
    report.signature = to_string(routine_.signature);
    report.routine_sha256 = routine_sha256(image_, disassemble_routine(image_, routine_.address));
    report.decoder = subject_.name;
    report.witness = witness_;
    report.environment = environment_;
    report.sources.assign(values_.sources().begin(), values_.sources().end());
    report.distinct = values_.size();
    report.counts = total_.counts;
    report.counts.not_run = values_.size() - total_.counts.run;
    if (report.counts.not_run == 0) report.digest = digest_.hex();
    report.fields = subject_.fields;
    report.word_names = subject_.word_names;
    report.word_kind = subject_.word_kind;
    report.differing = total_.differing;
    report.max_ulp = total_.max_ulp;
    report.differences = total_.differences.take();
    report.failures = total_.failures.take();
    report.isolation.sampled = total_.sampled;
    report.isolation.unstable = total_.unstable_count;
    if (auto unstable = total_.unstable.take(); !unstable.empty()) report.isolation.first_value = std::move(unstable.front());
    for (const auto& [what, observation] : total_.observations) {
      if (report.notes.size() == max_notes) {
        report.notes.push_back(fmt::format("{} more facts of this kind are not listed", total_.observations.size() - max_notes));
        break;
      }
      report.notes.push_back(fmt::format("on {} value{} the routine {} (first: {})", observation.values,
                                         observation.values == 1 ? "" : "s", what, to_hex(observation.first_value)));
    }
    return report;
  }

  const Image& image_;
  const Routine& routine_;
  const Subject& subject_;
  Environment environment_;
  const ValueSet& values_;
  const VerifyOptions& options_;
  std::size_t packed_size_;
  std::size_t word_count_;
  std::string witness_;
  std::vector<std::uint64_t> sample_;  // positions of the values to run again alone

  std::mutex mutex_;  // guards what follows, but for the atomic
  Tally total_;
  OrderedDigest digest_;
  std::uint64_t done_ = 0;
  std::map<std::thread::id, std::uint64_t> wrong_by_thread_;
  std::chrono::steady_clock::time_point last_progress_{};
  std::exception_ptr failure_;

  std::uint64_t batches_;
  std::atomic<std::uint64_t> next_batch_{0};
};

}  // namespace

RunReport verify(const Image& image, const Routine& routine, const Subject& subject, const Environment& environment,
                 const ValueSet& values, const VerifyOptions& options) {
  const std::size_t packed = routine.signature.packed_size();
  const std::size_t words = routine.signature.word_count();
  if (packed != subject.packed_size) {
    throw Error(fmt::format("routine {} takes {} bytes a value by its signature '{}', decoder {} takes {}", routine.name,
                            packed, to_string(routine.signature), subject.name, subject.packed_size));
  }
  if (words != subject.word_names.size()) {
    throw Error(fmt::format("routine {} gives {} words by its signature '{}', decoder {} gives {}", routine.name, words,
                            to_string(routine.signature), subject.name, subject.word_names.size()));
  }
  if (values.packed_size() != packed) {
    throw Error(fmt::format("the values have {} bytes, routine {} takes {}", values.packed_size(), routine.name, packed));
  }
  return Verification(image, routine, subject, environment, values, options).run();
}

}  // namespace bitwitness
