#pragma once
#include "harness/report.hpp"

#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

// The objects that several JSON reports have in common. For their writers only.

namespace bitwitness::report_objects {

/// "engine": the libraries' versions, the processor, and what came of the self-test where there was one.
nlohmann::ordered_json engine_json(const Engine& engine);

/// "image": which executable, and whether it is one of this project's own.
nlohmann::ordered_json image_json(std::string_view name, std::string_view sha256, ImageFormat format, bool stand_in);

/// "environment": both control words in four hex digits.
nlohmann::ordered_json environment_json(const Environment& environment);

/// "isolation": how many values ran alone and gave other words, with the smallest of them.
nlohmann::ordered_json isolation_json(const Isolation& isolation);

/// An array of values without a result; an unknown address is null.
nlohmann::ordered_json failures_json(std::span<const Failure> failures);

/// An array of facts.
nlohmann::ordered_json facts_json(std::span<const Fact> facts);

}  // namespace bitwitness::report_objects
