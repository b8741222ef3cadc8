#pragma once
#include "harness/report.hpp"

#include <string_view>

#include <nlohmann/json_fwd.hpp>

// The objects that several JSON reports have in common. For their writers only.

namespace bitwitness::report_objects {

/// "engine": the libraries' versions and the processor.
nlohmann::ordered_json engine_json(const Engine& engine);

/// "image": which executable, and whether it is one of this project's own.
nlohmann::ordered_json image_json(std::string_view name, std::string_view sha256, ImageFormat format, bool stand_in);

/// "environment": both control words in four hex digits.
nlohmann::ordered_json environment_json(const Environment& environment);

}  // namespace bitwitness::report_objects
