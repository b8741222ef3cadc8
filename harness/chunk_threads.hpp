#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>

// Work on numbered chunks by several threads, for whatever must not depend on how many there are.

namespace bitwitness {

/// What one thread does with the chunks that it takes.
class ChunkWorker {
 public:
  virtual ~ChunkWorker() = default;

  /// Does a chunk. Returns false when its thread is to take no more.
  virtual bool work(std::uint64_t number) = 0;

  /// Called by its thread after the last chunk, unless something failed.
  virtual void finish() {}
};

/// Makes the worker of one thread; called by that thread.
using MakeWorker = std::function<std::unique_ptr<ChunkWorker>()>;

/// Has `jobs` threads, of which the caller is one with the worker `first`, take the chunks 0 … count - 1 in rising
/// order, until none is left or a stop is requested. When something is thrown the chunks under way are ended, no more
/// are taken, and what the lowest chunk threw is thrown on.
void work_on_chunks(std::uint64_t count, unsigned jobs, const std::stop_token& stop, std::unique_ptr<ChunkWorker> first,
                    const MakeWorker& make);

}  // namespace bitwitness
