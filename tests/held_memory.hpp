#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

// Whether memory can be measured: with glibc, and without the sanitizers, which hold memory of their own.
#if defined(__has_feature)
#define BITWITNESS_HAS_FEATURE(name) __has_feature(name)
#else
#define BITWITNESS_HAS_FEATURE(name) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !BITWITNESS_HAS_FEATURE(address_sanitizer) && !BITWITNESS_HAS_FEATURE(thread_sanitizer)
#define BITWITNESS_MEASURES_MEMORY 1
#else
#define BITWITNESS_MEASURES_MEMORY 0
#endif

namespace bitwitness::tests {

/// Returns the bytes that this process's row `which` ("Rss:", say) of a file of /proc/self tells, or 0 without one.
inline std::uint64_t proc_bytes(const char* path, std::string_view which) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    std::uint64_t kilobytes = 0;
    if (word == which && file >> kilobytes) return 1024 * kilobytes;
  }
  return 0;
}

/// Returns the bytes that this process holds of its own now. Counted page by page: "VmRSS:" of /proc/self/status lags
/// behind by what each processor has not reported yet, and falls when the kernel takes pages of a file back.
inline std::uint64_t held_memory() {
  return proc_bytes("/proc/self/smaps_rollup", "Anonymous:");
}

/// Returns the most bytes that this process has held since the peak was last reset.
inline std::uint64_t peak_memory() {
  return proc_bytes("/proc/self/status", "VmHWM:");
}

}  // namespace bitwitness::tests
