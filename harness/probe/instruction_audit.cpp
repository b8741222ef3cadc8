#include "harness/probe/instruction_audit.hpp"

#include "harness/jump_tables.hpp"
#include "harness/refused_code.hpp"
#include "harness/status_word.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace bitwitness {
namespace {

constexpr InstructionRow status_tested = {"fnstsw", Exactness::exact, ""};

std::uint64_t pointer_at(std::span<const std::byte> bytes) {
  std::uint64_t pointer = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) pointer = pointer << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return pointer;
}

class Auditor {
 public:
  Auditor(const Image& image, std::size_t limit)
      : image_(image), limit_(limit), pointer_size_(image.format() == ImageFormat::pe32_plus ? 8 : 4) {}

  Audit run(std::uint64_t address) {
    audit_.address = address;
    pending_.push_back(address);
    while (!pending_.empty() && !audit_.is_cut) {
      const std::uint64_t root = pending_.back();
      pending_.pop_back();
      if (!found_.contains(root)) walk(root);
    }
    classify();
    audit_.instructions = found_.size();
    for (auto& [at, left] : unfollowed_) audit_.unfollowed.push_back(std::move(left));
    return std::move(audit_);
  }

 private:
  void walk(std::uint64_t root) {
    Listing listing = disassemble_routine(image_, root, limit_, true, true);
    for (const std::uint64_t at : listing.undecodable) unfollowed_[at] = {at, {}, "no code is there"};
    for (Instruction& instruction : listing.instructions) {
      const bool is_new = !found_.contains(instruction.address);
      if (is_new && found_.size() == limit_) audit_.is_cut = true;
      if (audit_.is_cut) return;
      if (!is_new) continue;
      follow(instruction);
      found_.emplace(instruction.address, std::move(instruction));
    }
    if (listing.instructions.size() == limit_ && !listing.complete) audit_.is_cut = true;
  }

  void follow(const Instruction& instruction) {
    if (instruction.flow != Flow::indirect_call && instruction.flow != Flow::indirect_jump) return;
    const JumpTable table = jump_table_of(image_, instruction);
    if (table.is_whole) return;  // the listing has them
    const char* verb = instruction.flow == Flow::indirect_call ? "calls" : "jumps to";
    const Import* import = nullptr;
    for (const std::uint64_t slot : instruction.memory_references) {
      if (find_slot(image_.bound_imports(), slot) != nullptr) {
        pending_.push_back(pointer_at(image_.read(slot, pointer_size_)));
        return;
      }
      if (import == nullptr) import = find_slot(image_.imports(), slot);
    }
    unfollowed_[instruction.address] = {
        instruction.address, instruction.text,
        import != nullptr ? fmt::format("{} {} of {}, an import", verb, import->name, import->library)
                          : fmt::format("{} {}", verb,
                                        table.targets.empty() ? "an address that only running it tells"
                                                              : "what a table says that has no clear bounds")};
  }

  static const Import* find_slot(std::span<const Import> imports, std::uint64_t slot) {
    const auto found = std::ranges::find(imports, slot, &Import::slot);
    return found == imports.end() ? nullptr : &*found;
  }

  std::optional<InstructionRow> row_of(const Instruction& instruction) const {
    if (const std::string_view reason = why_refused(image_, instruction); !reason.empty()) {
      return InstructionRow{{}, Exactness::refused, reason};
    }
    const auto next = found_.find(instruction.address + instruction.size);
    if (uses_condition_codes_only(instruction, next == found_.end() ? nullptr : &next->second)) return status_tested;
    const InstructionRow* row = find_row(instruction.text);
    return row == nullptr ? std::nullopt : std::optional(*row);
  }

  void classify() {
    std::map<std::tuple<int, std::string>, AuditedRow> rows;
    for (const auto& [at, instruction] : found_) {
      const auto row = row_of(instruction);
      if (!row) continue;
      std::string mnemonic = instruction.text.substr(0, instruction.text.find(' '));
      AuditedRow& audited = rows[{-static_cast<int>(row->exactness), mnemonic}];
      if (audited.addresses.empty()) {
        audited.row = *row;
        audited.mnemonic = std::move(mnemonic);
        audited.first_text = instruction.text;
      }
      audited.addresses.push_back(at);
    }
    for (auto& [key, audited] : rows) audit_.rows.push_back(std::move(audited));
  }

  const Image& image_;
  std::size_t limit_;
  std::size_t pointer_size_;
  Audit audit_;
  std::vector<std::uint64_t> pending_;
  std::map<std::uint64_t, Instruction> found_;
  std::map<std::uint64_t, Unfollowed> unfollowed_;
};

std::string_view consequence(Exactness exactness) {
  switch (exactness) {
    case Exactness::finite:
      return "so its results stand for a processor's where everything is a number";
    case Exactness::approximate:
      return "so its last bits may not be a processor's";
    case Exactness::wrong:
      return "so its results may not be a processor's";
    case Exactness::refused:
      return "so values that come to it have no result";
    case Exactness::unknown:
      return "so whether its results are a processor's is not known";
    case Exactness::exact:
      break;
  }
  return {};
}

}  // namespace

std::string_view to_string(Exactness exactness) {
  switch (exactness) {
    case Exactness::exact:
      return "exact";
    case Exactness::finite:
      return "finite";
    case Exactness::approximate:
      return "approximate";
    case Exactness::wrong:
      return "wrong";
    case Exactness::refused:
      return "refused";
    case Exactness::unknown:
      break;
  }
  return "unknown";
}

bool Audit::is_trusted() const {
  return !is_cut && unfollowed.empty() && instructions != 0 && std::ranges::all_of(rows, [](const AuditedRow& audited) {
    return bitwitness::is_trusted(audited.row.exactness);
  });
}

Audit audit(const Image& image, std::uint64_t address, std::size_t limit) {
  return Auditor(image, limit).run(address);
}

std::vector<std::string> audit_notes(const Audit& audit) {
  std::vector<std::string> notes;
  for (const Exactness exactness :
       {Exactness::unknown, Exactness::refused, Exactness::wrong, Exactness::approximate, Exactness::finite}) {
    const AuditedRow* first = nullptr;
    std::size_t count = 0;
    for (const AuditedRow& audited : audit.rows) {
      if (audited.row.exactness != exactness) continue;
      count += audited.addresses.size();
      if (first == nullptr || audited.addresses.front() < first->addresses.front()) first = &audited;
    }
    if (first == nullptr) continue;
    const std::string more = count == 1 ? std::string() : fmt::format(" and {} more like it", count - 1);
    notes.push_back(fmt::format(
        "the emulator alone ran this: {} at {:#x}{} ({}: it {}), {} (--witness both asks one; audit lists them)",
        first->first_text, first->addresses.front(), more, to_string(exactness), first->row.reason,
        consequence(exactness)));
  }
  if (audit.is_cut || !audit.unfollowed.empty()) {
    notes.push_back(fmt::format(
        "the emulator alone ran this, and what it runs beyond {} was not audited (--witness both asks a processor)",
        audit.is_cut ? "the first instructions" : fmt::format("{:#x}", audit.unfollowed.front().address)));
  }
  return notes;
}

}  // namespace bitwitness
