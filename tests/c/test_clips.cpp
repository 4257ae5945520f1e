/**
 *  Decoding of videos and recordings: `test_clips FOLDER`, with the files of tests/clip_files.py.
 *  `test_clips --measure FILE` prints how fast a file decodes.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numbers>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "media/codecs.h"

using namespace uform;

static clips_codecs_t const &codecs = *uform_clips_codecs();
static std::string folder;

using bytes_t = std::vector<uint8_t>;

static bytes_t read_path(std::string const &path) {
    std::ifstream input(path, std::ios::binary);
    if (!input) std::fprintf(stderr, "cannot read %s\n", path.c_str()), std::exit(EXIT_FAILURE);
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

static bytes_t read_file(std::string const &name) { return read_path(folder + "/" + name); }

static file_t file_of(bytes_t const &bytes) { return {bytes.data(), bytes.size()}; }

struct decoded_video_t {
    uform_status_t status = uform_success_k;
    fault_t fault;
    video_t probed;
    picture_t size;
    size_t frames = 0;
    bytes_t rgb;

    /** "R", "G", "B", "W", "K" or "?" for the pixel at a fraction of the frame's size. */
    char colour(size_t frame, double x = 0.5, double y = 0.5) const {
        uint8_t const *const pixel =
            rgb.data() + ((frame * size.height + size_t(y * size.height)) * size.width + size_t(x * size.width)) * 3;
        auto const is = [&](int red, int green, int blue) {
            return std::abs(pixel[0] - red) < 24 && std::abs(pixel[1] - green) < 24 && std::abs(pixel[2] - blue) < 24;
        };
        return is(255, 0, 0)       ? 'R'
               : is(0, 255, 0)     ? 'G'
               : is(0, 0, 255)     ? 'B'
               : is(255, 255, 255) ? 'W'
               : is(0, 0, 0)       ? 'K'
                                   : '?';
    }

    std::string colours() const {
        std::string all;
        for (size_t frame = 0; frame != frames; ++frame) all += colour(frame);
        return all;
    }
};

static decoded_video_t decode(bytes_t const &bytes, sampling_t sampling = {4, 32}, picture_t size = {32, 24},
                              limits_t limits = {}) {
    decoded_video_t video;
    video.size = size;
    video.status = codecs.probe_video(file_of(bytes), limits, sampling, video.probed, video.fault);
    if (video.status) return video;
    video.rgb.resize(video.probed.frames * size.width * size.height * 3);
    video.status =
        codecs.decode_video(file_of(bytes), limits, sampling, size, video.rgb.data(), video.frames, video.fault);
    return video;
}

struct decoded_audio_t {
    uform_status_t status = uform_success_k;
    fault_t fault;
    audio_t probed;
    std::vector<float> samples;

    /** Root of the mean square of samples from a tenth to nine tenths. */
    double level() const {
        double sum = 0;
        size_t const first = samples.size() / 10, last = samples.size() - first;
        for (size_t index = first; index != last; ++index) sum += double(samples[index]) * samples[index];
        return std::sqrt(sum / double(last - first));
    }

    /** Largest difference from a sine, away from the ends by `margin`. */
    double distance(double rate, double hertz, double level, size_t margin = 0) const {
        double worst = 0;
        for (size_t index = margin; index + margin < samples.size(); ++index) {
            double const expected = level * std::sin(2 * std::numbers::pi * hertz * double(index) / rate);
            worst = std::max(worst, std::fabs(samples[index] - expected));
        }
        return worst;
    }
};

static decoded_audio_t listen(bytes_t const &bytes, uint32_t rate = 16000, size_t most = 1 << 24,
                              limits_t limits = {}) {
    decoded_audio_t audio;
    audio.status = codecs.probe_audio(file_of(bytes), limits, rate, most, audio.probed, audio.fault);
    if (audio.status) return audio;
    audio.samples.resize(audio.probed.samples);
    size_t count = 0;
    audio.status = codecs.decode_audio(file_of(bytes), limits, rate, most, audio.samples.data(), count, audio.fault);
    audio.samples.resize(count);
    return audio;
}

