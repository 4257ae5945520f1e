#include "cores.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uform {
namespace {

constexpr size_t path_length_k = 2 * PATH_MAX;

/** The file's first line without its end; false where it cannot be read. */
bool read_line(char const *path, char *line, size_t length) noexcept {
    std::FILE *file = std::fopen(path, "re");
    if (!file) return false;
    bool const read = std::fgets(line, int(length), file) != nullptr;
    std::fclose(file);
    if (read) line[std::strcspn(line, "\n")] = 0;
    return read;
}

/** Writes "directory/name"; false where that is longer than a path can be. */
bool join(char (&path)[path_length_k], char const *directory, char const *name) noexcept {
    return std::snprintf(path, sizeof(path), "%s/%s", directory, name) < int(sizeof(path));
}

size_t rounded_up(long long quota, long long period) noexcept {
    if (quota <= 0 || period <= 0) return SIZE_MAX;
    return size_t((quota - 1) / period + 1);
}

/** Of one version 2 group. */
size_t quota_of_group(char const *directory) noexcept {
    char path[path_length_k], line[128];
    long long limit = 0, period = 0;
    if (!join(path, directory, "cpu.max") || !read_line(path, line, sizeof(line)) ||
        std::sscanf(line, "%lld %lld", &limit, &period) != 2)
        return SIZE_MAX;
    return rounded_up(limit, period);
}

/** Of one version 1 group. */
size_t quota_of_group_v1(char const *directory) noexcept {
    char path[path_length_k], line[128];
    if (!join(path, directory, "cpu.cfs_quota_us") || !read_line(path, line, sizeof(line))) return SIZE_MAX;
    long long const limit = std::atoll(line);
    if (!join(path, directory, "cpu.cfs_period_us") || !read_line(path, line, sizeof(line))) return SIZE_MAX;
    return rounded_up(limit, std::atoll(line));
}

/**
 *  The least of the group's and its ancestors' quotas. A container may be shown a path of its host's that it does not
 *  see; its own group is then the mount's root, which the walk ends at.
 */
template <typename quota_type_>
size_t quota_of_line(char const *mount, char const *group, quota_type_ &&quota_of) noexcept {
    char directory[path_length_k];
    size_t const root = std::strlen(mount);
    if (std::snprintf(directory, sizeof(directory), "%s%s", mount, group) >= int(sizeof(directory)))
        directory[root] = 0;
    size_t least = SIZE_MAX;
    for (;;) {
        least = std::min(least, quota_of(directory));
        char *slash = std::strrchr(directory + root, '/');
        if (!slash) return least;
        *slash = 0;
    }
}

/** Whether a comma-separated list has the word. */
bool lists(char const *list, char const *word) noexcept {
    size_t const length = std::strlen(word);
    for (char const *at = list; at; at = std::strchr(at, ','), at = at ? at + 1 : nullptr)
        if (!std::strncmp(at, word, length) && (at[length] == ',' || at[length] == 0)) return true;
    return false;
}

} // namespace

core_set_t affinity() noexcept {
    core_set_t cores;
#if defined(__linux__)
    if (sched_getaffinity(0, sizeof(cores.words), reinterpret_cast<cpu_set_t *>(cores.words)) != 0) return {};
#endif
    return cores;
}

size_t quota(char const *list, char const *mount) noexcept {
    std::FILE *file = std::fopen(list, "re");
    if (!file) return SIZE_MAX;
    size_t least = SIZE_MAX;
    char line[PATH_MAX + 128], directory[path_length_k];
    while (std::fgets(line, sizeof(line), file)) {
        line[std::strcspn(line, "\n")] = 0;
        // "number:controllers:path", the controllers empty for version 2.
        char *controllers = std::strchr(line, ':');
        char *group = controllers ? std::strchr(controllers + 1, ':') : nullptr;
        if (!group) continue;
        ++controllers;
        *group++ = 0;
        if (*controllers == 0) {
            least = std::min(least, quota_of_line(mount, group, quota_of_group));
        }
        else if (lists(controllers, "cpu")) {
            bool const joint = join(directory, mount, controllers) && access(directory, F_OK) == 0;
            if (!joint && !join(directory, mount, "cpu")) continue;
            least = std::min(least, quota_of_line(directory, group, quota_of_group_v1));
        }
    }
    std::fclose(file);
    return least;
}

size_t usable_cores(core_set_t const &cores) noexcept {
    size_t count = cores.count();
    if (!count) {
        long const online = sysconf(_SC_NPROCESSORS_ONLN);
        count = online > 0 ? size_t(online) : 1;
    }
    return std::max<size_t>(1, std::min(count, quota()));
}

bool insert_domain(core_set_t &cores, size_t domain, char const *directory) noexcept {
    char path[path_length_k], line[16384];
    struct stat status;
    if (stat(directory, &status) != 0) {
        // A system that lists no domains has one.
        core_set_t const all = affinity();
        for (size_t core = 0; core != core_set_t::limit_k; ++core)
            if (all.contains(core)) cores.insert(core);
        return domain == 0;
    }
    std::snprintf(path, sizeof(path), "%s/node%zu/cpulist", directory, domain);
    if (!read_line(path, line, sizeof(line))) return false;
    // "0-3,8,10-11"
    for (char *at = line; *at;) {
        char *end = at;
        size_t const first = std::strtoul(at, &end, 10);
        if (end == at) break;
        size_t last = first;
        if (*end == '-') last = std::strtoul(end + 1, &end, 10);
        for (size_t core = first; core <= last && core < core_set_t::limit_k; ++core) cores.insert(core);
        at = *end == ',' ? end + 1 : end;
    }
    return true;
}

} // namespace uform
