#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// What a routine computes, as expressions over the bits of one packed value.
namespace bitwitness::proof {

/// A value of up to 128 bits; those above its width are 0.
__extension__ typedef unsigned __int128 Bits;

/// An expression in a Store. Operands have lower ids than what they are in, and equal expressions equal ids.
using NodeId = std::uint32_t;

/// Widest expression: an XMM register.
inline constexpr unsigned max_width = 128;

/// Formats of floating-point numbers: 32, 64 and 80 bits of an expression.
enum class Format : std::uint8_t { f32, f64, x80 };

/// Rounding modes as both control words encode them.
enum class Rounding : std::uint8_t { nearest, down, up, zero };

/// How a floating-point operation rounds. Its format says how its operands and its result are encoded and how far its
/// exponents reach; x80 operations round their significand to `precision` bits and keep that range, as x87 does.
struct FloatMode {
  Format format = Format::f64;
  std::uint8_t precision = 53;  ///< 24 for f32, 53 for f64; 24, 53 or 64 for x80
  Rounding rounding = Rounding::nearest;
  bool denormals_are_zero = false;  ///< f32 and f64: MXCSR.DAZ
  bool flush_to_zero = false;       ///< f32 and f64: MXCSR.FTZ
  bool operator==(const FloatMode&) const = default;
};

/// What an expression is. Operands are named a, b, c; "bit" is an expression of width 1.
enum class Kind : std::uint8_t {
  constant,            ///< `value`
  input,               ///< bits of the packed value from bit `low` on: bit n is bit n % 8 of byte n / 8
  unknown,             ///< what the signature gives no value, or what processors leave undefined; never two alike
  concat,              ///< a above b; a is no concat itself
  extract,             ///< bits of a from bit `low` on
  sign_extend,         ///< a
  bit_and,             ///< a & b
  bit_or,              ///< a | b
  bit_xor,             ///< a ^ b
  bit_not,             ///< ~a
  add,                 ///< a + b, of the result's width
  subtract,            ///< a - b
  multiply,            ///< a * b
  shift_left,          ///< a << b; 0 from the width on
  shift_right,         ///< a >> b; 0 from the width on
  shift_right_signed,  ///< the same with copies of the sign
  rotate_left,         ///< a by b modulo the width
  equal,               ///< bit: a == b
  less_unsigned,       ///< bit: a < b
  less_signed,         ///< bit: a < b
  choose,              ///< a ? b : c, where a is a bit
  table,               ///< bytes of table `low` at address a, low byte first; 0 when they do not lie in it
  float_add,           ///< a + b, rounded; which NaN wins depends on the order
  float_subtract,      ///< a - b
  float_multiply,      ///< a * b
  float_divide,        ///< a / b
  float_sqrt,          ///< of a
  float_min,           ///< SSE: a < b ? a : b, so b when one is NaN or both are zero
  float_max,           ///< SSE: a > b ? a : b
  float_convert,       ///< a from format `source`; sNaN becomes quiet
  float_widen,         ///< a from f32 or f64 to x80 where sNaN stays what it is: x87's operand in memory
  float_from_integer,  ///< a as a signed integer
  float_to_integer,    ///< a, rounded; 0x80…0 when it does not fit or is no number
  float_round,         ///< a, rounded to an integer, x80 only
  float_unordered,     ///< bit: a or b is no number
  float_less,          ///< bit: a < b
  float_equal          ///< bit: a == b, as numbers: zeros are equal
};

/// One expression. Which members mean something depends on the kind.
struct Node {
  Kind kind = Kind::constant;
  std::uint8_t width = 0;  ///< bits, 1 … max_width
  std::uint8_t operand_count = 0;
  bool has_input = false;    ///< depends on the packed value
  bool has_unknown = false;  ///< depends on something unknown
  FloatMode mode;            ///< float_…: of the result, or of the operands where the result is a bit or an integer
  Format source = Format::f64;  ///< float_convert, float_widen: of the operand
  std::array<NodeId, 3> operands{};
  std::uint64_t low = 0;   ///< see Kind; of a constant the lower half
  std::uint64_t high = 0;  ///< of a constant the upper half

  [[nodiscard]] Bits value() const { return Bits{high} << 64 | low; }
  [[nodiscard]] std::span<const NodeId> parts() const { return std::span(operands).first(operand_count); }
};

/// Read-only bytes of an image that expressions look up.
struct Table {
  std::uint64_t address = 0;
  std::vector<std::byte> bytes;
};

/// All ones of a width.
constexpr Bits ones(unsigned width) {
  return width >= max_width ? ~Bits{0} : (Bits{1} << width) - 1;
}

/// Bits of a format: 32, 64 or 80.
constexpr unsigned width_of(Format format) {
  return format == Format::f32 ? 32 : format == Format::f64 ? 64 : 80;
}

/// Bits of a format's significand: 24, 53 or 64.
constexpr std::uint8_t precision_of(Format format) {
  return format == Format::f32 ? 24 : format == Format::f64 ? 53 : 64;
}

/// Operands of widths that do not belong together: a mistake of whoever made the expression.
class MisfitError : public std::logic_error {
 public:
  MisfitError() : std::logic_error("an expression has operands of widths that do not belong together") {}
};

/// Holds expressions, each once. The functions that make them simplify what is equal for every value of the operands,
/// NaN and signed zeros included: constants are folded (floating-point ones by this computer's processor), masks and
/// shifts by constants become extracts and concats with zeros, bytes that belong together are joined again. Widths that
/// do not fit as said throw MisfitError. Not thread-safe.
class Store {
 public:
  Store();