static int measure(std::string const &path) {
    bytes_t const bytes = read_path(path);
    for (int round = 0; round != 3; ++round) {
        auto const start = std::chrono::steady_clock::now();
        auto const seconds = [&] {
            return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        };
        decoded_video_t const video = decode(bytes, {4, 32}, {224, 224});
        if (!video.status) {
            std::printf("%zu frames of %u x %u picked, %.1f a second\n", video.frames, video.probed.picture.width,
                        video.probed.picture.height, double(video.frames) / seconds());
            continue;
        }
        auto const audio = listen(bytes, 16000, size_t(1) << 28);
        if (audio.status)
            return std::fprintf(stderr, "%s: %s; %s\n", path.c_str(), video.fault.message, audio.fault.message), 1;
        std::printf("%.1f seconds of sound, %.0f a second\n", double(audio.samples.size()) / 16000,
                    double(audio.samples.size()) / 16000 / seconds());
    }
    return 0;
}

static void pictures_are_those_of_their_times() {
    struct {
        char const *name;
        char const *colours; // At 0, 0.25, 0.5, ... seconds.
    } const videos[] = {
        {"h264.mp4", "RRGGBBWW"},       {"h264.mkv", "RRGGBBWW"},
        {"fragments.mp4", "RRGGBBWW"},  {"faststart.mp4", "RRGGBBWW"},
        {"hevc.mp4", "RRGGBBWW"},       {"hevc_10bit.mp4", "RRGGBBWW"},
        {"vp8.webm", "RRGGBBWW"},       {"vp9.webm", "RRGGBBWW"},
        {"vp9_10bit.webm", "RRGGBBWW"}, {"av1.webm", "RRGGBBWW"},
        {"av1.mp4", "RRGGBBWW"},        {"live.webm", "RRGGBBWW"},
        {"late.webm", "RRGGBBWW"},      {"vp9.mp4", "RRGGBBWWW"}, // Rounded to milliseconds, 2.001 s long.
        {"cut.mp4", "GBBWW"},           {"uneven.mp4", "RRRGGBWW"},
        {"slow.mp4", "RRRRRRRRRRRR"},   {"one.mp4", "R"},
        {"cover.mp4", "RRGGBBWWW"},
    };
    for (auto const &expected : videos) {
        decoded_video_t const video = decode(read_file(expected.name));
        bool const equal = !video.status && video.colours() == expected.colours;
        if (!equal) std::fprintf(stderr, "%s: %s %s\n", expected.name, video.colours().c_str(), video.fault.message);
        CHECK(equal);
        CHECK(video.probed.frames == video.frames && !video.probed.truncated);
        CHECK(video.probed.picture.width == 64 && video.probed.picture.height == 48);
    }
}

static void sampling_is_as_asked() {
    bytes_t const bytes = read_file("h264.mp4");
    decoded_video_t const few = decode(bytes, {4, 3});
    CHECK(few.colours() == "RRG" && few.probed.frames == 3 && few.probed.truncated);
    decoded_video_t const exact = decode(bytes, {4, 8});
    CHECK(exact.colours() == "RRGGBBWW" && !exact.probed.truncated);
    CHECK(decode(bytes, {1, 32}).colours() == "RB");
    CHECK(decode(bytes, {0.1, 32}).colours() == "R");
    CHECK(decode(bytes, {30, 100}).colours() ==
          std::string(15, 'R') + std::string(15, 'G') + std::string(15, 'B') + std::string(15, 'W'));
    CHECK(decode(bytes, {120, 1000}).frames == 240);
    CHECK(decode(bytes, {4, 0}).frames == 0);
    CHECK(decode(bytes, {0, 8}).status == uform_invalid_argument_k);
    CHECK(decode(bytes, {NAN, 8}).status == uform_invalid_argument_k);
}

