#pragma once
#include <functional>

#include <CLI/CLI.hpp>

namespace bitwitness::cli {

/// A command that stands in the program's parser, and what runs it once the arguments are parsed.
struct Command {
  CLI::App* parser = nullptr;
  std::function<int()> run;  ///< returns an exit status; throws Error for input that cannot be used
};

Command add_audit_command(CLI::App& program);
Command add_verify_command(CLI::App& program);
Command add_record_command(CLI::App& program);
Command add_replay_command(CLI::App& program);
Command add_compare_command(CLI::App& program);
Command add_merge_command(CLI::App& program);
Command add_decode_command(CLI::App& program);
Command add_list_command(CLI::App& program);
Command add_locate_command(CLI::App& program);
Command add_census_command(CLI::App& program);
Command add_recognize_command(CLI::App& program);
Command add_trace_command(CLI::App& program);
Command add_probe_command(CLI::App& program);

}  // namespace bitwitness::cli
