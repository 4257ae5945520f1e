/** Statuses, names, CPU classes, cores, tapes, memory, outcomes and arenas. */
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.h"
#include "core/arena.h"
#include "core/cores.h"
#include "core/cpu_class.h"
#include "core/failure.h"
#include "core/memory.h"
#include "core/occupancy.h"
#include "core/outcome.h"
#include "core/tape.h"

using namespace uform;

static void names_cover_their_members() {
    CHECK(!std::strcmp(uform_status_name(uform_success_k), "SUCCESS"));
    CHECK(!std::strcmp(uform_status_name(uform_deferred_k), "DEFERRED"));
    CHECK(!std::strcmp(uform_status_name(uform_invalid_argument_k), "INVALID_ARGUMENT"));
    for (int status = -13; status <= 1; ++status) CHECK(uform_status_name(status));
    CHECK(!uform_status_name(-14) && !uform_status_name(2));
    struct {
        char const *(*name)(int);
        int members;
    } const enumerations[] = {
        {uform_scalar_name, 3}, {uform_mood_name, 3}, {uform_cpu_class_name, 6}, {uform_gpu_class_name, 6}};
    for (auto const &enumeration : enumerations) {
        CHECK(!enumeration.name(-1) && !enumeration.name(0) && !enumeration.name(enumeration.members + 1));
        for (int member = 1; member <= enumeration.members; ++member) CHECK(enumeration.name(member));
    }
    CHECK(!std::strcmp(uform_cpu_class_name(uform_cpu_class_haswell_k), "HASWELL"));
    CHECK(!std::strcmp(uform_mood_name(uform_mood_chilling_k), "CHILLING"));
    CHECK(uform_scalar_size(uform_f32_k) == 4 && uform_scalar_size(uform_bf16_k) == 2);
    CHECK(uform_scalar_size(uform_e4m3_k) == 1 && uform_scalar_size(0) == 0 && uform_scalar_size(4) == 0);
    CHECK(!std::strcmp(uform_version(), "0.1.0"));
}

static void failures_belong_to_their_thread() {
    CHECK_STATUS(fail(uform_io_k, 3, "path: %s", "gone"), uform_io_k);
    std::thread([] {
        uform_failure_t other;
        uform_last_failure(&other);
        if (other.status != uform_success_k || other.item != UFORM_NO_ITEM || other.message[0]) std::abort();
        fail(uform_internal_k, 1, "elsewhere");
    }).join();
    uform_failure_t failure;
    uform_last_failure(&failure);
    CHECK(failure.status == uform_io_k && failure.item == 3 && !std::strcmp(failure.message, "path: gone"));
    fail(uform_io_k, 0, "%s", std::string(1000, 'x').c_str());
    uform_last_failure(&failure);
    CHECK(std::strlen(failure.message) == sizeof(failure.message) - 1);
}

static void cpu_classes_are_checked() {
    CHECK(uform_cpu_class_supported(uform_cpu_class_serial_k));
    CHECK(!uform_cpu_class_supported(0) && !uform_cpu_class_supported(-5) && !uform_cpu_class_supported(99));
    CHECK(uform_cpu_class_supported(uform_cpu_class_derive()));
    CHECK_STATUS(check_cpu_class(uform_cpu_class_default_k), uform_success_k);
    CHECK_STATUS(check_cpu_class(uform_cpu_class_t(99)), uform_unknown_kind_k);
#if defined(__x86_64__)
    CHECK_STATUS(check_cpu_class(uform_cpu_class_neon_k), uform_unsupported_k);
    for (int higher = uform_cpu_class_sapphire_k; higher > uform_cpu_class_serial_k; --higher)
        if (uform_cpu_class_supported(higher)) CHECK(uform_cpu_class_supported(higher - 1));
#endif
}

static char const *program;

static void a_class_can_be_assumed() {
    std::string const command = std::string(program) + " " + uform_cpu_class_name(uform_cpu_class_derive());
    CHECK(std::system(("UFORM_ASSUME_CPU_CLASS=SAPPHIRE " + command).c_str()) == 0);
    if (!uform_cpu_class_supported(uform_cpu_class_sapphire_k))
        CHECK(std::system(("UFORM_ASSUME_CPU_CLASS=sapphire " + command).c_str()) != 0);
}