static void pictures_are_upright() {
    struct {
        char const *name;
        uint32_t width, height;
        char const *corners; // Top left, top right, bottom left, bottom right.
    } const videos[] = {{"corners.mp4", 64, 48, "RGBW"},     {"turned_90.mp4", 48, 64, "GWRB"},
                        {"turned_180.mp4", 64, 48, "WBGR"},  {"turned_270.mp4", 48, 64, "BRWG"},
                        {"odd.mp4", 63, 47, "RGBW"},         {"odd.webm", 63, 47, "RGBW"},
                        {"wide_pixels.mp4", 128, 48, "RGBW"}};
    for (auto const &expected : videos)
        for (picture_t size : {picture_t {32, 24}, picture_t {33, 7}, picture_t {224, 160}}) {
            decoded_video_t const video = decode(read_file(expected.name), {4, 1}, size);
            CHECK(!video.status);
            CHECK(video.probed.picture.width == expected.width && video.probed.picture.height == expected.height);
            std::string const corners {video.colour(0, .2, .2), video.colour(0, .8, .2), video.colour(0, .2, .8),
                                       video.colour(0, .8, .8)};
            CHECK(corners == expected.corners);
        }
}

static void colours_are_of_their_matrix_and_range() {
    for (char const *matrix : {"bt601", "bt709", "bt2020"})
        for (char const *range : {"limited", "full"}) {
            decoded_video_t const video = decode(read_file(std::string("orange_") + matrix + "_" + range + ".mp4"));
            CHECK(!video.status);
            if (video.status) continue;
            CHECK(std::abs(video.rgb[0] - 200) <= 2 && std::abs(video.rgb[1] - 60) <= 2 &&
                  std::abs(video.rgb[2] - 30) <= 2);
        }
}

static void recordings_are_of_their_lengths() {
    struct {
        char const *name;
        size_t samples; // At 16 kHz.
        double level, tolerance;
    } const recordings[] = {{"pcm_u8.wav", 12345, 0.5, 0.01},     {"pcm_16.wav", 12345, 0.5, 1e-4},
                            {"pcm_24.wav", 12345, 0.5, 1e-6},     {"pcm_32.wav", 12345, 0.5, 1e-6},
                            {"float.wav", 12345, 0.5, 1e-6},      {"double.wav", 12345, 0.5, 1e-6},
                            {"ulaw.wav", 12345, 0.5, 0.02},       {"alaw.wav", 12345, 0.5, 0.02},
                            {"pcm_16.flac", 12345, 0.5, 1e-4},    {"pcm_24.flac", 12345, 0.5, 1e-6},
                            {"stereo.wav", 12345, 0.25, 1e-4},    {"stereo.flac", 12345, 0.25, 1e-4},
                            {"six.wav", 12345, 0.5 / 6, 1e-4},    {"tone_8000.wav", 16000, 0.5, 1e-4},
                            {"tone_11025.wav", 16000, 0.5, 1e-4}, {"tone_16000.wav", 16000, 0.5, 1e-4},
                            {"tone_22050.wav", 16000, 0.5, 1e-4}, {"tone_32000.wav", 16000, 0.5, 1e-4},
                            {"tone_44100.wav", 16000, 0.5, 1e-4}, {"tone_48000.wav", 16000, 0.5, 1e-4},
                            {"tone_96000.wav", 16000, 0.5, 1e-4}, {"tone_flac.mkv", 19200, 0.5, 1e-4},
                            {"tone_flac.mp4", 19200, 0.5, 1e-4},  {"tone_flac.ogg", 19200, 0.5, 1e-4},
                            {"tone_pcm.mkv", 19200, 0.5, 1e-4},   {"tone.opus", 19200, 0.5, 0.01},
                            {"tone.webm", 19200, 0.5, 0.01},      {"tone_opus.mp4", 19200, 0.5, 0.01},
                            {"tone.mp3", 19200, 0.475, 0.01}, // LAME leaves headroom at this rate.
                            {"tone_mp3.mp4", 19200, 0.475, 0.01}, {"tone_22050.mp3", 19200, 0.475, 0.01}};
    for (auto const &expected : recordings) {
        decoded_audio_t const audio = listen(read_file(expected.name));
        // The first and last samples' neighbours are guessed when the rate changes.
        double const distance = audio.distance(16000, 1000, expected.level, 400);
        bool const equal = !audio.status && audio.samples.size() == expected.samples && distance < expected.tolerance;
        if (!equal)
            std::fprintf(stderr, "%s: %zu samples, %g off %s\n", expected.name, audio.samples.size(), distance,
                         audio.fault.message);
        CHECK(equal);
        CHECK(audio.probed.samples == audio.samples.size() && !audio.probed.truncated);
    }
    CHECK(listen(read_file("empty.wav")).samples.empty());
    CHECK(listen(read_file("single.wav")).samples == std::vector<float> {0.5f});
    decoded_audio_t const speech = listen(read_file("speech.wav"));
    CHECK(!speech.status && speech.samples.size() > 8000 && speech.level() > 0.01);
}

