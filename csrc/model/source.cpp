#include "source.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../core/failure.h"

namespace uform {
namespace {

/** `strerror` of any thread at once. */
struct reason_t {
    char text[128] = "unknown error";

    explicit reason_t(int error) noexcept {
        // The GNU function answers a pointer, the POSIX one a number; both of them are told apart by overloading.
        use(strerror_r(error, text, sizeof(text)));
    }

  private:
    void use(char const *message) noexcept {
        if (message != text) std::strncpy(text, message, sizeof(text) - 1);
    }
    void use(int) noexcept {}
};

} // namespace

source_t::~source_t() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

uform_status_t source_t::open(char const *path) noexcept {
    // Opening a pipe would otherwise wait for whoever writes to it.
    descriptor_ = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat information;
    if (descriptor_ < 0 || ::fstat(descriptor_, &information) != 0)
        return fail(uform_io_k, UFORM_NO_ITEM, "path: cannot open %.200s: %s", path, reason_t(errno).text);
    if (S_ISDIR(information.st_mode)) return fail(uform_io_k, UFORM_NO_ITEM, "path: %.200s is a directory", path);
    if (!S_ISREG(information.st_mode))
        return fail(uform_io_k, UFORM_NO_ITEM, "path: %.200s is not a regular file", path);
    size_ = static_cast<uint64_t>(information.st_size);
    return uform_success_k;
}

uform_status_t source_t::read(uint64_t offset, std::span<std::byte> bytes) const noexcept {
    if (data_) {
        std::memcpy(bytes.data(), data_ + offset, bytes.size());
        return uform_success_k;
    }
    while (!bytes.empty()) {
        ssize_t const got = ::pread(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return fail(uform_io_k, UFORM_NO_ITEM, "path: reading the checkpoint failed: %s", reason_t(errno).text);
        if (got == 0) return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: it became shorter while it was read");
        bytes = bytes.subspan(static_cast<size_t>(got));
        offset += static_cast<uint64_t>(got);
    }
    return uform_success_k;
}

} // namespace uform
