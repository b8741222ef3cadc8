// x87. What an instruction works on is read off its bytes: disassemblers leave out st(0) and mistake directions.
#include "harness/proof/lift_state.hpp"

#include <algorithm>

namespace bitwitness::proof {
namespace {

constexpr unsigned operand_size_prefix = 0x66;

/// An x87 instruction's opcode byte and the parts of the byte behind it.
struct Code {
  unsigned opcode = 0;  // d8 … df
  unsigned mod = 0;
  unsigned reg = 0;  // which operation
  unsigned rm = 0;   // which register
};

const Operand& memory_of(const DetailedInstruction& from) {
  const auto at = std::ranges::find(from.operands, Operand::Kind::memory, &Operand::kind);
  if (at == from.operands.end()) end_at_form();
  return *at;
}

class Unit {
 public:
  Unit(LiftState& state, const DetailedInstruction& from) : state_(state), store_(state.store), from_(from) {}

  bool with_memory(const Code& code);
  bool with_registers(const Code& code);

 private:
  X87& x87() { return state_.x87; }

  NodeId load(unsigned bits) { return state_.load(state_.address_of(memory_of(from_)), bits); }
  void save(NodeId value) { state_.store_to(state_.address_of(memory_of(from_)), value); }

  NodeId load_number(Format format) {
    return store_.float_convert(load(width_of(format)), format, {Format::x80, 64, Rounding::nearest, false, false});
  }
  /// What arithmetic takes from memory, where it is not loaded before.
  NodeId operand(Format format) { return store_.float_widen(load(width_of(format)), format); }
  NodeId load_integer(unsigned bits) {
    return store_.float_from_integer(load(bits), {Format::x80, 64, Rounding::nearest, false, false});
  }
  void save_number(Format format) {
    FloatMode mode = state_.x87_mode();
    mode.format = format;
    save(store_.float_convert(x87().read(0), Format::x80, mode));
  }
  void save_integer(unsigned bits, bool truncates) {
    FloatMode mode = state_.x87_mode();
    if (truncates) mode.rounding = Rounding::zero;
    save(store_.float_to_integer(x87().read(0), mode, bits));
  }
  void after() { x87().c1 = store_.unknown(1, "C1 of the x87 status word, which tells of rounding"); }

  /// The operations of rows d8 and dc to de: which, and what is on its left.
  NodeId arithmetic(unsigned reg, NodeId x, NodeId y) {
    const FloatMode mode = state_.x87_mode();
    switch (reg) {
      case 0:
        return store_.float_binary(Kind::float_add, x, y, mode);
      case 1:
        return store_.float_binary(Kind::float_multiply, x, y, mode);
      case 4:
        return store_.float_binary(Kind::float_subtract, x, y, mode);
      case 5:
        return store_.float_binary(Kind::float_subtract, y, x, mode);
      case 6:
        return store_.float_binary(Kind::float_divide, x, y, mode);
      default:
        return store_.float_binary(Kind::float_divide, y, x, mode);
    }
  }

  /// fcom and its like, into the status word.
  void compare(NodeId y) {
    const FloatMode mode = state_.x87_mode();
    const NodeId x = x87().read(0);
    const NodeId unordered = store_.float_compare(Kind::float_unordered, x, y, mode);
    x87().c0 = store_.bit_or(unordered, store_.float_compare(Kind::float_less, x, y, mode));
    x87().c2 = unordered;
    x87().c3 = store_.bit_or(unordered, store_.float_compare(Kind::float_equal, x, y, mode));
    x87().c1 = store_.bit(false);
  }

  void operate_on_top(unsigned reg, NodeId y) {
    if (reg == 2 || reg == 3) {
      compare(y);
      if (reg == 3) x87().pop();
      return;
    }
    x87().write(0, arithmetic(reg, x87().read(0), y));
    after();
  }

  void compare_into_flags(unsigned index, bool pops) {
    state_.flags.set_comparison(store_, x87().read(0), x87().read(index), state_.x87_mode());
    x87().c1 = store_.bit(false);
    if (pops) x87().pop();
  }

  void move_if(Condition condition, bool negated, unsigned index) {
    NodeId bit = state_.flags.condition(store_, condition);
    if (negated) bit = store_.bit_not(bit);
    x87().write(0, store_.choose(bit, x87().read(index), x87().read(0)));
  }

  bool with_d9_registers(const Code& code);
  bool load_constant(unsigned which);

