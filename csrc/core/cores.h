/** The processor cores that this process may use, and where they are. */
#pragma once
#include <cstddef>

#include "uform/types.h"

namespace uform {

/** A set of cores, in the form that the kernel's affinity calls take. */
struct core_set_t {
    static constexpr size_t limit_k = 8192;
    static constexpr size_t word_bits_k = 8 * sizeof(unsigned long);

    unsigned long words[limit_k / word_bits_k] = {};

    bool contains(size_t core) const noexcept {
        return core < limit_k && (words[core / word_bits_k] >> core % word_bits_k & 1);
    }
    void insert(size_t core) noexcept {
        if (core < limit_k) words[core / word_bits_k] |= 1ul << core % word_bits_k;
    }
    void erase(size_t core) noexcept {
        if (core < limit_k) words[core / word_bits_k] &= ~(1ul << core % word_bits_k);
    }
    size_t count() const noexcept {
        size_t total = 0;
        for (unsigned long word : words) total += size_t(__builtin_popcountl(word));
        return total;
    }
};

/** Cores that the calling thread may run on; empty where the system does not tell. */
core_set_t affinity() noexcept;

/**
 *  Cores' worth of time that control groups grant this process, rounded up; SIZE_MAX: no limit.
 *  @param list What `/proc/self/cgroup` says.
 *  @param mount Where control groups are mounted.
 */
size_t quota(char const *list = "/proc/self/cgroup", char const *mount = "/sys/fs/cgroup") noexcept;

/** As many threads as this process can keep busy: at least one. */
size_t usable_cores(core_set_t const &cores) noexcept;

/**
 *  Adds the cores of a memory domain (a NUMA node) to the set. False where there is no such domain.
 *  @param directory Where the system lists them.
 */
bool insert_domain(core_set_t &cores, size_t domain, char const *directory = "/sys/devices/system/node") noexcept;

} // namespace uform