static void recordings_are_cut_where_asked() {
    for (char const *name : {"tone.opus", "tone.mp3", "tone_48000.wav", "pcm_16.flac"}) {
        bytes_t const bytes = read_file(name);
        decoded_audio_t const audio = listen(bytes, 16000, 1000);
        CHECK(!audio.status && audio.samples.size() == 1000 && audio.probed.truncated);
        decoded_audio_t const whole = listen(bytes);
        CHECK(std::equal(audio.samples.begin(), audio.samples.end(), whole.samples.begin()));
        CHECK(!listen(bytes, 16000, whole.samples.size()).probed.truncated);
        CHECK(listen(bytes, 16000, 0).samples.empty());
    }
    decoded_audio_t const high = listen(read_file("tone_16000.wav"), 48000);
    CHECK(high.samples.size() == 48000 && high.distance(48000, 1000, 0.5, 1200) < 1e-3);
    CHECK(listen(read_file("tone_16000.wav"), 0).status == uform_invalid_argument_k);
}

/** A file of mono float samples. */
static bytes_t wav(uint32_t rate, std::vector<float> const &samples) {
    uint32_t const length = uint32_t(samples.size() * sizeof(float));
    uint32_t const header[] = {0x46464952, 36 + length, 0x45564157, 0x20746d66, 16,    0x00010003,
                               rate,       rate * 4,    0x00200004, 0x61746164, length}; // "RIFF", "WAVEfmt ", "data"
    bytes_t bytes(sizeof(header) + length);
    std::memcpy(bytes.data(), header, sizeof(header));
    if (length) std::memcpy(bytes.data() + sizeof(header), samples.data(), length);
    return bytes;
}

static void short_recordings_change_their_rate() {
    for (uint32_t rate : {1000u, 8000u, 11025u, 22050u, 44100u, 48000u, 96000u, 768000u})
        for (size_t count : {1, 2, 3, 10, 33, 100, 1000}) {
            decoded_audio_t const audio = listen(wav(rate, std::vector<float>(count, 0.5f)));
            CHECK(!audio.status && audio.samples.size() == (count * 16000 + rate - 1) / rate);
            size_t const off = size_t(std::count_if(audio.samples.begin(), audio.samples.end(),
                                                    [](float value) { return std::fabs(value - 0.5f) > 1e-3f; }));
            CHECK(off == 0);
        }
}

