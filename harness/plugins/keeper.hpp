#pragma once
#include <cstdint>

// What the process that watches a decoder tells the tool. Inside of harness/plugins/ only.

namespace bitwitness::plugins {

enum class KeeperNews : std::uint32_t {
  started,
  cannot_start,    ///< value: errno
  cannot_execute,  ///< value: errno
  ended,           ///< value: the decoder's wait status
  left,            ///< after `ended`; value: 1 when processes that it started are there still, else 0
};

/// Comes over the socket that is the keeper's control.
struct KeeperReport {
  KeeperNews news;
  std::int32_t value;
};

/// How long what a decoder started may take to end after it.
inline constexpr int keeper_grace_ms = 1000;

/// Splits this process, which must have one thread. The child returns and becomes the decoder: it writes an errno to
/// the descriptor that is returned when it cannot, and closes it otherwise. The parent watches: every process that
/// comes from the decoder, whatever session or group it makes its own, becomes a child of it when its parent ends. It
/// reports how the decoder ended, and ends with all of them when the other side of the control closes or is gone.
int keep(int control);

}  // namespace bitwitness::plugins
