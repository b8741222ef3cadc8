// Routines that attack who calls them, and systems that get in the way: each costs one value or one clear line.
#define BITWITNESS_TRIED_MACHINE make_host_machine
#define BITWITNESS_TRIES_HOST true
#include "harness/call_plan.hpp"
#include "harness/call_room.hpp"
#include "harness/error.hpp"
#include "harness/host/host_code.hpp"
#include "harness/lane_kind.hpp"
#include "tests/machine_runs.hpp"
#include "tests/pe_builder.hpp"

#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <functional>
#include <stop_token>
#include <thread>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace bitwitness;
using namespace bitwitness::tests;

namespace {

struct Attack {
  const char* name;
  const char* reason;  ///< of an odd value; null when it returns
};

const Attack attacks_32[] = {
    {"writes_far", "writes 4 bytes at 0x7fff0000, where nothing is mapped"},
    {"exits", "raises interrupt 0x80"},
    {"kills", "raises interrupt 0x80"},
    {"asks_by_syscall", "calls the operating system"},
    {"asks_by_sysenter", "calls the operating system"},
    {"asks_in_64_bits", "calls the operating system"},
    {"visits_64_bits", nullptr},
    {"loops", "has run for 20 ms of processor time and not returned"},
    {"fills_stack", "writes 4 bytes at 0x*, above the stack"},
    {"overwrites_caller", "writes 4 bytes at 0x*, in the code that calls the routine, which is read-only"},
    {"runs_data", "jumps to code at 0x10004000, in .data, which is not executable"},
    {"raises_x87", "raises the x87 exception (16)"},
    {"leaves_x87_pending", nullptr},
    {"raises_sse", "raises the SIMD exception (19)"},
    {"leaves_trap", "raises the debug exception (1)"},
    {"misaligns", "raises the alignment exception (17)"},
    {"leaves_odd_flags", nullptr},
    {"loads_bad_selector", "raises the general protection exception (13)"},
    {"leaves_null_ds", "raises the general protection exception (13)"},
    {"leaves_null_es", nullptr},
    {"leaves_mmx", nullptr},
    {"recurses", "writes 4 bytes at 0x*, where the stack is exhausted"}};

const Attack attacks_64[] = {
    {"writes_far", "writes 4 bytes at 0x7fff0000, where nothing is mapped"},
    {"writes_nowhere", "writes 4 bytes at 0x41414141*, where nothing is mapped"},
    {"exits", "calls the operating system"},
    {"kills", "calls the operating system"},
    {"asks_by_int_80", "raises interrupt 0x80"},
    {"asks_in_vsyscall", "*"},  // a kernel may have that page or not
    {"loops", "has run for 20 ms of processor time and not returned"},
    {"fills_stack", "writes 8 bytes at 0x*, above the stack"},
    {"overwrites_caller", "writes 8 bytes at 0x*, in the code that calls the routine, which is read-only"},
    {"runs_data", "jumps to code at 0x180003000, in .data, which is not executable"},
    {"raises_x87", "raises the x87 exception (16)"},
    {"leaves_x87_pending", nullptr},
    {"raises_sse", "raises the SIMD exception (19)"},
    {"leaves_trap", "raises the debug exception (1)"},
    {"misaligns", "raises the alignment exception (17)"},
    {"leaves_odd_flags", nullptr},
    {"loads_bad_selector", "raises the general protection exception (13)"},
    {"leaves_null_ds", nullptr},
    {"leaves_mmx", nullptr},
    {"recurses", "writes 8 bytes at 0x*, where the stack is exhausted"},
    {"loses_stack", "reads 8 bytes at 0x4141414141414141, where nothing is mapped"}};

std::string plain(unsigned bits) {
  return bits == 32 ? "cdecl(in u32, out u32)" : "win64(in u32, out u32)";
}

void check_attacks(unsigned bits, std::span<const Attack> attacks) {
  const Image image = load_fixture(fmt::format("hostile{}.dll", bits));
  std::vector<Bytes> values;
  for (const std::uint32_t a : {0U, 2U, 1U, 4U, 3U, 5U, 6U, 8U, 7U, 10U}) values.push_back(bytes_of_u32({a}));
  for (const Attack& attack : attacks) {
    INFO(attack.name);
    Tried routine(image, std::string("export:") + attack.name, plain(bits), {.budget = 1000});
    const std::vector<Ended> ends = routine.run(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto a = read_as<std::uint32_t>(values[i].data());
      INFO("value " << a << ": " << ends[i]);
      if (a % 2 == 0 || attack.reason == nullptr) {
        CHECK(ends[i] == returned({a + 1}));
      } else {
        CHECK(ends[i].kind != OutcomeKind::returned);
        CHECK(is_like(ends[i].reason, attack.reason));
      }
    }
    CHECK(comparable(routine.run_alone(values)) == comparable(ends));
    CHECK(comparable(routine.run(values)) == comparable(ends));
  }
}

std::size_t lines_of(const std::string& file) {
  std::ifstream in(file);
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

std::vector<pid_t> children() {
  std::vector<pid_t> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream in(thread.path() / "children");
    for (pid_t pid = 0; in >> pid;) all.push_back(pid);
  }
  return all;
}

std::size_t descriptors() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
}

