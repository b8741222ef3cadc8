#include "decoders/scan.hpp"

#include "decoders/cursor.hpp"

#include <algorithm>
#include <array>

namespace bitwitness::decoders {
namespace {

// Positions of one class id, in rising order.
class ClassFinder {
 public:
  ClassFinder(std::span<const std::byte> blob, std::uint32_t class_id) : blob_(blob), class_id_(class_id) {}

  // The first position at or after `from`, which may not fall from call to call; none any more once `go_on`, asked
  // after every scan_window bytes, has said no.
  template <typename GoOn>
  std::size_t at_or_after(std::size_t from, GoOn&& go_on) {
    if (next_ == npos || (started_ && next_ >= from)) return next_;
    started_ = true;
    searched_ = std::max(searched_, from);
    do {
      // Windows overlap: an id may begin in one and end in the next.
      const std::size_t end = std::min(blob_.size() - searched_, scan_window) + searched_;
      next_ = find_u32(blob_, class_id_, searched_, std::min(blob_.size() - end, id_size - 1) + end);
      searched_ = next_ == npos ? end : next_;
      since_asked_ += searched_ - from;
      from = searched_;
      if (since_asked_ < scan_window) continue;
      since_asked_ = 0;
      if (!go_on()) return next_ = npos;
    } while (next_ == npos && searched_ < blob_.size());
    return next_;
  }

  [[nodiscard]] std::size_t searched() const { return searched_; }

 private:
  static constexpr std::size_t id_size = sizeof(std::uint32_t);

  std::span<const std::byte> blob_;
  std::uint32_t class_id_;
  std::size_t next_ = 0;
  std::size_t searched_ = 0;     // no id ends before it that has not been given
  std::size_t since_asked_ = 0;  // bytes
  bool started_ = false;
};

// A place that holds an Animation's class id and opens one or both games' Animation.
struct Opening {
  std::size_t class_at = npos;
  std::optional<std::size_t> sws;
  std::optional<std::size_t> rr;
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> blob, const ScanListener& listener)
      : blob_(blob),
        listener_(listener),
        budget_(WorkBudget::of(blob.size())),
        animations_(blob, class_ids::animation),
        track_data_(blob, class_ids::anim_track_data),
        sets_(blob, class_ids::anim_set) {}

  ScanSummary run() {
    std::size_t from = 0;  // classes before it have been tried
    std::size_t asked_at = 0;
    Opening opening = next_opening(0);
    while (!summary_.stopped && !summary_.given_up) {
      if (opening.class_at != npos && opening.class_at < from) opening = next_opening(from);
      const std::size_t data_at = next_of(track_data_, from);
      const std::size_t set_at = next_of(sets_, from);
      const std::size_t first = std::min({opening.class_at, data_at, set_at});
      if (first == npos || summary_.given_up) break;
      from = first + 1;
      if (first == set_at) {
        ++summary_.class_ids;
        try_set(set_at);
      } else if (first == data_at) {
        ++summary_.class_ids;
        try_bare(data_at);
      } else {
        const Opening current = opening;
        opening = next_opening(from);
        if (summary_.given_up) break;  // where the next one opens bounds this one
        try_opening(current, opening.class_at);
      }
      from = std::max(from, floor_);
      if (from - asked_at >= scan_window) {  // objects may have been read without much searching
        asked_at = from;
        go_on();
      }
    }
    return summary_;
  }

 private:
  bool go_on() {
    const std::size_t searched = (animations_.searched() + track_data_.searched() + sets_.searched()) / 3;
    if (listener_.keep_going && !summary_.given_up) summary_.given_up = !listener_.keep_going(searched);
    return !summary_.given_up;
  }

  std::size_t next_of(ClassFinder& finder, std::size_t from) {
    return finder.at_or_after(from, [this] { return go_on(); });
  }

  // Looks for the table whose rows end before the managed byte at `managed_at`.
  std::optional<std::size_t> table_before(std::size_t managed_at) {
    constexpr std::size_t front = 7;
    for (std::size_t rows = 0;; ++rows) {
      const std::size_t back = front + SwsAnimation::row_size * rows;
      if (managed_at < floor_ + back) return std::nullopt;
      const std::size_t table_at = managed_at - back;
      if (load<std::uint32_t>(blob_, table_at + 3) == rows && (load<std::uint32_t>(blob_, table_at) & 0xFFFFFF) == 2) {
        return table_at;
      }
      // One row further back. Its second field is 0 in every table, so that bytes that are no table end the search.
      if (managed_at < floor_ + SwsAnimation::row_size * (rows + 1)) return std::nullopt;
      const std::size_t row_at = managed_at - SwsAnimation::row_size * (rows + 1);
      if (load<std::uint16_t>(blob_, row_at + 4) != 0 || !spend(SwsAnimation::row_size, row_at)) return std::nullopt;
    }
  }

