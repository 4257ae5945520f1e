/**
 *  Loading of the libraries of decoders: `test_library IMAGES`, with the path of libuform_images. The program's own
 *  folder, where they are looked for, must be writable, and its own.
 */
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "core/failure.h"
#include "media/library.h"

using namespace uform;

#ifdef __APPLE__
static std::string const suffix = ".dylib";
#else
static std::string const suffix = ".so";
#endif

static std::filesystem::path folder, images;

static bool says(char const *part) { return std::string(last_failure().message).find(part) != std::string::npos; }

static void what_is_not_there_is_named() {
    images_codecs_t const *codecs = nullptr;
    CHECK(images_codecs(codecs) == uform_unsupported_k && !codecs);
    CHECK(last_failure().status == uform_unsupported_k && last_failure().item == UFORM_NO_ITEM);
    CHECK(says(("libuform_images" + suffix + " cannot be loaded: ").c_str()) && says("No such file"));
    CHECK(says("apt-get install libjpeg-dev libdeflate-dev libwebp-dev; "));
    CHECK(says("brew install jpeg-turbo libdeflate webp"));

    clips_codecs_t const *others = nullptr;
    CHECK(clips_codecs(others) == uform_unsupported_k && !others);
    CHECK(says(("libuform_clips" + suffix + " cannot be loaded: ").c_str()) && says("No such file"));
    CHECK(says("apt-get install libavformat-dev libswscale-dev libswresample-dev; "));
    CHECK(says("brew install ffmpeg"));
}

static void what_is_no_library_is_refused() {
    std::ofstream(folder / ("libuform_clips" + suffix)) << "not a library";
    clips_codecs_t const *codecs = nullptr;
    CHECK(clips_codecs(codecs) == uform_unsupported_k && !codecs);
    CHECK(says("cannot be loaded") && !says("No such file"));
}

static void what_has_no_such_function_is_refused() {
    std::filesystem::copy_file(images, folder / ("libuform_clips" + suffix),
                               std::filesystem::copy_options::overwrite_existing);
    clips_codecs_t const *codecs = nullptr;
    CHECK(clips_codecs(codecs) == uform_unsupported_k && !codecs);
    CHECK(says("uform_clips_codecs"));
}

/** The failure before it is not kept, and threads at once get the same. */
static void a_later_call_tries_again() {
    std::filesystem::copy_file(images, folder / ("libuform_images" + suffix));
    std::vector<images_codecs_t const *> codecs(8);
    std::vector<std::thread> threads;
    for (auto &each : codecs)
        threads.emplace_back([&each] {
            if (images_codecs(each)) each = nullptr;
        });
    for (auto &thread : threads) thread.join();
    for (auto const *each : codecs) CHECK(each && each == codecs[0]);
    if (!codecs[0]) return;

    fault_t fault;
    picture_t picture;
    CHECK(codecs[0]->probe({reinterpret_cast<uint8_t const *>("text"), 4}, {}, picture, fault) ==
          uform_unsupported_layout_k);
}

/** What is loaded stays, whatever becomes of the file. */
static void it_is_loaded_once() {
    images_codecs_t const *before = nullptr, *after = nullptr;
    CHECK(!images_codecs(before));
    std::filesystem::remove(folder / ("libuform_images" + suffix));
    CHECK(!images_codecs(after) && before == after);
}

int main(int count, char **arguments) {
    if (count != 2) return std::fprintf(stderr, "usage: %s IMAGES\n", arguments[0]), 2;
    folder = std::filesystem::canonical(arguments[0]).parent_path(), images = arguments[1];
    for (char const *name : {"libuform_images", "libuform_clips"}) std::filesystem::remove(folder / (name + suffix));
    RUN(what_is_not_there_is_named);
    RUN(what_is_no_library_is_refused);
    RUN(what_has_no_such_function_is_refused);
    RUN(a_later_call_tries_again);
    RUN(it_is_loaded_once);
    return check_report();
}
