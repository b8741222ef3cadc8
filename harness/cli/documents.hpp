#pragma once
#include <string>

#include <CLI/CLI.hpp>

// The manual page and the shells' completions, from the definition of the command line itself.

namespace bitwitness::cli {

/// Returns a page for man(1), in the man macros.
std::string manual_page(CLI::App& program, const std::string& version);

/// Return a completion script.
std::string bash_completion(CLI::App& program);
std::string zsh_completion(CLI::App& program);
std::string fish_completion(CLI::App& program);

}  // namespace bitwitness::cli