/// What making a machine says in a process of its own where something is not allowed.
std::string refusal_in_child(const std::function<void()>& forbid) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Image image = load_fixture("hostile64.dll");
  const pid_t child = ::fork();
  if (child == 0) {
    std::string said = "(made)";
    forbid();
    try {
      make_host_machine(image, {"tried", image.resolve("export:loops"), parse_signature(plain(64))});
    } catch (const Error& error) {
      said = error.what();
    } catch (...) {
      said = "(another exception)";
    }
    static_cast<void>(::write(ends[1], said.data(), said.size()) == 0);
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t size = ::read(ends[0], said.data(), said.size());
  said.resize(size < 0 ? 0 : static_cast<std::size_t>(size));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(said.find('\n') == std::string::npos);
  return said;
}

void refuse_call(unsigned number) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{4, code};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

}  // namespace

TEST_CASE("Each attack of 32-bit code costs one value") {
  check_attacks(32, attacks_32);
}

TEST_CASE("Each attack of 64-bit code costs one value", "[64-bit]") {
  check_attacks(64, attacks_64);
}

TEST_CASE("Returns into the middle of the caller's code cost no other value") {
  for (const unsigned bits : {32U, 64U}) {
    const Image image = load_fixture(fmt::format("hostile{}.dll", bits));
    Tried routine(image, "export:returns_askew", bits == 32 ? "cdecl(value u32, out u32)" : "win64(value u32, out u32)",
                  {.budget = 1000});
    std::vector<Bytes> values;
    for (std::uint32_t by = 1; by < 260; ++by) {
      values.push_back(bytes_of_u32({0}));
      values.push_back(bytes_of_u32({by}));
    }
    const std::vector<Ended> ends = routine.run(values);
    for (std::size_t i = 0; i < ends.size(); i += 2) {
      INFO("after " << i / 2 << " bytes: " << ends[i]);
      CHECK(ends[i] == returned({0}));
    }
  }
}