  Opening open_at(std::size_t class_at) {
    Opening opening{.class_at = class_at, .sws = std::nullopt, .rr = std::nullopt};
    if (class_at >= floor_ + 5 && load<std::uint8_t>(blob_, class_at - 5) == 1) {
      const std::optional<std::size_t> table = table_before(class_at - 5);
      if (table && opens_sws_animation(blob_.subspan(*table))) opening.sws = table;
    }
    if (opens_rr_animation(blob_.subspan(class_at + 4))) opening.rr = class_at + 4;
    return opening;
  }

  Opening next_opening(std::size_t from) {
    while (true) {
      const std::size_t at = next_of(animations_, from);
      if (at == npos) return {};
      ++summary_.class_ids;
      const Opening opening = open_at(at);
      if (opening.sws || opening.rr || summary_.stopped || summary_.given_up) return opening;
      from = at + 1;
    }
  }

  void try_opening(const Opening& opening, std::size_t limit) {
    std::optional<Refusal> refusal;
    if (opening.sws && *opening.sws >= floor_) {
      const std::size_t at = *opening.sws;
      if (keep(at, read_leading_sws_animation(blob_.subspan(at), limit == npos ? npos : limit - at, budget_),
               refusal)) {
        return;
      }
    }
    if (opening.rr && *opening.rr >= floor_) {
      const std::size_t at = *opening.rr;
      if (keep(at, read_leading_rr_animation(blob_.subspan(at), limit == npos ? npos : limit - at, budget_), refusal)) {
        return;
      }
    }
    report(refusal);
  }

  void try_set(std::size_t class_at) {
    if (class_at < floor_ + 5 || load<std::uint8_t>(blob_, class_at - 5) != 1) return;
    std::optional<Refusal> refusal;
    if (!keep(class_at - 5, read_leading_sws_anim_set(blob_.subspan(class_at - 5), budget_), refusal)) report(refusal);
  }

  void try_bare(std::size_t class_at) {
    if (class_at < floor_ + rr_class_without_events) return;
    const std::size_t at = class_at - rr_class_without_events;
    if (!opens_rr_animation(blob_.subspan(at))) return;
    std::optional<Refusal> refusal;
    const std::size_t limit = rr_class_without_events + sizeof(std::uint32_t);
    if (!keep(at, read_leading_rr_animation(blob_.subspan(at), limit, budget_), refusal)) report(refusal);
  }

  // Hands a proven object over and moves behind it; else keeps the first refusal, in the blob's offsets.
  template <typename Object>
  bool keep(std::size_t at, const Reading<Object>& reading, std::optional<Refusal>& refusal) {
    if (!reading) {
      Refusal here = reading.refusal();
      here.offset += at;
      if (here.rule == Rule::work) summary_.stopped = here;
      if (!refusal) refusal = here;
      return false;
    }
    ++summary_.objects;
    floor_ = at + reading->size;
    if (listener_.found) listener_.found({.offset = at, .size = reading->size, .object = *reading});
    return true;
  }

  void report(const std::optional<Refusal>& refusal) {
    if (!refusal || summary_.stopped) return;
    ++summary_.refusals;
    if (listener_.refused) listener_.refused(*refusal);
  }

  bool spend(std::uint64_t bytes, std::size_t at) {
    if (budget_.spend(bytes)) return true;
    summary_.stopped = Refusal{at, Rule::work, bytes};
    return false;
  }

  std::span<const std::byte> blob_;
  const ScanListener& listener_;
  WorkBudget budget_;
  ClassFinder animations_;
  ClassFinder track_data_;
  ClassFinder sets_;
  std::size_t floor_ = 0;  // end of the last proven object
  ScanSummary summary_;
};

}  // namespace

ScanSummary scan(std::span<const std::byte> blob, const ScanListener& listener) {
  return Scanner(blob, listener).run();
}

std::optional<FileFormat> guess_format(std::span<const std::byte> bytes) {
  if (bytes.empty()) return std::nullopt;
  switch (std::to_integer<unsigned>(bytes[0])) {
    case 0x02:
      return FileFormat::sws_animation;
    case 0x01:
      if (bytes.size() >= 9 && load<std::uint32_t>(bytes, 5) == class_ids::anim_set) return FileFormat::sws_anim_set;
      return FileFormat::rr_animation;
    case 0x4C:
    case 0x61:
      return FileFormat::mab;
    default:
      return std::nullopt;
  }
}

}  // namespace bitwitness::decoders