static void what_a_lower_rate_cannot_hold_is_silent() {
    std::vector<float> high(48000);
    for (size_t index = 0; index != high.size(); ++index)
        high[index] = float(std::sin(2 * std::numbers::pi * 10000 * double(index) / 48000));
    CHECK(listen(wav(48000, high)).level() < 1e-3);
    CHECK(listen(wav(999, high)).status == uform_unsupported_layout_k);
    CHECK(listen(wav(768001, high)).status == uform_unsupported_layout_k);
}

static void other_formats_are_refused() {
    for (char const *name : {"mpeg4.mp4", "cover.png", "tone.mp3", "pcm_16.wav", "tone.webm", "aac.mp4"}) {
        decoded_video_t const video = decode(read_file(name));
        CHECK(video.status == uform_unsupported_layout_k && video.fault.status == video.status);
        CHECK(video.fault.message[0]);
    }
    for (char const *name : {"aac.mp4", "vorbis.ogg", "cover.png", "vp9.webm"}) {
        decoded_audio_t const audio = listen(read_file(name));
        CHECK(audio.status == uform_unsupported_layout_k && audio.fault.status == audio.status);
        CHECK(audio.fault.message[0]);
    }
    CHECK(decode({}).status == uform_malformed_k && listen({}).status == uform_malformed_k);
    CHECK(listen(read_file("not_finite.wav")).status == uform_malformed_k);
    CHECK(listen(bytes_t(1000, 0)).status == uform_unsupported_layout_k);
    bytes_t picture = read_file("h264.mp4");
    std::copy_n("avif", 4, picture.begin() + 8);
    CHECK(decode(picture).status == uform_unsupported_layout_k);
}

static void limits_are_kept() {
    limits_t pixels, bytes, seconds;
    pixels.pixels = 64 * 48 - 1, bytes.bytes = 64 * 48, seconds.seconds = 1;
    for (limits_t const &limits : {pixels, bytes, seconds})
        CHECK(decode(read_file("h264.mp4"), {4, 32}, {32, 24}, limits).status == uform_malformed_k);
    for (char const *name : {"tone.mp3", "tone.opus", "tone_flac.mkv", "tone_opus.mp4", "source_48000.wav"})
        CHECK(listen(read_file(name), 16000, 1 << 24, seconds).status == uform_malformed_k);
}

static void truncated_files_are_malformed() {
    for (char const *name : {"h264.mp4", "fragments.mp4", "faststart.mp4", "hevc.mp4", "vp9.webm", "h264.mkv"}) {
        bytes_t const whole = read_file(name);
        size_t taken = 0;
        for (size_t part = 1; part != 32; ++part)
            taken += decode(bytes_t(whole.begin(), whole.begin() + ptrdiff_t(whole.size() * part / 32))).status !=
                     uform_malformed_k;
        taken += decode(bytes_t(whole.begin(), whole.end() - 1)).status != uform_malformed_k;
        if (taken) std::fprintf(stderr, "%s: %zu\n", name, taken);
        CHECK(taken == 0);
    }
    for (char const *name : {"tone.mp3", "tone.opus", "tone.webm", "tone_opus.mp4", "pcm_16.wav", "pcm_16.flac",
                             "tone_flac.mkv", "tone_flac.ogg"}) {
        bytes_t const whole = read_file(name);
        size_t taken = 0;
        for (size_t part = 1; part != 32; ++part)
            taken += listen(bytes_t(whole.begin(), whole.begin() + ptrdiff_t(whole.size() * part / 32))).status !=
                     uform_malformed_k;
        if (taken) std::fprintf(stderr, "%s: %zu\n", name, taken);
        CHECK(taken == 0);
    }
}