static std::string make_directory() {
    char path[] = "/tmp/uform-test-XXXXXX";
    CHECK(mkdtemp(path) != nullptr);
    return path;
}

static void write_file(std::string const &path, char const *text) {
    for (size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
        mkdir(path.substr(0, slash).c_str(), 0700);
    std::FILE *file = std::fopen(path.c_str(), "w");
    CHECK(file != nullptr);
    if (!file) return;
    std::fputs(text, file);
    std::fclose(file);
}

static void quotas_are_honoured() {
    std::string const root = make_directory(), list = root + "/list", mount = root + "/mount";
    CHECK(quota((root + "/none").c_str(), mount.c_str()) == SIZE_MAX);
    write_file(list, "0::/outer/inner\n");
    CHECK(quota(list.c_str(), mount.c_str()) == SIZE_MAX);
    write_file(mount + "/outer/inner/cpu.max", "max 100000\n");
    CHECK(quota(list.c_str(), mount.c_str()) == SIZE_MAX);
    write_file(mount + "/outer/cpu.max", "250000 100000\n");
    CHECK(quota(list.c_str(), mount.c_str()) == 3);
    write_file(mount + "/outer/inner/cpu.max", "100000 100000\n");
    CHECK(quota(list.c_str(), mount.c_str()) == 1);

    write_file(list, "9:memory:/a\n4:cpuacct,cpu:/not/visible/here\n");
    CHECK(quota(list.c_str(), mount.c_str()) == SIZE_MAX);
    write_file(mount + "/cpu/cpu.cfs_period_us", "100000\n");
    write_file(mount + "/cpu/cpu.cfs_quota_us", "-1\n");
    CHECK(quota(list.c_str(), mount.c_str()) == SIZE_MAX);
    write_file(mount + "/cpu/cpu.cfs_quota_us", "400000\n");
    CHECK(quota(list.c_str(), mount.c_str()) == 4);
    write_file(list, "4:cpuset:/a\n\nnonsense\n");
    CHECK(quota(list.c_str(), mount.c_str()) == SIZE_MAX);
    CHECK(std::system(("rm -r " + root).c_str()) == 0);

    core_set_t one;
    one.insert(5);
    CHECK(usable_cores(one) == 1);
    CHECK(usable_cores({}) >= 1);
    CHECK(usable_cores(affinity()) <= std::max<size_t>(1, affinity().count()));
}

static void domains_are_read() {
    std::string const root = make_directory();
    write_file(root + "/node1/cpulist", "0-3,70,100-101\n");
    write_file(root + "/node2/cpulist", "\n");
    core_set_t cores;
    CHECK(insert_domain(cores, 1, root.c_str()));
    CHECK(cores.count() == 7 && cores.contains(0) && cores.contains(3) && cores.contains(70) && cores.contains(101));
    CHECK(!cores.contains(4) && !cores.contains(102) && !cores.contains(1u << 30));
    CHECK(insert_domain(cores, 2, root.c_str()) && cores.count() == 7);
    CHECK(!insert_domain(cores, 0, root.c_str()));
    CHECK(std::system(("rm -r " + root).c_str()) == 0);
    CHECK(insert_domain(cores, 0, (root + "/none").c_str()) && !insert_domain(cores, 1, (root + "/none").c_str()));
}

static void tapes_are_checked() {
    char const data[] = "abcdef";
    auto const item_of = [&](uform_tape_t const &tape) {
        CHECK_STATUS(check_tape(tape, "texts"), uform_invalid_argument_k);
        return last_failure().item;
    };
    size_t const good[] = {0, 2, 2, 6}, late[] = {1, 2}, falling[] = {0, 4, 3, 6}, past[] = {0, 6, 7, 8};
    size_t const zero[] = {0}, one[] = {1};
    CHECK_STATUS(check_tape({data, 6, good, 3}, "texts"), uform_success_k);
    CHECK_STATUS(check_tape({data, 7, good, 3}, "texts"), uform_success_k);
    CHECK_STATUS(check_tape({nullptr, 0, nullptr, 0}, "texts"), uform_success_k);
    CHECK_STATUS(check_tape({data, 6, zero, 0}, "texts"), uform_success_k);
    CHECK(item_of({data, 6, one, 0}) == UFORM_NO_ITEM);
    CHECK(item_of({data, 6, late, 1}) == 0);
    CHECK(item_of({data, 6, falling, 3}) == 1);
    CHECK(item_of({data, 6, past, 3}) == 1);
    CHECK(std::strstr(last_failure().message, "texts: item 1"));
    CHECK(item_of({data, 6, nullptr, 1}) == UFORM_NO_ITEM);
    CHECK(item_of({data, 6, nullptr, SIZE_MAX}) == UFORM_NO_ITEM);
    CHECK(item_of({nullptr, 6, good, 3}) == UFORM_NO_ITEM);
}

static void blocks_grow_and_keep() {
    memory_block_t block;
    std::byte *first = block.reserve(100);
    CHECK(first && reinterpret_cast<uintptr_t>(first) % 64 == 0 && block.capacity() == 100);
    CHECK(block.reserve(10) == first && block.capacity() == 100);
    CHECK(block.reserve(0) == first);
    std::byte *large = block.reserve(size_t(5) << 20);
    CHECK(large && reinterpret_cast<uintptr_t>(large) % (size_t(2) << 20) == 0);
    std::memset(large, 1, size_t(5) << 20);
    CHECK(block.capacity() >= size_t(5) << 20 && block.capacity() <= size_t(6) << 20);
    CHECK(!block.reserve(SIZE_MAX) && !block.reserve(SIZE_MAX - 63) && !block.reserve(SIZE_MAX / 2));
    CHECK(block.capacity() == 0 && block.reserve(0));
}

static void occupancy_serves_one() {
    occupancy_t occupancy;
    CHECK(!occupancy.taken());
    occupancy.wait();
    for (int round = 0; round != 100000; ++round) {
        CHECK(occupancy.try_take() && !occupancy.try_take() && occupancy.taken());
        occupancy.give_back();
        CHECK(!occupancy.taken());
    }
    size_t entries = 0;
    auto const enter = [&] {
        for (int done = 0; done != 2000;)
            if (occupancy.try_take()) ++entries, ++done, occupancy.give_back();
            else occupancy.wait();
    };
    std::thread other(enter);
    enter();
    other.join();
    CHECK(entries == 4000);
}

static void outcomes_tell_all_waiters() {
    auto *outcome = new uform_outcome_t;
    CHECK(uform_outcome_status(outcome) == uform_deferred_k);
    uform_failure_t failure;
    uform_outcome_failure(outcome, &failure);
    CHECK(failure.status == uform_deferred_k && failure.item == UFORM_NO_ITEM && !failure.message[0]);
    std::atomic<int> told {0};
    std::vector<std::thread> waiters;
    for (int waiter = 0; waiter != 4; ++waiter)
        waiters.emplace_back([&] { told += uform_outcome_wait(outcome) == uform_io_k; });
    std::thread finisher([outcome] { outcome->finish({uform_io_k, 7, "path: gone"}); });
    for (std::thread &waiter : waiters) waiter.join();
    CHECK(told == 4 && uform_outcome_wait(outcome) == uform_io_k);
    uform_outcome_failure(outcome, &failure);
    CHECK(failure.item == 7 && !std::strcmp(failure.message, "path: gone"));
    uform_outcome_free(outcome);
    finisher.join();
    uform_outcome_free(nullptr);

    for (int round = 0; round != 1000; ++round) {
        auto *raced = new uform_outcome_t;
        std::thread finishing([raced] { raced->finish({uform_success_k, UFORM_NO_ITEM, {}}); });
        uform_outcome_free(raced);
        finishing.join();
    }
}

static void arenas_rewind_and_pin() {
    uform_arena_t *arena = nullptr;
    CHECK_STATUS(uform_arena_init(nullptr, nullptr), uform_invalid_argument_k);
    CHECK_STATUS(uform_arena_init(nullptr, &arena), uform_success_k);
    CHECK(uform_arena_generation(arena) == 0 && uform_arena_capacity(arena) == 0 && !uform_arena_busy(arena));
    std::byte *data = nullptr;
    for (int round = 0; round != 3; ++round) {
        arena_hold_t hold;
        CHECK_STATUS(hold.acquire(*arena), uform_success_k);
        arena_hold_t second;
        CHECK_STATUS(second.acquire(*arena), uform_contended_k);
        CHECK(uform_arena_busy(arena));
        CHECK_STATUS(uform_arena_pin(arena, uform_arena_generation(arena)), uform_contended_k);
        hold->rewind();
        std::byte *landed = hold->land(1000);
        CHECK(landed && (!data || landed == data) && reinterpret_cast<uintptr_t>(landed) % 64 == 0);
        data = landed;
    }
    CHECK(uform_arena_generation(arena) == 3 && uform_arena_capacity(arena) == 1000 && !uform_arena_busy(arena));
    CHECK_STATUS(uform_arena_pin(arena, 2), uform_invalid_argument_k);
    CHECK_STATUS(uform_arena_pin(arena, 4), uform_invalid_argument_k);
    CHECK_STATUS(uform_arena_pin(arena, 3 + (uint64_t(1) << 40)), uform_invalid_argument_k);
    CHECK_STATUS(uform_arena_pin(arena, 3), uform_success_k);
    CHECK_STATUS(uform_arena_pin(arena, 3), uform_success_k);
    CHECK(uform_arena_pins(arena) == 2);
    {
        arena_hold_t hold;
        CHECK_STATUS(hold.acquire(*arena), uform_contended_k);
        CHECK(std::strstr(last_failure().message, "2 exports"));
    }
    CHECK(uform_arena_generation(arena) == 3);
    uform_arena_unpin(arena);
    CHECK(uform_arena_pins(arena) == 1);
    uform_arena_free(arena);
    std::memset(data, 1, 1000);
    uform_arena_unpin(arena);
    uform_arena_free(nullptr);
}

static void arenas_end_once_calls_and_pins_have() {
    for (int round = 0; round != 500; ++round) {
        uform_arena_t *arena = nullptr;
        CHECK_STATUS(uform_arena_init(nullptr, &arena), uform_success_k);
        arena_hold_t hold;
        CHECK_STATUS(hold.acquire(*arena), uform_success_k);
        std::thread caller([moved = std::move(hold)]() mutable {
            moved->rewind();
            moved->land(64);
            moved.release();
        });
        uform_arena_free(arena);
        caller.join();
    }
    for (int round = 0; round != 500; ++round) {
        uform_arena_t *arena = nullptr;
        CHECK_STATUS(uform_arena_init(nullptr, &arena), uform_success_k);
        for (int pin = 0; pin != 3; ++pin) CHECK_STATUS(uform_arena_pin(arena, 0), uform_success_k);
        std::thread first(uform_arena_unpin, arena), second(uform_arena_unpin, arena), third(uform_arena_unpin, arena);
        uform_arena_free(arena);
        first.join(), second.join(), third.join();
    }
}

/** Pins and calls race for an arena; neither ever sees the other. */
static void pins_and_calls_exclude_each_other() {
    uform_arena_t *arena = nullptr;
    CHECK_STATUS(uform_arena_init(nullptr, &arena), uform_success_k);
    size_t guarded = 0; // Written by calls and read by pins, without any other order between them.
    std::atomic<size_t> pinned {0}, called {0};
    std::thread pinner([&] {
        for (int round = 0; round != 50000; ++round) {
            uint64_t const generation = uform_arena_generation(arena);
            if (uform_arena_pin(arena, generation) != uform_success_k) continue;
            if (guarded != generation || uform_arena_generation(arena) != generation) std::abort();
            ++pinned;
            uform_arena_unpin(arena);
        }
    });
    for (int round = 0; round != 50000; ++round) {
        arena_hold_t hold;
        if (hold.acquire(*arena) != uform_success_k) continue;
        hold->rewind();
        guarded = uform_arena_generation(arena);
        ++called;
    }
    pinner.join();
    CHECK(called == uform_arena_generation(arena) && uform_arena_pins(arena) == 0);
    uform_arena_free(arena);
}

struct ledger_t {
    size_t allocations = 0, frees = 0, alive = 0, shift = 0;
    bool exhausted = false;
};

static void arenas_land_in_lent_memory() {
    ledger_t ledger;
    uform_allocator_t allocator;
    allocator.handle = &ledger;
    allocator.allocate = [](void *handle, size_t bytes) -> void * {
        auto &book = *static_cast<ledger_t *>(handle);
        if (book.exhausted) return nullptr;
        ++book.allocations, book.alive += bytes;
        void *pointer = nullptr;
        return posix_memalign(&pointer, 64, bytes + 64) == 0 ? static_cast<char *>(pointer) + book.shift : nullptr;
    };
    allocator.free = [](void *handle, void *pointer, size_t bytes) {
        auto &book = *static_cast<ledger_t *>(handle);
        ++book.frees, book.alive -= bytes;
        std::free(static_cast<char *>(pointer) - reinterpret_cast<uintptr_t>(pointer) % 64);
    };
    uform_arena_t *arena = nullptr;
    uform_allocator_t half = allocator;
    half.free = nullptr;
    CHECK_STATUS(uform_arena_init_over(nullptr, &arena), uform_invalid_argument_k);
    CHECK_STATUS(uform_arena_init_over(&half, &arena), uform_invalid_argument_k);
    CHECK_STATUS(uform_arena_init_over(&allocator, &arena), uform_success_k);
    auto const land = [&](size_t bytes) {
        arena_hold_t hold;
        CHECK_STATUS(hold.acquire(*arena), uform_success_k);
        hold->rewind();
        return hold->land(bytes);
    };
    CHECK(land(128) && ledger.allocations == 1 && ledger.frees == 0 && uform_arena_capacity(arena) == 128);
    CHECK(land(64) && ledger.allocations == 2 && ledger.frees == 1 && ledger.alive == 64);
    ledger.exhausted = true;
    CHECK(!land(64) && last_failure().status == uform_out_of_memory_k && ledger.alive == 0);
    CHECK(uform_arena_capacity(arena) == 0);
    ledger.exhausted = false;
    ledger.shift = 8;
    CHECK(!land(64) && last_failure().status == uform_invalid_argument_k);
    ledger.shift = 0;
    CHECK(land(192) && ledger.alive == 192);
    uform_arena_free(arena);
    CHECK(ledger.alive == 0 && ledger.frees == ledger.allocations);
}

int main(int argument_count, char **arguments) {
    // Detection happens once a process, so this one runs itself.
    if (argument_count == 2) {
        bool const same = !std::strcmp(uform_cpu_class_name(uform_cpu_class_derive()), arguments[1]);
        return !same || !uform_cpu_class_supported(uform_cpu_class_sapphire_k);
    }
    program = arguments[0];
    RUN(names_cover_their_members);
    RUN(failures_belong_to_their_thread);
    RUN(cpu_classes_are_checked);
    RUN(a_class_can_be_assumed);
    RUN(quotas_are_honoured);
    RUN(domains_are_read);
    RUN(tapes_are_checked);
    RUN(blocks_grow_and_keep);
    RUN(occupancy_serves_one);
    RUN(outcomes_tell_all_waiters);
    RUN(arenas_rewind_and_pin);
    RUN(arenas_end_once_calls_and_pins_have);
    RUN(pins_and_calls_exclude_each_other);
    RUN(arenas_land_in_lent_memory);
    return check_report();
}

#if defined(__SANITIZE_ADDRESS__)
extern "C" char const *__asan_default_options() { return "allocator_may_return_null=1"; }
#elif defined(__SANITIZE_THREAD__)
extern "C" char const *__tsan_default_options() { return "allocator_may_return_null=1"; }
#endif
