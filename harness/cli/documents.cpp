#include "harness/cli/documents.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace bitwitness::cli {
namespace {

std::vector<CLI::App*> commands_of(CLI::App& program) {
  return program.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<CLI::Option*> options_of(CLI::App& command) {
  return command.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

/// Names a file or folder, by the placeholder that the help shows.
bool takes_path(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.find("FILE") != std::string::npos || type.find("PATH") != std::string::npos;
}

bool takes_value(const CLI::Option& option) {
  return option.get_type_size() != 0;
}

/// "--help" of "-h,--help"; empty for what is given by place.
std::string long_name(const CLI::Option& option) {
  return option.get_lnames().empty() ? std::string() : "--" + option.get_lnames().front();
}

/// Text as troff shows it: hyphens that can be copied, no control lines.
std::string troff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool begins_line = out.empty() || out.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out;
}

std::string option_heading(const CLI::Option& option) {
  std::string names;
  for (const std::string& name : option.get_snames()) names += (names.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) names += (names.empty() ? "--" : ", --") + name;
  if (names.empty()) return fmt::format("\\fI{}\\fR", troff(option.get_name(true)));
  const std::string type = takes_value(option) ? option.get_type_name() : std::string();
  return type.empty() ? fmt::format("\\fB{}\\fR", troff(names))
                      : fmt::format("\\fB{}\\fR \\fI{}\\fR", troff(names), troff(type));
}

void add_options(std::string& page, CLI::App& command) {
  for (const CLI::Option* option : options_of(command)) {
    page += fmt::format(".TP\n{}\n{}\n", option_heading(*option), troff(option->get_description()));
  }
}

/// For a word in single quotes of a shell.
std::string shell_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out;
}

/// zsh reads brackets and colons in descriptions as syntax.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return shell_text(out);
}

}  // namespace

std::string manual_page(CLI::App& program, const std::string& version) {
  std::string page = fmt::format(
      ".TH BITWITNESS 1 \"\" \"bitwitness {}\" \"User Commands\"\n.SH NAME\nbitwitness \\- {}\n.SH SYNOPSIS\n"
      "\\fBbitwitness\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n.SH DESCRIPTION\n{}\n.SH OPTIONS\n",
      troff(version), "compare native decoders with the executable they were derived from",
      troff(program.get_description()));
  add_options(page, program);
  page += ".SH COMMANDS\n";
  for (CLI::App* command : commands_of(program)) {
    page += fmt::format(".SS {}\n{}\n", troff(command->get_name()), troff(command->get_description()));
    add_options(page, *command);
  }
  return page + fmt::format(".SH EXIT STATUS\n{}\n", troff(program.get_footer()));
}

std::string bash_completion(CLI::App& program) {
  std::string script = "# bash completion for bitwitness, from its command line's definition\n_bitwitness() {\n";
  script += "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}\n";
  std::vector<std::string> names;
  std::string cases;
  std::vector<std::string> paths;
  const auto note_paths = [&paths](CLI::App& app) {
    for (const CLI::Option* option : options_of(app)) {
      if (takes_path(*option) && !long_name(*option).empty()) paths.push_back(long_name(*option));
    }
  };
  for (CLI::App* command : commands_of(program)) {
    names.push_back(command->get_name());
    std::vector<std::string> options;
    for (const CLI::Option* option : options_of(*command)) {
      if (!long_name(*option).empty()) options.push_back(long_name(*option));
    }
    cases += fmt::format("    {}) options='{}' ;;\n", command->get_name(), fmt::join(options, " "));
    note_paths(*command);
  }
  std::vector<std::string> general;
  for (const CLI::Option* option : options_of(program)) {
    if (!long_name(*option).empty()) general.push_back(long_name(*option));
  }
  script += fmt::format("  local commands='{}' options='{}'\n", fmt::join(names, " "), fmt::join(general, " "));
  script += "  case $command in\n" + cases + "  esac\n";
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  if (!paths.empty()) {
    script +=
        fmt::format("  case $before in\n    {}) mapfile -t COMPREPLY < <(compgen -f -- \"$word\"); return ;;\n  esac\n",
                    fmt::join(paths, "|"));
  }
  script += "  if [ \"$COMP_CWORD\" -eq 1 ]; then options=\"$commands $options\"; fi\n";
  script += "  if [[ $word == -* || $COMP_CWORD -eq 1 ]]; then\n";
  script += "    mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$word\")\n  else\n";
  script += "    mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n  fi\n}\n";
  return script + "complete -o filenames -F _bitwitness bitwitness\n";
}

std::string zsh_completion(CLI::App& program) {
  std::string script =
      "#compdef bitwitness\n# From the definition of the command line.\n_bitwitness() {\n  local -a commands=(\n";
  std::string cases;
  for (CLI::App* command : commands_of(program)) {
    script += fmt::format("    '{}:{}'\n", command->get_name(), zsh_text(command->get_description()));
    cases += fmt::format("    {})\n      _arguments '*:file:_files'", command->get_name());
    for (const CLI::Option* option : options_of(*command)) {
      if (long_name(*option).empty()) continue;
      cases += fmt::format(" \\\n        '{}{}[{}]{}'", takes_value(*option) ? "*" : "", long_name(*option),
                           zsh_text(option->get_description()),
                           !takes_value(*option) ? ""
                           : takes_path(*option) ? ":file:_files"
                                                 : ":value: ");
    }
    cases += "\n      ;;\n";
  }
  script += "  )\n  local -a general=(\n";
  for (const CLI::Option* option : options_of(program)) {
    if (long_name(*option).empty()) continue;
    script += fmt::format("    '{}:{}'\n", long_name(*option), zsh_text(option->get_description()));
  }
  script += "  )\n  if (( CURRENT == 2 )); then\n    _describe command commands\n    _describe -o option general\n";
  script += "    return\n  fi\n";
  script += "  local command=$words[2]\n  shift words\n  (( CURRENT-- ))\n  case $command in\n";
  return script + cases + "  esac\n}\n_bitwitness \"$@\"\n";
}

std::string fish_completion(CLI::App& program) {
  std::string script = "# fish completion for bitwitness, from its command line's definition\n";
  for (const CLI::Option* option : options_of(program)) {
    if (option->get_lnames().empty()) continue;
    script += fmt::format("complete -c bitwitness -n __fish_use_subcommand -l {} -d '{}'\n",
                          option->get_lnames().front(), shell_text(option->get_description()));
  }
  for (CLI::App* command : commands_of(program)) {
    script += fmt::format("complete -c bitwitness -n __fish_use_subcommand -f -a {} -d '{}'\n", command->get_name(),
                          shell_text(command->get_description()));
    for (const CLI::Option* option : options_of(*command)) {
      if (option->get_lnames().empty()) continue;
      script += fmt::format("complete -c bitwitness -n '__fish_seen_subcommand_from {}' -l {}{} -d '{}'\n",
                            command->get_name(), option->get_lnames().front(),
                            !takes_value(*option) ? ""
                            : takes_path(*option) ? " -r -F"
                                                  : " -x",
                            shell_text(option->get_description()));
    }
  }
  return script;
}

}  // namespace bitwitness::cli