  LiftState& state_;
  Store& store_;
  const DetailedInstruction& from_;
};

bool Unit::with_memory(const Code& code) {
  switch (code.opcode << 4 | code.reg) {
    case 0xd80:
    case 0xd81:
    case 0xd82:
    case 0xd83:
    case 0xd84:
    case 0xd85:
    case 0xd86:
    case 0xd87:
      operate_on_top(code.reg, operand(Format::f32));
      return true;
    case 0xdc0:
    case 0xdc1:
    case 0xdc2:
    case 0xdc3:
    case 0xdc4:
    case 0xdc5:
    case 0xdc6:
    case 0xdc7:
      operate_on_top(code.reg, operand(Format::f64));
      return true;
    case 0xda0:
    case 0xda1:
    case 0xda2:
    case 0xda3:
    case 0xda4:
    case 0xda5:
    case 0xda6:
    case 0xda7:
      operate_on_top(code.reg, load_integer(32));
      return true;
    case 0xde0:
    case 0xde1:
    case 0xde2:
    case 0xde3:
    case 0xde4:
    case 0xde5:
    case 0xde6:
    case 0xde7:
      operate_on_top(code.reg, load_integer(16));
      return true;
    case 0xd90:
      x87().push(load_number(Format::f32));
      break;
    case 0xd92:
    case 0xd93:
      save_number(Format::f32);
      break;
    case 0xdd0:
      x87().push(load_number(Format::f64));
      break;
    case 0xdd2:
    case 0xdd3:
      save_number(Format::f64);
      break;
    case 0xdb5:
      x87().push(load(width_of(Format::x80)));
      break;
    case 0xdb7:
      save(x87().read(0));
      break;
    case 0xdb0:
      x87().push(load_integer(32));
      break;
    case 0xdf0:
      x87().push(load_integer(16));
      break;
    case 0xdf5:
      x87().push(load_integer(64));
      break;
    case 0xdb1:
    case 0xdb2:
    case 0xdb3:
      save_integer(32, code.reg == 1);
      break;
    case 0xdf1:
    case 0xdf2:
    case 0xdf3:
      save_integer(16, code.reg == 1);
      break;
    case 0xdd1:
    case 0xdf7:
      save_integer(64, code.reg == 1);
      break;
    case 0xd94:
      load_x87_environment(state_, state_.address_of(memory_of(from_)));
      return true;
    case 0xd96:
      save_x87_environment(state_, state_.address_of(memory_of(from_)));
      return true;
    case 0xd95:
      x87().control = static_cast<std::uint16_t>(state_.constant(load(16), "an x87 control word"));
      return true;
    case 0xd97:
      save(store_.constant(16, x87().control));
      return true;
    case 0xdd7:
      save(x87_status_word(state_));
      return true;
    default:
      return false;
  }
  after();
  // Stores that pop: fstp, fistp and fisttp.
  static constexpr std::array pops = {0xd93U, 0xdd3U, 0xdb7U, 0xdb1U, 0xdb3U, 0xdf1U, 0xdf3U, 0xdd1U, 0xdf7U};
  if (std::ranges::find(pops, code.opcode << 4 | code.reg) != pops.end()) x87().pop();
  return true;
}

/// fld1, fldl2t, fldl2e, fldpi, fldlg2, fldln2 and fldz: all but the first and last rounded as the control word says,
/// of which only what is known to be nearest is known here.
bool Unit::load_constant(unsigned which) {
  struct Constant {
    std::uint64_t significand;
    std::uint16_t exponent;
  };
  static constexpr std::array<Constant, 7> constants = {{{0x8000000000000000, 0x3fff},
                                                         {0xd49a784bcd1b8afe, 0x4000},
                                                         {0xb8aa3b295c17f0bc, 0x3fff},
                                                         {0xc90fdaa22168c235, 0x4000},
                                                         {0x9a209a84fbcff799, 0x3ffd},
                                                         {0xb17217f7d1cf79ac, 0x3ffe},
                                                         {0, 0}}};
  if (which >= constants.size()) return false;
  const Constant& constant = constants.at(which);
  const bool is_exact = which == 0 || which == 6;
  if (!is_exact && state_.x87_mode().rounding != Rounding::nearest) end_at_form();
  x87().push(store_.constant(80, Bits{constant.exponent} << 64 | constant.significand));
  after();
  return true;
}

bool Unit::with_d9_registers(const Code& code) {
  constexpr unsigned sign_bit = 79;
  switch (code.reg) {
    case 0:  // fld st(i)
      x87().push(x87().read(code.rm));
      return true;
    case 1: {  // fxch
      const NodeId top = x87().read(0);
      x87().write(0, x87().read(code.rm));
      x87().write(code.rm, top);
      return true;
    }
    case 2:  // fnop
      return code.rm == 0;
    case 5:
      return load_constant(code.rm);
    default:
      break;
  }
  switch (code.reg << 4 | code.rm) {
    case 0x40:  // fchs
      x87().write(0, store_.bit_xor(x87().read(0), store_.constant(80, Bits{1} << sign_bit)));
      break;
    case 0x41:  // fabs
      x87().write(0, store_.bit_and(x87().read(0), store_.constant(80, ones(sign_bit))));
      break;
    case 0x44:  // ftst
      compare(store_.constant(80, 0));
      return true;
    case 0x66:  // fdecstp
      x87().rotate(7);
      return true;
    case 0x67:  // fincstp
      x87().rotate(1);
      return true;
    case 0x72:  // fsqrt
      x87().write(0, store_.float_sqrt(x87().read(0), state_.x87_mode()));
      break;
    case 0x74:  // frndint
      x87().write(0, store_.float_round(x87().read(0), state_.x87_mode()));
      break;
    default:
      return false;
  }
  after();
  return true;
}

bool Unit::with_registers(const Code& code) {
  const unsigned i = code.rm;
  switch (code.opcode) {
    case 0xd8:
      operate_on_top(code.reg, x87().read(i));
      return true;
    case 0xd9:
      return with_d9_registers(code);
    case 0xda:
    case 0xdb: {
      static constexpr std::array conditions = {Condition::b, Condition::e, Condition::be, Condition::p};
      if (code.reg < conditions.size()) {  // fcmov
        move_if(conditions.at(code.reg), code.opcode == 0xdb, i);
        return true;
      }
      if (code.opcode == 0xda) {
        if (code.reg != 5 || i != 1) return false;  // fucompp
        compare(x87().read(1));
        x87().pop();
        x87().pop();
        return true;
      }
      if (code.reg == 5 || code.reg == 6) {  // fucomi, fcomi
        compare_into_flags(i, false);
        return true;
      }
      if (code.reg != 4) return false;
      if (i == 3) {  // fninit
        x87().clear();
        x87().control = 0x037f;
        x87().c0 = x87().c1 = x87().c2 = x87().c3 = store_.bit(false);
        return true;
      }
      return i == 2;  // fnclex: flags are unknown before and after
    }
    case 0xdc:
    case 0xde:
      if (code.opcode == 0xde && code.reg == 3 && i == 1) {  // fcompp
        compare(x87().read(1));
        x87().pop();
        x87().pop();
        return true;
      }
      if (code.reg == 2 || code.reg == 3) return false;
      // The other way round than in row d8: fsub is 5 and has st(i) on its left.
      static constexpr std::array<unsigned, 8> swapped = {0, 1, 2, 3, 5, 4, 7, 6};
      x87().write(i, arithmetic(swapped.at(code.reg), x87().read(i), x87().read(0)));
      after();
      if (code.opcode == 0xde) x87().pop();
      return true;
    case 0xdd:
      switch (code.reg) {
        case 0:  // ffree
          x87().free(i);
          return true;
        case 2:  // fst
        case 3:  // fstp
          x87().write(i, x87().read(0));
          after();
          if (code.reg == 3) x87().pop();
          return true;
        case 4:  // fucom
        case 5:  // fucomp
          compare(x87().read(i));
          if (code.reg == 5) x87().pop();
          return true;
        default:
          return false;
      }
    default:                          // df
      if (code.reg == 4 && i == 0) {  // fnstsw ax
        state_.write_part({RegisterPart::File::general, 0, 0, 16}, x87_status_word(state_));
        return true;
      }
      if (code.reg == 5 || code.reg == 6) {  // fucomip, fcomip
        compare_into_flags(i, true);
        return true;
      }
      return false;
  }
}

}  // namespace

std::optional<std::size_t> x87_opcode(const DetailedInstruction& from, bool is_64_bit) {
  for (std::size_t i = 0; i + 1 < from.bytes.size(); ++i) {
    const auto byte = static_cast<unsigned>(from.bytes[i]);
    if (byte >= 0xd8 && byte <= 0xdf) return i;
    constexpr std::array<unsigned, 7> segments = {0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x67};
    const bool is_rex = is_64_bit && byte >> 4 == 4;
    const bool is_prefix = byte == operand_size_prefix || std::ranges::find(segments, byte) != segments.end();
    if (!is_rex && !is_prefix) return std::nullopt;
  }
  return std::nullopt;
}

bool lift_x87(LiftState& state, const DetailedInstruction& from) {
  const std::size_t at = *x87_opcode(from, state.is_64_bit);
  const auto behind = static_cast<unsigned>(from.bytes[at + 1]);
  const Code code{static_cast<unsigned>(from.bytes[at]), behind >> 6, behind >> 3 & 7, behind & 7};
  Unit unit(state, from);
  return code.mod == 3 ? unit.with_registers(code) : unit.with_memory(code);
}

}  // namespace bitwitness::proof
