#pragma once
#include "harness/emulator.hpp"
#include "harness/host/traced_process.hpp"

#include <cstdint>
#include <optional>

// Inside of harness/host/ only.

namespace bitwitness::host {

/// Tells from the signal that stopped a process, its registers and its instruction what has happened there.
Trap trap_of(const Stop& stop, const TracedProcess& process);

/// Tells whether the instruction that trapped is not the one that the stop's address leads to but the one before it.
bool is_behind(const Trap& trap, const Stop& stop);

/// The instruction before the stop's address where the signal leaves no doubt about it: a system call or a breakpoint.
std::optional<std::uint64_t> instruction_before(const Stop& stop, const TracedProcess& process);

/// Tells whether the selector of a stop's code segment is that of 64-bit code.
bool runs_64_bit_code(const Stop& stop);

/// Tells whether an address is one of the page in which the kernel stands in for code; no program can execute its own
/// there.
bool is_in_vsyscall_page(std::uint64_t address);

/// Trap for a system call made by the instruction at an address, or by an unknown one: `int n` has a number to tell.
Trap system_call_trap(std::uint64_t instruction, const TracedProcess& process);

}  // namespace bitwitness::host