TEST_CASE("A routine that writes to its caller's state costs no other value") {
  const Image image = load_fixture("hostile32.dll");
  const Signature signature = parse_signature("cdecl(value u32, value u32, out u32)");
  const CallPlan sizes = plan_call(signature, false, 0, 0, {});
  const CallPlan plan =
      plan_call(signature, false, find_base(image, 2 * sizes.layout.whole.size), 0, filler_of(LaneKind::batch));
  constexpr std::size_t most_values = 8192;
  const host::HostLayout layout = host::lay_out_host(plan, most_values);
  Tried routine(image, "export:writes_there", "cdecl(value u32, value u32, out u32)", {.budget = 1000});
  std::vector<Bytes> values;
  std::vector<std::uint32_t> written;
  for (std::size_t offset = 0; offset < 700; offset += 4) {
    const auto address = static_cast<std::uint32_t>(layout.state.address + offset);
    for (const std::uint32_t to : {address, 0U}) {
      written.push_back(static_cast<std::uint32_t>(offset));
      values.push_back(bytes_of_u32({to, written.back()}));
    }
  }
  const std::vector<Ended> ends = routine.run(values);
  for (std::size_t i = 1; i < ends.size(); i += 2) {
    INFO("after a write to offset " << written[i] << ": " << ends[i]);
    CHECK(ends[i] == returned({written[i]}));
  }
  // Results that would go elsewhere from here on.
  constexpr std::uint32_t elsewhere = 16;
  std::vector<Bytes> moved = {bytes_of_u32({static_cast<std::uint32_t>(layout.state.address + host::state_words),
                                            static_cast<std::uint32_t>(layout.words.address + elsewhere)})};
  for (std::uint32_t i = 1; i < 20; ++i) moved.push_back(bytes_of_u32({0, i}));
  const std::vector<Ended> kept = routine.run(moved);
  for (std::uint32_t i = 1; i < 20; ++i) CHECK(kept[i] == returned({i}));
  // A loop that moves what a watchdog looks at ends all the same.
  Tried counting(image, "export:counts_down", "cdecl(value u32, out u32)", {.budget = 1000});
  const auto left = static_cast<std::uint32_t>(layout.state.address + host::state_left);
  CHECK(counting.run_one(bytes_of_u32({left})).kind != OutcomeKind::returned);
}

TEST_CASE("Machines leave no descriptor, child or mapping behind", "[64-bit]") {
  const Image image = load_fixture("hostile64.dll");
  const std::vector<Bytes> values = {bytes_of_u32({0}), bytes_of_u32({1}), bytes_of_u32({2})};
  const auto use = [&] {
    Tried routine(image, "export:fills_stack", plain(64), {.budget = 1000});
    CHECK(routine.run(values).at(2) == returned({3}));
    CHECK(routine.run_alone(values).at(2) == returned({3}));
  };
  use();
  const std::size_t files = descriptors();
  const std::size_t maps = lines_of("/proc/self/maps");
  for (int i = 0; i < 30; ++i) use();
  CHECK(descriptors() == files);
  CHECK(children().empty());
  CHECK(lines_of("/proc/self/maps") <= maps + 2);  // the allocator may take another arena
}

