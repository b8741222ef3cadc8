#include "harness/probe/exploration.hpp"

#include "harness/call_room.hpp"
#include "harness/disassembly.hpp"
#include "harness/guest_memory.hpp"
#include "harness/path_recorder.hpp"
#include "harness/refused_code.hpp"
#include "harness/signature.hpp"
#include "harness/watchdog.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::uint64_t region_size = 3 * page_size;
constexpr std::uint64_t region_front = page_size;  // of it, before the pointer
constexpr std::uint64_t stack_size = 64 * page_size;
constexpr std::uint64_t room_above_stack_pointer = 2048;
constexpr std::uint64_t gap_size = 4 * 1024 * 1024;
constexpr unsigned stack_pointer = 4;
constexpr unsigned frame_pointer = 5;
constexpr std::size_t max_stack_accesses = 40'000;
constexpr std::size_t max_numbers = 32;
constexpr std::size_t max_image_reads = 4096;
constexpr std::size_t max_accesses = 20'000;
constexpr std::size_t max_path = 65'536;
constexpr std::uint32_t stack_filler = 0xcad5cad5;
/// CPU time without an instruction after which the emulator is told to stop.
constexpr std::chrono::milliseconds silence_limit{500};

/// A plan of the surroundings alone: memory for every place, a stack, and a page to return to.
CallPlan plan_surroundings(const Image& image, std::size_t places) {
  CallPlan plan;
  plan.is_64_bit = image.format() == ImageFormat::pe32_plus;
  std::uint64_t cursor = 0;
  const auto take = [&cursor](std::uint64_t bytes) {
    const Region region{cursor, round_up_to_page(bytes)};
    cursor = region.end() + page_size;  // unmapped
    return region;
  };
  CallLayout& layout = plan.layout;
  layout.code = take(page_size);
  layout.control = take(page_size);
  layout.input = take(page_size);
  for (std::size_t i = 0; i < places; ++i) {
    plan.slots.push_back({Role::inout, {Scalar::u8, region_size, true}, {{0, region_size}}, take(region_size), 0, i});
  }
  layout.result = take(page_size);
  layout.stack = take(stack_size);
  layout.traps = {cursor, round_up_to_page(std::max<std::uint64_t>(image.imports().size(), 1) * trap_stride)};
  layout.gap = {layout.traps.end() + page_size, gap_size};
  layout.whole = {0, layout.gap.end()};
  const std::uint64_t base = find_base(image, layout.whole.size);
  for (Region* region : {&layout.code, &layout.control, &layout.input, &layout.result, &layout.stack, &layout.traps,
                         &layout.gap, &layout.whole}) {
    region->address += base;
  }
  for (Slot& slot : plan.slots) slot.region.address += base;
  return plan;
}

}  // namespace

std::string to_string(const Place& place, bool is_64_bit) {
  if (place.kind == Place::Kind::stack) return fmt::format("stack argument {}", place.index + 1);
  return to_string(Register{RegisterClass::general, static_cast<std::uint8_t>(place.index)}, is_64_bit);
}

