#pragma once
#include "harness/signature.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace bitwitness {

inline constexpr std::uint64_t page_size = 4096;

constexpr std::uint64_t round_up_to_page(std::uint64_t bytes) {
  return (bytes + page_size - 1) & ~(page_size - 1);
}

/// What stands in places that a signature gives no value: registers, stack, bytes behind the input. A routine whose
/// result depends on them gives other words under another filler.
struct Filler {
  /// Register n holds general + n * filler_stride + filler_stride / 2: addresses around which nothing is mapped.
  std::uint32_t general = 0;
  std::uint32_t stack_word =
      0;  ///< the same for stack words that hold no argument, from the lowest up; elsewhere itself
  std::uint8_t input_byte = 0;  ///< behind the packed bytes
  std::uint32_t xmm_word = 0;   ///< each 32 bits of an XMM register that holds no argument
};

inline constexpr std::uint32_t filler_stride = 0x10000;

/// Words of filler above the last stack argument: a read of an argument that the signature lacks is told by its value.
inline constexpr std::size_t filler_words = 16;

/// Words below the stack arguments of win64 in which a routine may keep its register arguments; also filler.
inline constexpr std::size_t win64_home_words = 4;

/// Bytes of stack below the frame that each call of a batch finds as the first one did. Deeper down only a batch starts
/// anew.
inline constexpr std::size_t fresh_stack = 512;

/// A guest address range of `size` bytes.
struct Region {
  std::uint64_t address = 0;
  std::uint64_t size = 0;

  [[nodiscard]] std::uint64_t end() const { return address + size; }
  [[nodiscard]] bool contains(std::uint64_t at) const { return at - address < size; }
};

/// A stretch of a buffer without gaps.
struct Piece {
  std::size_t offset = 0;  ///< in the buffer
  std::size_t size = 0;    ///< bytes
};

/// A buffer that a pointer argument points at.
struct Slot {
  Role role = Role::in;
  Type type;
  std::vector<Piece> pieces;      ///< in order; what lies between them belongs to nobody
  Region region;                  ///< the buffer itself
  std::size_t packed_offset = 0;  ///< of its bytes in the packed value (in, inout)
  std::size_t argument = 0;       ///< index in the signature

  [[nodiscard]] bool has_gaps() const { return pieces.size() != 1 || pieces.front().offset != 0; }
};

/// Packed bytes that are copied to a place other than a slot before each call, extended to `width` bytes.
struct Patch {
  enum class Place : std::uint8_t { stack, general, xmm };
  Place place = Place::stack;
  std::size_t target = 0;  ///< offset in the frame, or register number
  std::size_t packed_offset = 0;
  std::size_t size = 0;
  std::size_t width = 0;
  bool is_signed = false;
};

/// One element of the output and where it is after the call.
struct OutputElement {
  enum class Source : std::uint8_t { slot, result_slot, general, general_pair, xmm };
  Source source = Source::slot;
  std::size_t index = 0;   ///< of the slot, or number of the register
  std::size_t offset = 0;  ///< in the slot
  Scalar scalar = Scalar::f32;
};

/// Addresses of everything that surrounds a call, relative to nothing: guest memory outside the image. The ranges
/// between the regions stay unmapped and guard their ends.
struct CallLayout {
  Region whole;
  Region code;     ///< the stub; read and execute
  Region control;  ///< what the stub loads; read only
  Region input;    ///< every `in` slot; read only
  Region result;   ///< where the stub stores st0; one page
  Region stack;
  Region traps;  ///< never mapped; one address per import
  Region gap;    ///< 4 MiB without any access; what a witness does with it is its own affair
};

/// Offsets in the control page.
inline constexpr std::size_t control_fpcw = 0;
inline constexpr std::size_t control_mxcsr = 4;
inline constexpr std::size_t control_stop = 8;
inline constexpr std::size_t control_general = 16;
inline constexpr std::size_t control_xmm = 160;

/// Bytes between two traps.
inline constexpr std::uint64_t trap_stride = 16;

/// How a signature's arguments are placed and its output is found, as plain data that a witness carries out.
struct CallPlan {
  bool is_64_bit = false;
  CallLayout layout;
  std::vector<Slot> slots;
  std::vector<Patch> patches;
  std::vector<OutputElement> outputs;
  std::vector<std::byte> frame;   ///< stack bytes from entry_sp up: return address, arguments, filler, copies of values
  std::size_t filler_offset = 0;  ///< in the frame: what a caller would keep for itself
  std::size_t filler_bytes = 0;
  std::uint64_t entry_sp = 0;        ///< stack pointer at the routine's first instruction
  std::uint64_t returned_sp = 0;     ///< stack pointer after it has returned as its convention says
  std::uint64_t argument_bytes = 0;  ///< of stack arguments, for messages
  std::array<std::uint64_t, 16> general{};
  std::array<std::array<std::uint32_t, 4>, 16> xmm{};
  std::size_t packed_size = 0;
  std::size_t word_count = 0;
};

/// Plans calls of a signature with the surroundings laid out from `base` on. The return address in the frame is left 0:
/// it belongs to the stub. Precondition: require_callable(signature, is_64_bit) passed.
CallPlan plan_call(const Signature& signature, bool is_64_bit, std::uint64_t base, std::size_t import_count,
                   const Filler& filler);

/// Returns the first argument or result that covers an output word, as a signature spells it, for messages.
std::string describe_output(const Signature& signature, std::size_t word);

}  // namespace bitwitness