TEST_CASE("Signals from outside change nothing, and SIGKILL is one clear line", "[64-bit]") {
  const Image image = load_fixture("hostile64.dll");
  Tried routine(image, "export:writes_far", plain(64));
  const std::vector<Bytes> values(2000, bytes_of_u32({1}));
  const std::vector<Ended> quiet = routine.run(values);
  std::vector<Ended> ends;
  {
    const std::vector<pid_t> processes = children();
    REQUIRE_FALSE(processes.empty());
    const std::jthread sender([&processes](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        for (const int signal : {SIGTERM, SIGSTOP, SIGUSR1, SIGWINCH}) {
          for (const pid_t process : processes) ::kill(process, signal);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
    ends = routine.run(values);
  }
  CHECK(ends == quiet);
  for (const pid_t process : children()) ::kill(process, SIGKILL);
  CHECK_THROWS_WITH(routine.run(values), "--witness host: the process that runs the routine is gone (signal 9)");
}

TEST_CASE("An endless loop ends soon when a stop is requested", "[64-bit]") {
  const Image image = load_fixture("hostile64.dll");
  std::stop_source source;
  const Routine routine{"loops", image.resolve("export:loops"), parse_signature(plain(64))};
  const auto machine = make_host_machine(image, routine, {.budget = 1'000'000'000'000, .stop = source.get_token()});
  const std::jthread stopper([&source] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    source.request_stop();
  });
  Batch batch;
  const auto start = std::chrono::steady_clock::now();
  machine->run(batch, bytes_of_u32({1}), {});
  CHECK(batch.unfinished);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
}

TEST_CASE("A machine made in one thread is used in another", "[64-bit]") {
  const Image image = load_fixture("hostile64.dll");
  Tried routine(image, "export:exits", plain(64));
  const std::vector<Bytes> values = {bytes_of_u32({1}), bytes_of_u32({2})};
  const std::vector<Ended> here = routine.run(values);
  Batch batch;
  std::jthread([&] { routine.machine().run(batch, joined(values), {}); }).join();
  CHECK(batch.outcomes == std::vector<OutcomeKind>{OutcomeKind::faulted, OutcomeKind::returned});
  CHECK(routine.run(values) == here);
}

TEST_CASE("The process is gone with the one that made it", "[64-bit]") {
  const Image image = load_fixture("hostile64.dll");
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t maker = ::fork();
  if (maker == 0) {
    const Routine routine{"loops", image.resolve("export:loops"), parse_signature(plain(64))};
    const auto machine = make_host_machine(image, routine, {.budget = 1'000'000'000'000});
    const pid_t process = children().at(0);
    static_cast<void>(::write(ends[1], &process, sizeof process) == 0);
    Batch batch;
    machine->run(batch, bytes_of_u32({1}), {});
    ::_exit(0);
  }
  pid_t process = 0;
  REQUIRE(::read(ends[0], &process, sizeof process) == sizeof process);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ::kill(maker, SIGKILL);
  ::waitpid(maker, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  const auto is_running = [process] {
    std::ifstream in(fmt::format("/proc/{}/stat", process));
    const std::string line(std::istreambuf_iterator<char>(in), {});
    return !line.empty() && line.find(") Z") == std::string::npos;
  };
  for (int i = 0; i < 200 && is_running(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK_FALSE(is_running());
}

TEST_CASE("Images lie where this program has its own memory, and low") {
  static int something = 0;
  PeBuilder builder;
  const auto check = [&builder](const char* signature) {
    const TemporaryFile file(builder.build().bytes);
    const Image image = Image::load(file.path());
    Tried routine(image, fmt::format("{:#x}", image.base() + 0x1000), signature);
    CHECK(routine.run_one(bytes_of_u32({7})) == returned({7}));
  };
  builder.is_64 = true;
  builder.sections = {{.name = ".text", .data = bytes_of({0x8b, 0x01, 0xc3})}};  // mov eax, [rcx]; ret
  for (const void* const place : {static_cast<const void*>(&something), reinterpret_cast<const void*>(&::write)}) {
    builder.image_base = (reinterpret_cast<std::uint64_t>(place) & ~std::uint64_t{0xffff}) - 0x1000000;
    for (int i = 0; i < 3; ++i, builder.image_base += 0x800000) check("win64(in u32) -> u32");
  }
  builder.is_64 = false;
  builder.image_base = 0x10000;
  builder.sections = {{.name = ".text", .data = bytes_of({0x8b, 0x44, 0x24, 0x04, 0x8b, 0x00, 0xc3})}};
  check("cdecl(in u32) -> u32");
}

TEST_CASE("A system that does not allow it is told in one line", "[64-bit]") {
  CHECK(refusal_in_child([] {}) == "(made)");
  CHECK(is_like(refusal_in_child([] { refuse_call(SYS_ptrace); }), "--witness host: *(ptrace)*"));
  CHECK(is_like(refusal_in_child([] { refuse_call(SYS_seccomp); }), "--witness host: *(seccomp)*"));
  CHECK(is_like(refusal_in_child([] { refuse_call(SYS_memfd_create); }), "--witness host: *"));
  const auto limit = [](auto resource, rlim_t most) {
    const rlimit value{most, most};
    ::setrlimit(resource, &value);
  };
  CHECK(is_like(refusal_in_child([&] { limit(RLIMIT_FSIZE, 4096); }), "--witness host: *File too large"));
  CHECK(is_like(refusal_in_child([&] { limit(RLIMIT_NOFILE, 3); }), "--witness host: *"));
  CHECK(is_like(refusal_in_child([&] {
                  constexpr uid_t nobody = 65534;
                  if (::geteuid() == 0 && ::setuid(nobody) != 0) ::_exit(1);
                  limit(RLIMIT_NPROC, 0);
                }),
                "--witness host: *Resource temporarily unavailable"));
}
