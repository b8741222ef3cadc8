#include "harness/self_test.hpp"

#include "harness/emulator.hpp"
#include "harness/guest_memory.hpp"
#include "harness/machine.hpp"
#include "harness/self_test_vectors.hpp"
#include "harness/values.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr std::uint32_t code_address = 0x0010'0000;
constexpr std::uint32_t data_address = 0x0080'0000;
constexpr std::size_t stack_size = 0x1000;
constexpr std::size_t code_alignment = 16;

/// A vector as the guest's loop finds it. The offsets stand in that loop and in the instructions of the vectors.
struct GuestRow {
  std::uint32_t code = 0;  // address
  std::uint32_t fpcw = 0;
  std::uint32_t mxcsr = 0;
  std::uint32_t unused = 0;
  Bits128 a;
  Bits128 b;
  Bits128 result;
};
static_assert(sizeof(GuestRow) == 64);

/// Runs the rows from esi to ebp. The row that is being run is kept in memory: after a fault the registers need not be
/// those of the guest.
constexpr std::string_view guest_loop =
    "893500008000"  // mov [data_address], esi
    "dbe3"          // fninit
    "d96e04"        // fldcw [esi + 4]
    "0fae5608"      // ldmxcsr [esi + 8]
    "0f104610"      // movups xmm0, [esi + 16]
    "0f104e20"      // movups xmm1, [esi + 32]
    "8d7e30"        // lea edi, [esi + 48]
    "ff16"          // call [esi]
    "83c640"        // add esi, 64
    "39ee"          // cmp esi, ebp
    "72dd"          // jb to the beginning
    "f4";           // hlt

struct Frame {
  std::string_view before;
  std::string_view after;
};

Frame frame_of(SelfTestShape shape) {
  switch (shape) {
    case SelfTestShape::x87_two:
      return {"db6e20db6e10", "db3f"};  // fld tbyte [esi + 32], fld tbyte [esi + 16]; fstp tbyte [edi]
    case SelfTestShape::x87_one:
      return {"db6e10", "db3f"};
    case SelfTestShape::x87_load:
      return {"", "db3f"};
    case SelfTestShape::x87_out:
      return {"db6e20db6e10", ""};
    case SelfTestShape::sse:
      return {"", "0f1107"};  // movups [edi], xmm0
    case SelfTestShape::sse_edx:
      return {"", "8917"};  // mov [edi], edx
    case SelfTestShape::x87_plain:
    case SelfTestShape::sse_plain:
      break;
  }
  return {};
}

/// Nothing here asks to hear of anything.
struct Silence final : EmulatorEvents {
  bool on_port_write(std::uint32_t, std::uint32_t) override { return false; }
  void on_write(std::uint64_t, unsigned) override {}
  bool on_instruction(std::uint64_t) override { return true; }
  bool on_new_code(std::uint64_t, unsigned) override { return true; }
};

std::uint64_t whole_pages(std::size_t size) {
  constexpr std::uint64_t page = 0x1000;
  return (size + page - 1) / page * page;
}

/// The code of all vectors, each form of it once: translating it is most of what the test costs.
class GuestCode {
 public:
  GuestCode() : bytes_(parse_hex(guest_loop)) {}

  std::uint32_t address_of(const SelfTestVector& vector) {
    std::vector<std::byte> code = self_test_code(vector);
    code.push_back(std::byte{0xc3});
    const auto found = known_.find(code);
    if (found != known_.end()) return found->second;
    bytes_.resize((bytes_.size() + code_alignment - 1) / code_alignment * code_alignment);
    const auto address = static_cast<std::uint32_t>(code_address + bytes_.size());
    bytes_.insert(bytes_.end(), code.begin(), code.end());
    known_.emplace(std::move(code), address);
    return address;
  }

  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
  std::map<std::vector<std::byte>, std::uint32_t> known_;
};

GuestRow row_of(const SelfTestVector& vector, std::uint32_t code) {
  GuestRow row;
  row.code = code;
  const Environment usual;
  row.fpcw = is_x87(vector.shape) ? vector.control : usual.fpcw;
  row.mxcsr = is_x87(vector.shape) ? usual.mxcsr : vector.control;
  row.a = vector.a;
  row.b = vector.b;
  return row;
}