/// One emulator and its memory.
struct Exploration::Bench final : EmulatorEvents, Watched {
  Bench(const Image& from, std::size_t places, bool with_thread_block, const ExplorationOptions& given)
      : image(from),
        options(given),
        plan(plan_surroundings(from, places)),
        emulator(plan.is_64_bit, *this),
        memory(emulator, from, plan, true, with_thread_block),
        has_thread_block(with_thread_block),
        watchdog(silence_limit, {}) {
    pointer_size = plan.is_64_bit ? 8 : 4;
    // As compilers arrange it, the arguments begin on a 16-byte boundary.
    arguments = plan.layout.stack.end() - room_above_stack_pointer;
    std::byte* stack = memory.host(plan.layout.stack.address);
    for (std::size_t at = 0; at < plan.layout.stack.size; at += 4) std::memcpy(stack + at, &stack_filler, 4);
    for (const Slot& slot : plan.slots) {
      std::memset(memory.host(slot.region.address), 0x69, static_cast<std::size_t>(slot.region.size));
    }
    emulator.watch_reads();
    emulator.watch_writes();
    emulator.watch_instructions(1, 0);
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() override { emulator.close(); }  // before the memory it has mapped goes

  struct CodeFacts {
    bool is_refused = false;
    bool names_thread_block = false;
    bool is_conditional = false;
    bool is_indirect = false;
    bool has_gone_on = false;  // a conditional jump: has not been taken at some time
    bool has_jumped = false;
    std::uint64_t next = 0;  // instruction behind it
    std::uint64_t target = 0;
    std::int64_t stack = 0;  // from the first argument to where esp points, when it was met first
    std::int64_t frame = 0;
  };

  [[nodiscard]] std::uint64_t pointer(std::size_t place) const {
    return plan.slots[place].region.address + region_front;
  }

  [[nodiscard]] std::byte* window(std::size_t place) { return memory.host(pointer(place) - window_front); }

  const CodeFacts& facts_of(std::uint64_t address) {
    const auto [known, is_new] = code.try_emplace(address);
    if (is_new) {
      if (const auto instruction = executed_instruction(image, address)) {
        known->second.is_refused = !why_refused(image, *instruction).empty();
        known->second.names_thread_block = names_thread_block(instruction->text, plan.is_64_bit);
        note_flow(known->second, *instruction);
      }
    }
    return known->second;
  }

  void note_flow(CodeFacts& facts, const Instruction& instruction) {
    // What stands for an import is no part of the routine.
    if (const Segment* segment = image.find(instruction.address); segment != nullptr && segment->is_added) return;
    if (instruction.flow == Flow::conditional_jump && instruction.target) {
      facts.is_conditional = true;
      facts.next = instruction.address + instruction.size;
      facts.target = *instruction.target;
      facts.stack = distance_to(emulator.general(stack_pointer));
      facts.frame = distance_to(emulator.general(frame_pointer));
    }
    facts.is_indirect = instruction.flow == Flow::indirect_jump;
    const std::string_view text = instruction.text;
    const bool compares = text.starts_with("cmp") || text.starts_with("sub") || text.starts_with("add") ||
                          text.starts_with("xor") || text.starts_with("test") || text.starts_with("lea");
    if (!compares || numbers.size() >= max_numbers) return;
    for (const std::uint64_t number : instruction.immediates) {
      if (image.find(number) == nullptr && std::ranges::find(numbers, number) == numbers.end())
        numbers.push_back(number);
    }
  }

  [[nodiscard]] std::int64_t distance_to(std::uint64_t address) const {
    return static_cast<std::int64_t>(address - arguments);
  }

  void run(std::uint64_t address, const Attempt& attempt, std::span<const Place> places) {
    memory.restore();
    std::byte* frame = memory.host(arguments - pointer_size);
    const std::uint64_t landing = plan.layout.code.address;
    std::memcpy(frame, &landing, pointer_size);
    Emulator::Registers registers;
    registers.fpcw = options.environment.fpcw;
    registers.mxcsr = options.environment.mxcsr;
    registers.xmm = attempt.xmm;
    registers.general[stack_pointer] = arguments - pointer_size;
    for (std::size_t i = 0; i < places.size(); ++i) {
      std::memcpy(window(i), attempt.contents.data() + i * window_size, window_size);
      const std::uint64_t word = attempt.integers[i].value_or(pointer(i));
      if (places[i].kind == Place::Kind::general) {
        registers.general[places[i].index] = word;
      } else {
        std::memcpy(frame + pointer_size * (1 + places[i].index), &word, pointer_size);
      }
    }
    observed.accesses.clear();
    observed.path.clear();
    observed.stack.clear();
    previous = nullptr;
    observed.instructions = 0;
    observed.instruction = address;
    observed.end = Observed::End::trapped;
    needs_thread_block = false;
    null_access.reset();
    watchdog.arm(*this);
    observed.trap = emulator.start(address, registers);
    watchdog.disarm();
    if (null_access) observed.trap = *null_access;
    observed.is_whole = observed.path.size() == observed.instructions && observed.stack.size() < max_stack_accesses;
    gather();
  }

  void gather() {
    for (unsigned reg = 0; reg < (plan.is_64_bit ? 16u : 8u); ++reg) {
      observed.general[reg] = emulator.general(reg);
      observed.xmm[reg] = emulator.xmm(reg);
    }
    observed.removed = static_cast<std::int64_t>(observed.general[stack_pointer] - arguments);
    if (!plan.is_64_bit) observed.removed = static_cast<std::int32_t>(observed.removed);
    observed.x87_values = emulator.x87_values();
    observed.st0 = emulator.x87(0);
  }

  bool on_port_write(std::uint32_t, std::uint32_t) override { return false; }

  void on_write(std::uint64_t address, unsigned size) override {
    memory.before_write(address, size);
    if (recorder) recorder->on_write(address, size);
    record(address, size, true);
  }

  void on_read(std::uint64_t address, unsigned size) override {
    if (recorder) recorder->on_read(address, size);
    record(address, size, false);
  }

  void record(std::uint64_t address, unsigned size, bool is_write) {
    ObservedAccess access{ObservedAccess::Where::image, is_write, static_cast<std::uint8_t>(size), 0, 0,
                          observed.instruction};
    const std::uint64_t first_region = plan.slots.front().region.address;
    const std::uint64_t stride = region_size + page_size;
    const std::uint64_t place = (address - first_region) / stride;
    if (address >= first_region && place < plan.slots.size()) {
      access.where = ObservedAccess::Where::region;
      access.place = static_cast<std::uint16_t>(place);
      access.offset = static_cast<std::int32_t>(address - pointer(place));
    } else if (plan.layout.stack.contains(address)) {
      if (observed.stack.size() < max_stack_accesses && !observed.path.empty()) {
        observed.stack.push_back({static_cast<std::uint32_t>(observed.path.size() - 1), is_write,
                                  static_cast<std::uint8_t>(size), static_cast<std::int32_t>(distance_to(address))});
      }
      if (address < arguments) return;
      access.where = ObservedAccess::Where::arguments;
      access.offset = static_cast<std::int32_t>(address - arguments);
    } else if (has_thread_block && thread_block_of(plan).contains(address)) {
      // At 0 only through the segment: everything else that lands here is a null pointer.
      if (!plan.is_64_bit && !facts_of(observed.instruction).names_thread_block && !null_access) {
        null_access = Trap{Trap::Kind::unmapped, is_write ? Access::write : Access::read, address, size, 0};
        emulator.stop();
      }
      return;
    } else {
      note_state(address, is_write);
      if (!is_write) return;
    }
    if (observed.accesses.size() < max_accesses) observed.accesses.push_back(access);
  }

  void note_state(std::uint64_t address, bool is_write) {
    if (state || image_reads.size() >= max_image_reads) return;
    const Segment* segment = image.find(address);
    if (segment == nullptr || !segment->writable) return;
    if (!is_write) image_reads.insert(address);
    if (is_write && image_reads.contains(address)) state = address;
  }

  bool on_instruction(std::uint64_t address) override {
    progress_.store(progress_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    if (address == plan.layout.code.address) {
      observed.end = Observed::End::returned;
      return false;
    }
    if (null_access) return false;
    if (recorder) recorder->on_instruction(address);
    observed.instruction = address;
    if (previous != nullptr && previous->is_indirect) indirect_targets[observed.instruction].insert(address);
    if (previous != nullptr) (address == previous->next ? previous->has_gone_on : previous->has_jumped) = true;
    const CodeFacts& facts = facts_of(address);
    previous = facts.is_conditional || facts.is_indirect ? &code.find(address)->second : nullptr;
    if (facts.is_refused) {
      observed.end = Observed::End::refused;
      return false;
    }
    if (facts.names_thread_block && !has_thread_block) {
      needs_thread_block = true;
      return false;
    }
    if (++observed.instructions > options.budget) {
      observed.end = Observed::End::out_of_budget;
      return false;
    }
    if (observed.path.size() < max_path) observed.path.push_back(address);
    return true;
  }

  bool on_new_code(std::uint64_t, unsigned) override { return true; }

  [[nodiscard]] std::uint64_t progress() const override { return progress_.load(std::memory_order_relaxed); }
  void interrupt() override { emulator.stop(); }

  const Image& image;
  ExplorationOptions options;
  CallPlan plan;
  Emulator emulator;
  GuestMemory memory;
  bool has_thread_block;
  unsigned pointer_size = 4;
  std::uint64_t arguments = 0;  // address of the first word above the return address
  std::unordered_map<std::uint64_t, CodeFacts> code;
  CodeFacts* previous = nullptr;  // of the instruction before, if that is a conditional or indirect jump
  std::map<std::uint64_t, std::set<std::uint64_t>> indirect_targets;
  std::vector<std::uint64_t> numbers;
  Observed observed;
  bool needs_thread_block = false;
  std::optional<Trap> null_access;
  std::unordered_set<std::uint64_t> image_reads;  // of writable memory
  std::optional<std::uint64_t> state;
  std::optional<PathRecorder> recorder;  // while a call is recorded
  std::atomic<std::uint64_t> progress_{0};
  Watchdog watchdog;
};

Exploration::Exploration(const Image& image, std::uint64_t address, const ExplorationOptions& options)
    : image_(image), address_(address), options_(options) {
  const bool is_64_bit = image.format() == ImageFormat::pe32_plus;
  for (unsigned i = 0; i < explored_stack_words; ++i) places_.push_back({Place::Kind::stack, i});
  for (unsigned i = 0; i < (is_64_bit ? 16u : 8u); ++i) {
    if (i != stack_pointer) places_.push_back({Place::Kind::general, i});
  }
  bench_ = std::make_unique<Bench>(image_, places_.size(), false, options_);
}

Exploration::~Exploration() = default;

std::span<const Place> Exploration::places() const {
  return places_;
}

std::uint64_t Exploration::pointer(std::size_t place) const {
  return bench_->pointer(place);
}

Attempt Exploration::blank() const {
  Attempt attempt;
  attempt.integers.resize(places_.size());
  attempt.contents.resize(places_.size() * window_size);
  return attempt;
}

void Exploration::replace_bench() {
  auto other = std::make_unique<Bench>(image_, places_.size(), uses_thread_block_, options_);
  other->code = std::move(bench_->code);
  other->numbers = std::move(bench_->numbers);
  other->state = bench_->state;
  other->indirect_targets = std::move(bench_->indirect_targets);
  bench_ = std::move(other);
}

const Observed& Exploration::run(const Attempt& attempt) {
  // The engine keeps what it has translated: code that was written over needs another one.
  if (bench_->memory.code_was_written()) {
    writes_code_ = true;
    replace_bench();
  }
  ++calls_;
  bench_->run(address_, attempt, places_);
  executed_ += bench_->observed.instructions;
  if (bench_->needs_thread_block) {
    uses_thread_block_ = true;
    replace_bench();
    bench_->run(address_, attempt, places_);
    executed_ += bench_->observed.instructions;
  }
  writes_code_ |= bench_->memory.code_was_written();
  return bench_->observed;
}

std::span<const std::byte> Exploration::after(std::size_t place) const {
  return {bench_->window(place), window_size};
}

std::uint64_t Exploration::executed() const {
  return executed_;
}

std::size_t Exploration::calls() const {
  return calls_;
}

std::vector<HalfSeenJump> Exploration::half_seen() const {
  std::vector<HalfSeenJump> jumps;
  const auto on_stack = [this](std::int64_t distance) {
    const auto size = static_cast<std::int64_t>(stack_size);
    return distance > -size && distance < size ? std::optional(distance) : std::nullopt;
  };
  for (const auto& [address, facts] : bench_->code) {
    if (!facts.is_conditional || facts.has_gone_on == facts.has_jumped) continue;
    jumps.push_back(
        {address, facts.has_gone_on ? facts.target : facts.next, on_stack(facts.stack), on_stack(facts.frame)});
  }
  std::ranges::sort(jumps, {}, &HalfSeenJump::address);
  return jumps;
}

std::vector<TableJump> Exploration::table_jumps() const {
  std::vector<TableJump> jumps;
  for (const auto& [address, targets] : bench_->indirect_targets) jumps.push_back({address, targets.size()});
  return jumps;
}

bool Exploration::was_executed(std::uint64_t address) const {
  return bench_->code.contains(address);
}

std::optional<std::uint64_t> Exploration::state() const {
  return bench_->state;
}

std::span<const std::uint64_t> Exploration::numbers() const {
  return bench_->numbers;
}

std::vector<std::string> Exploration::path(const Attempt& attempt) {
  bench_->recorder.emplace(image_, bench_->emulator);
  run(attempt);
  if (!bench_->recorder) return {};  // another bench took over
  std::vector<std::string> clauses = bench_->recorder->clauses();
  bench_->recorder.reset();
  return clauses;
}

bool Exploration::uses_thread_block() const {
  return uses_thread_block_;
}

bool Exploration::writes_code() const {
  return writes_code_;
}

std::string Exploration::why(const Observed& observed) const {
  if (observed.end == Observed::End::out_of_budget) {
    return fmt::format("has executed {} instructions and not returned", options_.budget);
  }
  if (observed.end == Observed::End::refused) {
    if (const auto instruction = executed_instruction(image_, observed.instruction)) {
      return fmt::format("meets '{}', which {}", instruction->text, why_refused(image_, *instruction));
    }
  }
  const Trap& trap = observed.trap;
  switch (trap.kind) {
    case Trap::Kind::unmapped:
    case Trap::Kind::forbidden: {
      const Region& traps = bench_->plan.layout.traps;
      const std::uint64_t import = (trap.address - traps.address) / trap_stride;
      if (traps.contains(trap.address) && import < image_.imports().size()) {
        return fmt::format("{} the import {}!{}", trap.access == Access::execute ? "calls" : verb(trap.access),
                           image_.imports()[import].library, image_.imports()[import].name);
      }
      const char* what = trap.kind == Trap::Kind::unmapped ? "where nothing is mapped" : "which it may not";
      if (trap.access == Access::execute) return fmt::format("jumps to {:#x}, {}", trap.address, what);
      return fmt::format("{} {} byte{} at {:#x}, {}", verb(trap.access), trap.size, trap.size == 1 ? "" : "s",
                         trap.address, what);
    }
    case Trap::Kind::interrupt:
      return fmt::format("raises interrupt {:#x}", trap.vector);
    case Trap::Kind::invalid:
      return "meets bytes that are no instruction of the emulated CPU";
    case Trap::Kind::port:
      return fmt::format("{} an I/O port", trap.access == Access::read ? "reads" : "writes");
    case Trap::Kind::system_call:
      return "calls the operating system";
    case Trap::Kind::none:
    case Trap::Kind::halt:
      return "halts the CPU";
    case Trap::Kind::stopped:
      return "stops making progress";
    case Trap::Kind::engine:
      break;
  }
  if (trap.vector == Trap::broke_off) {
    return fmt::format("leads to the code at {:#x}, on which the emulator breaks off", trap.address);
  }
  return fmt::format("stops the emulator with its error {}", trap.vector);
}

}  // namespace bitwitness
