#include "harness/cli/command.hpp"
#include "harness/cli/documents.hpp"
#include "harness/cli/exit_code.hpp"
#include "harness/cli/output.hpp"
#include "harness/cli/self_test_text.hpp"
#include "harness/emulator.hpp"
#include "harness/error.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace {

using namespace bitwitness;

constexpr auto commands = {cli::add_verify_command, cli::add_record_command, cli::add_replay_command,
                           cli::add_census_command, cli::add_decode_command, cli::add_list_command,
                           cli::add_probe_command,  cli::add_locate_command, cli::add_recognize_command,
                           cli::add_trace_command,  cli::add_audit_command,  cli::add_compare_command,
                           cli::add_merge_command};

/// Not shown: what the build calls to make the files that are installed beside the program.
cli::Command add_documents_command(CLI::App& program) {
  CLI::App* parser = program.add_subcommand("documents", "Write the manual page and the shells' completions");
  parser->group("");
  const auto folder = std::make_shared<std::string>();
  parser->add_option("folder", *folder, "where to write them")->required();
  return {parser, [folder, &program] {
            const auto write = [&](const char* name, const std::string& text) {
              cli::write_file("documents", *folder + '/' + name, text);
            };
            write("bitwitness.1", cli::manual_page(program, BITWITNESS_VERSION));
            write("bitwitness.bash", cli::bash_completion(program));
            write("bitwitness.zsh", cli::zsh_completion(program));
            write("bitwitness.fish", cli::fish_completion(program));
            return static_cast<int>(cli::exit_agreed);
          }};
}

int run_self_test_alone() {
  const SelfTest test = run_self_test();
  cli::write_standard_output(cli::self_test_text(self_test_groups(), test, unicorn_version()));
  return test.unknown.empty() ? cli::exit_agreed : cli::exit_differed;
}

constexpr const char* footer =
    "Exit status: 0 done, and whatever was compared agreed; 1 a difference, a value without a result, a refused file, "
    "an\n"
    "answer that is not certain, or an interruption; 2 bad input or usage, named in one line; 3 nothing was there to "
    "check.";

int run_program(int argc, char** argv) {
  CLI::App program(
      "Runs an executable's own unpack routine on packed values and compares it bit for bit with a decoder.",
      "bitwitness");
  program.set_version_flag("--version", std::string("bitwitness ") + BITWITNESS_VERSION);
  bool is_self_test = false;
  program.add_flag("--self-test", is_self_test,
                   "ask the emulator what processors' answers are known to, without a command: prints each kind of "
                   "vector and each that differs; exits 0 when all of those are known quirks, 1 when not");
  program.require_subcommand(0, 1);
  program.footer(footer);
  std::vector<cli::Command> added;
  for (const auto add : commands) added.push_back(add(program));
  added.push_back(add_documents_command(program));
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    cli::write_standard_output(program.help());
    return cli::exit_agreed;
  } catch (const CLI::CallForVersion& version) {
    cli::write_standard_output(version.what() + std::string("\n"));
    return cli::exit_agreed;
  } catch (const CLI::ParseError& error) {
    throw Error(fmt::format("{} (see --help)", error.what()));
  }
  const auto chosen =
      std::find_if(added.begin(), added.end(), [](const cli::Command& command) { return command.parser->parsed(); });
  if (is_self_test && chosen != added.end()) throw Error("--self-test: goes without a command");
  if (is_self_test) return run_self_test_alone();
  if (chosen != added.end()) return chosen->run();
  std::vector<std::string> names;
  for (const cli::Command& command : added) {
    if (!command.parser->get_group().empty()) names.push_back(command.parser->get_name());
  }
  throw Error(fmt::format("a command is required: {} (see --help)", fmt::join(names, ", ")));
}

}  // namespace

int main(int argc, char** argv) {
#ifdef SIGPIPE
  // A reader that goes away is an error of writing, which is reported, not a death.
  std::signal(SIGPIPE, SIG_IGN);
#endif
  try {
    return run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    cli::complain("out of memory");
  } catch (const std::exception& error) {
    cli::complain(error.what());
  }
  return cli::exit_refused;
}
