#include "harness/chunk_digests.hpp"

namespace bitwitness {

ChunkDigests::ChunkDigests(std::size_t environments, bool keep) : environments_(environments), keep_(keep) {
  for (std::size_t i = 0; i < environments; ++i) chained_.emplace_back();
}

void ChunkDigests::add(std::uint64_t chunk, std::span<const Sha256Bytes> digests) {
  const auto index = static_cast<std::size_t>(chunk - next_);
  if (index >= is_there_.size()) {
    is_there_.resize(index + 1, false);
    ahead_.resize((index + 1) * environments_);
  }
  for (std::size_t i = 0; i < environments_; ++i) ahead_[index * environments_ + i] = digests[i];
  is_there_[index] = true;
  ++ahead_count_;
  while (!is_there_.empty() && is_there_.front()) {
    for (std::size_t i = 0; i < environments_; ++i) {
      const std::string text = to_hex(ahead_.front());
      chained_[i].update(std::as_bytes(std::span(text)));
      if (keep_) kept_.push_back(ahead_.front());
      ahead_.pop_front();
    }
    is_there_.pop_front();
    --ahead_count_;
    ++next_;
  }
}

bool ChunkDigests::has(std::uint64_t chunk) const {
  if (chunk < next_) return true;
  return chunk - next_ < is_there_.size() && is_there_[static_cast<std::size_t>(chunk - next_)];
}

std::uint64_t ChunkDigests::count() const {
  return next_ + ahead_count_;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> ChunkDigests::ranges() const {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  if (next_ > 0) out.emplace_back(0, next_);
  for (std::size_t i = 0; i < is_there_.size(); ++i) {
    if (!is_there_[i]) continue;
    const std::uint64_t chunk = next_ + i;
    if (out.empty() || out.back().second != chunk) out.emplace_back(chunk, chunk);
    ++out.back().second;
  }
  return out;
}

std::string ChunkDigests::hex(std::size_t environment) const {
  return chained_[environment].hex();
}

std::vector<std::string> ChunkDigests::kept(std::size_t environment) const {
  std::vector<std::string> out;
  for (std::size_t at = environment; at < kept_.size(); at += environments_) out.push_back(to_hex(kept_[at]));
  return out;
}

}  // namespace bitwitness
