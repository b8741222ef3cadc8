#pragma once
#include "harness/image.hpp"
#include "harness/probe/inference.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace bitwitness {

/// Runs a candidate on some hundred values as verification would and lowers its confidence by what goes wrong: a value
/// that does not return, an output word that is not written, words that are others when a value runs alone, words that
/// no value changes.
void try_out(Candidate& candidate, const Image& image, std::uint64_t address, const InferenceOptions& options);

/// Says what the path of a call with the signature depends on, as Machine::path does. Empty when it cannot be run so.
std::vector<std::string> path_of(const Signature& signature, const Image& image, std::uint64_t address,
                                 const InferenceOptions& options);

/// Flips every bit of several values: [output word][bit], whether the word changed. Of a routine that executes many
/// instructions per call, fewer values are taken. Empty when the routine cannot be run so.
std::vector<std::vector<bool>> dependencies_of(const Signature& signature, const Image& image, std::uint64_t address,
                                               const InferenceOptions& options, std::uint64_t instructions_per_call);

}  // namespace bitwitness
