#pragma once
#include "harness/disassembly.hpp"
#include "harness/image.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bitwitness {

/// How far an emulated instruction can stand for the processor's. Measured, not believed: the table's test runs each
/// row on both.
enum class Exactness : std::uint8_t {
  exact,        ///< the processor's bits for every input, in every environment
  finite,       ///< the processor's bits where operands and results are numbers, and normal ones where it flushes them
  approximate,  ///< other last bits, on ordinary numbers
  wrong,        ///< other results
  refused,      ///< not executed: it ends the call
  unknown       ///< floating-point or vector, and not in the table
};

std::string_view to_string(Exactness exactness);

/// Tells whether the emulator's result is the processor's on ordinary numbers.
constexpr bool is_trusted(Exactness exactness) {
  return exactness == Exactness::exact || exactness == Exactness::finite;
}

/// What is known of an instruction under the emulator.
struct InstructionRow {
  std::string_view mnemonic;  ///< as the disassembler spells it
  Exactness exactness = Exactness::unknown;
  std::string_view reason;  ///< a clause with the instruction as its subject; empty when exact
};

/// The floating-point, vector and system instructions of x86 that are known, by mnemonic.
std::span<const InstructionRow> instruction_rows();

/// Returns what is known of an instruction by its text; an unknown row for a floating-point or vector instruction that
/// the table lacks, and null for all others, which an emulator executes exactly. Does not see encodings: VEX code is
/// `unknown` here.
const InstructionRow* find_row(std::string_view text);

/// Instructions of a routine that have one row.
struct AuditedRow {
  InstructionRow row;
  std::string mnemonic;
  std::string first_text;                ///< of the one at the lowest address
  std::vector<std::uint64_t> addresses;  ///< rising
};

/// Where code goes that was not audited.
struct Unfollowed {
  std::uint64_t address = 0;  ///< of the jump or call, or where no code is
  std::string text;           ///< of the instruction; empty where no code is
  std::string reason;         ///< a clause: "calls what a register holds"
};

/// What direct control flow reaches from an address.
struct Audit {
  std::uint64_t address = 0;
  std::size_t instructions = 0;        ///< audited, other ones included
  std::vector<AuditedRow> rows;        ///< worst first, then by mnemonic
  std::vector<Unfollowed> unfollowed;  ///< by rising address
  bool is_cut = false;                 ///< it has more instructions than the limit

  /// Tells whether all that can run is there and exact on ordinary numbers.
  [[nodiscard]] bool is_trusted() const;
};

inline constexpr std::size_t audit_limit = 65536;

/// Audits a routine and what it calls, also in libraries that the image's imports are bound to. Code from the image is
/// not executed.
Audit audit(const Image& image, std::uint64_t address, std::size_t limit = audit_limit);

/// Says what of a routine that the emulator alone ran cannot stand for the processor, a sentence for each class;
/// nothing when all is exact.
std::vector<std::string> audit_notes(const Audit& audit);

}  // namespace bitwitness