/// Runs every row; the results are in them then. Returns which of them gave none.
std::vector<bool> run_rows(std::vector<GuestRow>& rows, const std::vector<std::byte>& code) {
  const std::size_t rows_size = rows.size() * sizeof(GuestRow);
  const std::size_t rows_at = sizeof(GuestRow);  // behind where the loop keeps its row
  HostPages code_pages(whole_pages(code.size()));
  HostPages data_pages(whole_pages(rows_at + rows_size + stack_size));
  std::ranges::copy(code, code_pages.bytes().begin());
  std::byte* const data = data_pages.bytes().data();
  std::memcpy(data + rows_at, rows.data(), rows_size);

  Silence silence;
  Emulator emulator(false, silence);
  emulator.map(code_address, code_pages.bytes(), false, true);
  emulator.map(data_address, data_pages.bytes(), true, false);
  std::vector<bool> stopped(rows.size());
  for (std::size_t next = 0; next < rows.size();) {
    Emulator::Registers registers;
    registers.general[4] = data_address + data_pages.bytes().size();
    registers.general[5] = data_address + rows_at + rows_size;
    registers.general[6] = data_address + rows_at + next * sizeof(GuestRow);
    const Trap trap = emulator.start(code_address, registers);
    if (trap.kind == Trap::Kind::none || trap.kind == Trap::Kind::halt) break;
    std::uint32_t at = 0;
    std::memcpy(&at, data, sizeof at);
    next = std::max(next, (at - data_address - rows_at) / sizeof(GuestRow));
    if (next < rows.size()) stopped[next] = true;
    ++next;
  }
  std::memcpy(rows.data(), data + rows_at, rows_size);
  emulator.close();
  return stopped;
}

}  // namespace

std::span<const SelfTestGroup> self_test_groups() {
  static const std::vector<SelfTestGroup> all = [] {
    using namespace self_test_vectors;
    std::vector<SelfTestGroup> groups;
    for (const auto part : {x87_groups(), sse_groups(), quirk_groups()}) {
      groups.insert(groups.end(), part.begin(), part.end());
    }
    return groups;
  }();
  return all;
}

std::vector<std::byte> self_test_code(const SelfTestVector& vector) {
  const Frame frame = frame_of(vector.shape);
  std::vector<std::byte> code;
  for (const std::string_view part : {frame.before, vector.code, frame.after}) {
    const std::vector<std::byte> bytes = parse_hex(part);
    code.insert(code.end(), bytes.begin(), bytes.end());
  }
  return code;
}

bool is_as_hardware(const SelfTestVector& vector, const Bits128& given) {
  switch (vector.kind) {
    case SelfTestAnswer::exact:
      return given == vector.answer;
    case SelfTestAnswer::beside: {
      const auto distance = static_cast<std::int64_t>(given.low - vector.answer.low);
      return given.high == vector.answer.high && distance >= -4 && distance <= 4;
    }
    case SelfTestAnswer::other:
      return given != vector.answer;
    case SelfTestAnswer::fault:
      break;
  }
  return false;
}

SelfTestSummary summary_of(const SelfTest& test) {
  SelfTestSummary summary = {test.vectors, test.as_hardware, test.found};
  for (const std::string& name : test.unknown) summary.quirks.push_back(std::string(unknown_quirk_prefix) + name);
  std::ranges::sort(summary.quirks);
  return summary;
}

std::vector<std::string> quirks_not_in(const std::vector<std::string>& quirks) {
  std::vector<std::string> missing;
  for (const SelfTestGroup& group : self_test_groups()) {
    if (group.is_quirk && !std::ranges::binary_search(quirks, group.name)) missing.emplace_back(group.name);
  }
  std::ranges::sort(missing);
  return missing;
}

SelfTest run_self_test(std::span<const SelfTestGroup> groups) {
  GuestCode code;
  std::vector<GuestRow> rows;
  for (const SelfTestGroup& group : groups) {
    for (const SelfTestVector& vector : group.vectors) rows.push_back(row_of(vector, code.address_of(vector)));
  }
  const std::vector<bool> stopped = run_rows(rows, code.bytes());

  SelfTest test;
  test.vectors = rows.size();
  std::size_t row = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const SelfTestGroup& group = groups[i];
    bool is_seen = false;
    for (std::size_t number = 1; number <= group.vectors.size(); ++number, ++row) {
      const SelfTestVector& vector = group.vectors[number - 1];
      const bool is_good =
          stopped[row] ? vector.kind == SelfTestAnswer::fault : is_as_hardware(vector, rows[row].result);
      if (is_good) {
        ++test.as_hardware;
        continue;
      }
      is_seen = true;
      test.differences.push_back({i, number, !stopped[row], rows[row].result});
      if (!group.is_quirk) test.unknown.push_back(fmt::format("{} {} {}", group.name, number, vector.instruction));
    }
    if (group.is_quirk) (is_seen ? test.found : test.missing).emplace_back(group.name);
  }
  std::ranges::sort(test.found);
  std::ranges::sort(test.missing);
  std::ranges::sort(test.unknown);
  return test;
}

}  // namespace bitwitness
