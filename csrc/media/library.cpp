#include "library.h"

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

#include "../core/failure.h"

namespace uform {
namespace {

#ifdef __APPLE__
#define UFORM_LIBRARY_SUFFIX ".dylib"
#else
#define UFORM_LIBRARY_SUFFIX ".so"
#endif

struct library_t {
    char const *file;
    char const *symbol;
    char const *apt;  /**< Packages of Debian and Ubuntu that bring what it needs, whatever the release. */
    char const *brew; /**< And of Homebrew. */
};

constexpr library_t images_k {
    "libuform_images" UFORM_LIBRARY_SUFFIX,
    "uform_images_codecs",
    "libjpeg-dev libdeflate-dev libwebp-dev",
    "jpeg-turbo libdeflate webp",
};
constexpr library_t clips_k {
    "libuform_clips" UFORM_LIBRARY_SUFFIX,
    "uform_clips_codecs",
    "libavformat-dev libswscale-dev libswresample-dev",
    "ffmpeg",
};

/** A file in the folder of the object that this function is linked into; false where that cannot be told. */
bool beside(char const *file, char (&path)[PATH_MAX]) noexcept {
    Dl_info information;
    if (!dladdr(reinterpret_cast<void const *>(&beside), &information) || !information.dli_fname) return false;
    char const *const slash = std::strrchr(information.dli_fname, '/');
    // Without a folder, a name would be looked for in the folders of the system.
    int const folder = slash ? int(slash - information.dli_fname) : 1;
    int const length = std::snprintf(path, sizeof(path), "%.*s/%s", folder, slash ? information.dli_fname : ".", file);
    return length > 0 && size_t(length) < sizeof(path);
}

uform_status_t cannot_load(library_t const &library, char const *path, char const *reason) noexcept {
    if (!reason) reason = "no reason is given";
    // The name is in the sentence already, and a deep folder would leave the reason no room.
    size_t const length = std::strlen(path);
    if (length && !std::strncmp(reason, path, length) && !std::strncmp(reason + length, ": ", 2)) reason += length + 2;
    return fail(uform_unsupported_k, UFORM_NO_ITEM,
                "%s cannot be loaded: %.160s. Debian and Ubuntu: sudo apt-get install %s; macOS: brew install %s",
                library.file, reason, library.apt, library.brew);
}

/**
 *  What the library's function answers, kept in `loaded`. There is no lock, which a fork could leave held forever:
 *  threads that get here at once are given the same object by the system.
 */
template <typename codecs_type_>
uform_status_t load(library_t const &library, std::atomic<codecs_type_ const *> &loaded,
                    codecs_type_ const *&codecs) noexcept {
    codecs = loaded.load(std::memory_order_acquire);
    if (codecs) return uform_success_k;

    char path[PATH_MAX] = {};
    if (!beside(library.file, path)) return cannot_load(library, "", "the folder of libuform cannot be told");
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) return cannot_load(library, path, dlerror());
    void *const symbol = dlsym(handle, library.symbol);
    if (!symbol) return cannot_load(library, path, dlerror());
    codecs = reinterpret_cast<codecs_type_ const *(*)() noexcept>(symbol)();
    loaded.store(codecs, std::memory_order_release);
    return uform_success_k;
}

constinit std::atomic<images_codecs_t const *> images_loaded {nullptr};
constinit std::atomic<clips_codecs_t const *> clips_loaded {nullptr};

} // namespace

uform_status_t images_codecs(images_codecs_t const *&codecs) noexcept { return load(images_k, images_loaded, codecs); }

uform_status_t clips_codecs(clips_codecs_t const *&codecs) noexcept { return load(clips_k, clips_loaded, codecs); }

} // namespace uform
