/**
 *  The log-mel front end. `test_mel SAMPLES FRAMES` turns a file of float32 samples into one of frames instead, for the
 *  comparison with NumPy, and prints how many seconds of sound a second takes.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numbers>
#include <vector>

#include "check.h"
#include "media/mel.h"

using namespace uform;

static std::vector<float> tone(double hertz, size_t count, double level = 0.5) {
    std::vector<float> samples(count);
    for (size_t index = 0; index != count; ++index)
        samples[index] = float(level * std::sin(2 * std::numbers::pi * hertz * double(index) / mel_sample_rate_k));
    return samples;
}

static std::vector<float> frames_of(std::vector<float> const &samples) {
    std::vector<float> frames(mel_frames(samples.size()) * mel_bins_k, -100);
    log_mel(samples.data(), samples.size(), frames.data());
    return frames;
}

static void frames_are_counted_by_started_hops() {
    CHECK(mel_frames(0) == 0 && mel_frames(1) == 1 && mel_frames(160) == 1 && mel_frames(161) == 2);
    CHECK(mel_frames(16000) == 100 && mel_frames(SIZE_MAX) == SIZE_MAX / 160 + 1);
    log_mel(nullptr, 0, nullptr);
}

static void silence_is_at_the_floor() {
    for (float value : frames_of(std::vector<float>(3000))) CHECK(value == -1.5f); // (log10(1e-10) + 4) / 4
}

static void a_tone_peaks_in_its_band() {
    // 8000 Hz are 45.2455 mel, which 81 steps divide; a tone peaks in the band of the nearest step.
    struct {
        double hertz;
        size_t bin;
    } const tones[] = {{440, 11}, {1000, 26}, {2000, 44}, {4000, 62}, {8000 / 1.03, 79}};
    for (auto const &expected : tones) {
        std::vector<float> const frames = frames_of(tone(expected.hertz, 16000));
        size_t elsewhere = 0;
        for (size_t frame = 2; frame != 98; ++frame) {
            auto const row = frames.begin() + ptrdiff_t(frame * mel_bins_k);
            elsewhere += size_t(std::max_element(row, row + mel_bins_k) - row) != expected.bin;
        }
        CHECK(elsewhere == 0);
    }
}

static void levels_are_logarithmic() {
    // A tenth of the level is a hundredth of the power: two tens, over four.
    std::vector<float> const loud = frames_of(tone(1000, 8000, 0.5)), soft = frames_of(tone(1000, 8000, 0.05));
    CHECK(std::fabs(loud[25 * 80 + 26] - soft[25 * 80 + 26] - 0.5f) < 1e-5f);
    // The floor lies 80 dB below the loudest.
    CHECK(std::fabs(*std::max_element(loud.begin(), loud.end()) - *std::min_element(loud.begin(), loud.end()) - 2) <
          1e-6f);
}

/** As the header says, one frequency at a time. */
static std::vector<double> reference(std::vector<float> const &samples) {
    ptrdiff_t const count = ptrdiff_t(samples.size());
    auto const hertz_of = [](double mel) { return mel < 15 ? mel * 200 / 3 : 1000 * std::pow(6.4, (mel - 15) / 27); };
    double const top = 15 + 27 * std::log(8.) / std::log(6.4);
    std::vector<double> levels;
    for (ptrdiff_t centre = 0; centre < count; centre += 160) {
        double power[201];
        for (int frequency = 0; frequency != 201; ++frequency) {
            double real = 0, imaginary = 0;
            for (int index = 0; index != 400; ++index) {
                ptrdiff_t position = centre - 200 + index;
                while (count > 1 && (position < 0 || position >= count))
                    position = position < 0 ? -position : 2 * (count - 1) - position;
                double const weighed = samples[count > 1 ? size_t(position) : 0] *
                                       (0.5 - 0.5 * std::cos(2 * std::numbers::pi * index / 400));
                double const angle = 2 * std::numbers::pi * (frequency * index % 400) / 400;
                real += weighed * std::cos(angle), imaginary -= weighed * std::sin(angle);
            }
            power[frequency] = real * real + imaginary * imaginary;
        }
        for (int bin = 0; bin != 80; ++bin) {
            double const low = hertz_of(top * bin / 81), peak = hertz_of(top * (bin + 1) / 81);
            double const high = hertz_of(top * (bin + 2) / 81);
            double sum = 0;
            for (int frequency = 0; frequency != 201; ++frequency) {
                double const hertz = frequency * 40;
                double const height = std::min((hertz - low) / (peak - low), (high - hertz) / (high - peak));
                sum += power[frequency] * std::max(0., height) * 2 / (high - low);
            }
            levels.push_back(std::log10(std::max(sum, 1e-10)));
        }
    }
    double const loudest = *std::max_element(levels.begin(), levels.end());
    for (double &level : levels) level = (std::max(level, loudest - 8) + 4) / 4;
    return levels;
}

static void frames_equal_the_reference() {
    for (size_t count : {1, 2, 3, 150, 160, 161, 199, 200, 201, 399, 400, 401, 1280, 1281, 3999}) {
        // Noise of changing loudness over a loud tone, so that bands from the floor to the top are seen.
        std::vector<float> samples = tone(440, count, 0.9);
        uint32_t state = 1;
        for (size_t index = 0; index != count; ++index) {
            state = state * 1664525u + 1013904223u;
            samples[index] += float(state >> 8) / float(1 << 24) * float(index % 800) * 1e-4f;
        }
        std::vector<float> const frames = frames_of(samples);
        std::vector<double> const expected = reference(samples);
        CHECK(frames.size() == expected.size());
        double worst = 0;
        for (size_t index = 0; index != frames.size(); ++index)
            worst = std::max(worst, std::fabs(frames[index] - expected[index]));
        CHECK(worst < 1e-6);
    }
}

static void extreme_samples_stay_finite() {
    for (float level : {1e-38f, 1e10f, 3e38f})
        for (float value : frames_of(tone(300, 1000, level))) CHECK(std::isfinite(value));
}

static int convert(char const *from, char const *to) {
    std::ifstream input(from, std::ios::binary);
    std::vector<char> const bytes {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
    std::vector<float> samples(bytes.size() / sizeof(float));
    std::copy_n(bytes.data(), samples.size() * sizeof(float), reinterpret_cast<char *>(samples.data()));
    auto const start = std::chrono::steady_clock::now();
    std::vector<float> const frames = frames_of(samples);
    double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    std::printf("%.0f seconds of sound a second\n", double(samples.size()) / mel_sample_rate_k / seconds);
    std::ofstream output(to, std::ios::binary);
    output.write(reinterpret_cast<char const *>(frames.data()), std::streamsize(frames.size() * sizeof(float)));
    return input && output.flush() ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **arguments) {
    if (count == 3) return convert(arguments[1], arguments[2]);
    RUN(frames_are_counted_by_started_hops);
    RUN(silence_is_at_the_floor);
    RUN(a_tone_peaks_in_its_band);
    RUN(levels_are_logarithmic);
    RUN(frames_equal_the_reference);
    RUN(extreme_samples_stay_finite);
    return check_report();
}
