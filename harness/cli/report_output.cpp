#include "harness/cli/report_output.hpp"

#include "harness/cli/output.hpp"
#include "harness/error.hpp"

#include <exception>
#include <optional>
#include <string_view>

namespace bitwitness::cli {

void write_report(const OutputArguments& output, const Report& report, const std::string& timings,
                  const HtmlExtras& extras) {
  bool to_standard_output = false;
  // A run may have taken hours: one output that fails must not cost the others.
  std::exception_ptr failure;
  const auto attempt = [&](const auto& work) {
    try {
      work();
    } catch (const Error&) {
      if (!failure) failure = std::current_exception();
    }
  };
  const auto write = [&](std::string_view option, const std::optional<std::string>& path, const std::string& text) {
    if (!path) return;
    to_standard_output = to_standard_output || *path == "-";
    attempt([&] { *path == "-" ? write_standard_output(text) : write_file(option, *path, text); });
  };
  if (output.json) write("--json", output.json, to_json(report));
  if (output.junit) write("--junit", output.junit, to_junit(report));
  if (output.html) write("--html", output.html, to_html(report, extras));
  write("--timings", output.timings, timings);
  if (!to_standard_output) attempt([&] { write_standard_output(to_text(report)); });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace bitwitness::cli