/** Whatever the bytes, a call comes back soon, with no more than was probed. */
static void broken_files_do_no_harm() {
    uint32_t state = 7;
    auto const random = [&] { return state = state * 1664525u + 1013904223u, state >> 8; };
    for (char const *name : {"h264.mp4", "fragments.mp4", "hevc.mp4", "vp8.webm", "vp9.webm", "av1.mp4", "cover.mp4"})
        for (int round = 0; round != 40; ++round) {
            bytes_t bytes = read_file(name);
            for (int flip = 0; flip != 8; ++flip) {
                // Half of them in the headers.
                size_t const range = flip % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 600);
                bytes[random() % range] = uint8_t(random());
            }
            auto const start = std::chrono::steady_clock::now();
            decoded_video_t const video = decode(bytes);
            CHECK(!video.status || video.fault.message[0]);
            CHECK(video.frames <= 32);
            CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(5));
        }
    for (char const *name : {"tone.mp3", "tone.opus", "tone.webm", "tone_opus.mp4", "pcm_16.wav", "pcm_16.flac",
                             "tone_flac.mkv", "float.wav", "cover.mp3"})
        for (int round = 0; round != 40; ++round) {
            bytes_t bytes = read_file(name);
            for (int flip = 0; flip != 4; ++flip)
                bytes[random() % std::min<size_t>(bytes.size(), flip % 2 ? SIZE_MAX : 200)] = uint8_t(random());
            decoded_audio_t const audio = listen(bytes);
            CHECK(!audio.status || audio.fault.message[0]);
            CHECK(std::all_of(audio.samples.begin(), audio.samples.end(), [](float value) { return value == value; }));
        }
}

static void claims_are_checked() {
    // A recording of 2 GB in a file of 50 bytes, and one of 65,535 channels.
    bytes_t wav = read_file("pcm_16.wav");
    wav[40] = 0xff, wav[41] = 0xff, wav[42] = 0xff, wav[43] = 0x70;
    CHECK(listen(wav).status == uform_malformed_k);
    wav = read_file("pcm_16.wav");
    wav[22] = wav[23] = 0xff;
    CHECK(listen(wav).status < 0);
    // A rate of 1 Hz would make four hours of a quarter of a second.
    wav = read_file("pcm_16.wav");
    wav[24] = 1, wav[25] = wav[26] = wav[27] = 0;
    CHECK(listen(wav).status == uform_unsupported_layout_k);
    // Samples of one size, a billion of them.
    bytes_t video = read_file("h264.mp4");
    auto const found = std::search(video.begin(), video.end(), "stsz", "stsz" + 4);
    CHECK(found != video.end());
    found[11] = 1, found[12] = 0x7f;
    CHECK(decode(video).status == uform_malformed_k);
}

static void threads_share_nothing() {
    bytes_t const h264 = read_file("h264.mp4"), opus = read_file("tone.opus");
    bytes_t const expected = decode(h264).rgb;
    std::vector<float> const heard = listen(opus).samples;
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (int &count : wrong)
        threads.emplace_back([&] {
            for (int round = 0; round != 10; ++round)
                count += decode(h264).rgb != expected, count += listen(opus).samples != heard;
        });
    for (std::thread &thread : threads) thread.join();
    CHECK(std::count(wrong.begin(), wrong.end(), 0) == 4);
}

int main(int count, char **arguments) {
    if (count == 3 && !std::strcmp(arguments[1], "--measure")) return measure(arguments[2]);
    if (count != 2) return std::fprintf(stderr, "usage: %s FOLDER | --measure FILE\n", arguments[0]), 2;
    folder = arguments[1];
    RUN(pictures_are_those_of_their_times);
    RUN(sampling_is_as_asked);
    RUN(pictures_are_upright);
    RUN(colours_are_of_their_matrix_and_range);
    RUN(recordings_are_of_their_lengths);
    RUN(recordings_are_cut_where_asked);
    RUN(short_recordings_change_their_rate);
    RUN(what_a_lower_rate_cannot_hold_is_silent);
    RUN(other_formats_are_refused);
    RUN(limits_are_kept);
    RUN(truncated_files_are_malformed);
    RUN(broken_files_do_no_harm);
    RUN(claims_are_checked);
    RUN(threads_share_nothing);
    return check_report();
}
