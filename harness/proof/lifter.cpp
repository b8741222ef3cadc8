#include "harness/proof/lifter.hpp"

#include "harness/error.hpp"
#include "harness/proof/call_entry.hpp"
#include "harness/proof/lift_state.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace bitwitness::proof {
namespace {

using Rows = std::unordered_map<std::string_view, Lifting>;

const Rows& all_rows() {
  static const Rows rows = [] {
    Rows all;
    for (const auto family :
         {integer_rows(), shift_rows(), flow_rows(), sse_move_rows(), sse_integer_rows(), sse_number_rows()}) {
      for (const LiftRow& row : family) all.emplace(row.mnemonic, row.lift);
    }
    return all;
  }();
  return rows;
}

/// String instructions share names with SSE ones.
std::string_view row_name(const DetailedInstruction& from) {
  const auto is_xmm = [](const Operand& operand) { return operand.part.file == RegisterPart::File::xmm; };
  if (from.mnemonic == "movsd" && std::ranges::none_of(from.operands, is_xmm)) return "movs dword";
  return from.mnemonic;
}

}  // namespace

struct Lifter::Impl {
  Store& store;
  const Program& program;
  std::uint64_t entry;
  std::size_t packed_size;
  LiftOptions options;
  CallEntry call;
  std::unordered_map<std::uint64_t, DetailedInstruction> decoded{};

  const DetailedInstruction& decode(const LiftState& state);
  void step(LiftState& state);
};

const DetailedInstruction& Lifter::Impl::decode(const LiftState& state) {
  if (const auto known = decoded.find(state.pc); known != decoded.end()) return known->second;
  const ProgramRange* range = program.find(state.pc);
  if (range == nullptr) throw LiftStop{fmt::format("goes to 0x{:x}, where nothing is mapped", state.pc)};
  auto from = take_apart(range->bytes.subspan(state.pc - range->address), state.pc, program.is_64_bit);
  if (!from) throw LiftStop{fmt::format("goes to 0x{:x}, where there is no instruction", state.pc)};
  return decoded.emplace(state.pc, std::move(*from)).first->second;
}

void Lifter::Impl::step(LiftState& state) {
  if (const std::string import = call.import_at(state.pc); !import.empty()) {
    throw LiftStop{fmt::format("calls {}, which is not part of the program", import)};
  }
  const DetailedInstruction& from = decode(state);
  if (state.memory.was_written(state.pc, from.bytes.size())) throw LiftStop{"executes what it has written"};
  state.current = state.pc;
  state.pc += from.bytes.size();
  if (!program.is_64_bit) state.pc &= 0xffffffff;
  ++state.executed;
  if (x87_opcode(from, program.is_64_bit)) {
    if (!lift_x87(state, from)) throw LiftStop{"is not known to lifts"};
    return;
  }
  const auto row = all_rows().find(row_name(from));
  const bool repeats = from.prefix.starts_with("rep");
  const bool is_string = from.mnemonic.starts_with("movs") || from.mnemonic.starts_with("stos");
  if (row == all_rows().end() || (repeats && !is_string)) throw LiftStop{"is not known to lifts"};
  row->second(state, from);
}

Lifter::Lifter(Store& store, const Program& program, std::uint64_t entry, const Signature& signature,
               const LiftOptions& options) {
  require_callable(signature, program.is_64_bit);
  impl_ = std::unique_ptr<Impl>(
      new Impl{store, program, entry, signature.packed_size(), options, CallEntry(program, signature)});
}

Lifter::~Lifter() = default;
Lifter::Lifter(Lifter&&) noexcept = default;

Lift Lifter::run(std::span<const std::byte> guide, const Environment& environment) {
  Impl& impl = *impl_;
  if (guide.size() != impl.packed_size) {
    throw Error(
        fmt::format("a packed value of {} bytes guides a routine that takes {}", guide.size(), impl.packed_size));
  }
  LiftState state(impl.store, impl.program, impl.options, guide);
  Lift lift;
  lift.environment = environment;
  std::set<std::uint64_t> addresses;
  const std::size_t nodes = impl.store.size();
  state.pc = impl.entry;
  const auto end = [&](const std::string& reason) {
    lift.reason = reason;
    lift.address = state.current;
    if (const auto at = impl.decoded.find(state.current); at != impl.decoded.end()) {
      lift.instruction = at->second.instruction.text;
    }
  };
  try {
    impl.call.enter(state, environment);
    while (state.pc != impl.call.return_address()) {
      if (state.executed >= impl.options.max_instructions) {
        throw LiftStop{fmt::format("has executed {} instructions", state.executed)};
      }
      if (impl.store.size() - nodes > impl.options.max_nodes) {
        throw LiftStop{fmt::format("has made more than {} expressions", impl.options.max_nodes)};
      }
      addresses.insert(state.pc);
      impl.step(state);
    }
    state.current = 0;
    lift.words = impl.call.leave(state);
    lift.lifted = true;
  } catch (const LiftStop& stop) {
    end(stop.reason);
  } catch (const MisfitError&) {  // the disassembler took an operand for a wider or narrower one
    end("has operands of sizes with which lifts do not know it");
  }
  lift.path = std::move(state.path);
  lift.executed = state.executed;
  lift.addresses.assign(addresses.begin(), addresses.end());
  const auto& reads = state.memory.writable_reads();
  lift.writable_reads.assign(reads.begin(), reads.end());
  return lift;
}

}  // namespace bitwitness::proof