  [[nodiscard]] const Node& operator[](NodeId id) const { return nodes_[id]; }
  [[nodiscard]] std::size_t size() const { return nodes_.size(); }
  [[nodiscard]] unsigned width(NodeId id) const { return nodes_[id].width; }
  [[nodiscard]] bool is_constant(NodeId id) const { return nodes_[id].kind == Kind::constant; }
  [[nodiscard]] bool is_constant(NodeId id, Bits value) const { return is_constant(id) && nodes_[id].value() == value; }
  [[nodiscard]] const Table& table(std::size_t index) const { return tables_[index]; }
  [[nodiscard]] const std::string& unknown_reason(NodeId id) const { return unknown_reasons_[nodes_[id].low]; }

  // ---- leaves
  NodeId constant(unsigned width, Bits value);  ///< bits above the width are dropped
  NodeId input(std::size_t first_bit, unsigned width);
  NodeId unknown(unsigned width, std::string reason);  ///< a new one each time
  NodeId bit(bool value) { return constant(1, value ? 1 : 0); }

  // ---- placing bits
  NodeId concat(NodeId high, NodeId low);
  NodeId extract(NodeId from, unsigned first_bit, unsigned width);
  NodeId zero_extend(NodeId from, unsigned width);  ///< to `width`, which may be the same
  NodeId sign_extend(NodeId from, unsigned width);
  NodeId join(std::span<const NodeId> parts);  ///< concat of any number, lowest first

  // ---- integers; operands of binary operations have the same width, a shift's count too
  NodeId bit_and(NodeId a, NodeId b);
  NodeId bit_or(NodeId a, NodeId b);
  NodeId bit_xor(NodeId a, NodeId b);
  NodeId bit_not(NodeId a);
  NodeId add(NodeId a, NodeId b);
  NodeId subtract(NodeId a, NodeId b);
  NodeId multiply(NodeId a, NodeId b);
  NodeId shift_left(NodeId a, NodeId count);
  NodeId shift_right(NodeId a, NodeId count);
  NodeId shift_right_signed(NodeId a, NodeId count);
  NodeId rotate_left(NodeId a, NodeId count);
  NodeId equal(NodeId a, NodeId b);
  NodeId less_unsigned(NodeId a, NodeId b);
  NodeId less_signed(NodeId a, NodeId b);
  NodeId choose(NodeId condition, NodeId if_true, NodeId if_false);

  /// Looks up `bytes` bytes (1 … 16) at an address.
  NodeId look_up(NodeId address, std::size_t table, unsigned bytes);
  std::size_t add_table(std::uint64_t address, std::span<const std::byte> bytes);  ///< returns its index

  // ---- floating-point numbers
  /// float_add, _subtract, _multiply, _divide, _min or _max.
  NodeId float_binary(Kind kind, NodeId a, NodeId b, const FloatMode& mode);
  NodeId float_sqrt(NodeId a, const FloatMode& mode);
  NodeId float_round(NodeId a, const FloatMode& mode);
  /// From a format to that of the mode.
  NodeId float_convert(NodeId a, Format source, const FloatMode& mode);
  /// From f32 or f64 to x80, exactly; a float_convert where there can be no sNaN.
  NodeId float_widen(NodeId a, Format source);
  NodeId float_from_integer(NodeId a, const FloatMode& mode);
  NodeId float_to_integer(NodeId a, const FloatMode& mode, unsigned width);  ///< width 16, 32 or 64
  /// float_unordered, _less or _equal.
  NodeId float_compare(Kind kind, NodeId a, NodeId b, const FloatMode& mode);

  // ---- any kind
  /// Makes a node of a kind with other operands, simplified as its own function does: for rewriting from the leaves up.
  NodeId rebuild(const Node& node, std::span<const NodeId> operands);

 private:
  struct Parts;

  static void require(bool fits) {
    if (!fits) throw MisfitError();
  }

  NodeId add_node(Node node);
  NodeId add_folded(Node node);
  NodeId shift(Kind kind, NodeId a, NodeId count);
  static Node node_of(Kind kind, unsigned width, std::span<const NodeId> operands);
  NodeId make(Kind kind, unsigned width, std::span<const NodeId> operands, std::uint64_t low = 0);
  NodeId make_float(Kind kind, unsigned width, std::span<const NodeId> operands, const FloatMode& mode,
                    Format source = Format::f64);
  void grow();
  void collect_parts(Parts& parts, NodeId from) const;
  NodeId extract_from(NodeId from, unsigned first_bit, unsigned width, unsigned depth);
  NodeId merge(NodeId high, NodeId low);
  NodeId bitwise(Kind kind, NodeId a, NodeId b);
  std::optional<NodeId> bitwise_by_parts(Kind kind, NodeId a, NodeId b);
  bool are_disjoint(NodeId a, NodeId b) const;
  NodeId equal_to_constant(NodeId a, NodeId constant);
  unsigned zero_top(NodeId id) const;
  bool is_never_signalling(NodeId id, Format format) const;

  std::vector<Node> nodes_;
  std::vector<NodeId> slots_;  // open addressing; empty ones hold no_node
  std::vector<Table> tables_;
  std::vector<std::string> unknown_reasons_;
};

/// Prints an expression as an S-expression for people, shared parts repeated, cut off below `depth` levels.
std::string to_text(const Store& store, NodeId id, unsigned depth = 12);

/// Returns the name of a kind: "float_add".
std::string_view to_string(Kind kind);

/// Returns the expressions that the roots consist of, roots included, by rising id.
std::vector<NodeId> reachable(const Store& store, std::span<const NodeId> roots);

}  // namespace bitwitness::proof
