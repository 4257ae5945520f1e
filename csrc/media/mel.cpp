#include "media/mel.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace uform {
namespace {

/** Frames that are transformed together, one a lane, so that every step of the transform is a loop over lanes. */
constexpr size_t lanes_k = 8;
/** The real transform of 400 samples is a complex one of 200 pairs. */
constexpr size_t pairs_k = mel_window_k / 2;
constexpr size_t frequencies_k = pairs_k + 1;

/** float64: the floor lies 80 dB below the loudest band, where rounding to float32 would already show. */
struct alignas(64) lanes_t {
    double values[lanes_k];
};

struct complex_t {
    lanes_t real, imaginary;
};

struct rotation_t {
    double cosine, sine;
};

/** A triangle over neighbouring frequencies. */
struct band_t {
    size_t first, count;
    size_t weights; /**< Offset of its weights. */
};

double hertz_to_mel(double hertz) noexcept {
    return hertz < 1000 ? hertz * 3 / 200 : 15 + 27 * std::log(hertz / 1000) / std::log(6.4);
}

double mel_to_hertz(double mel) noexcept {
    return mel < 15 ? mel * 200 / 3 : 1000 * std::exp((mel - 15) * std::log(6.4) / 27);
}

struct tables_t {
    double window[mel_window_k];
    /** exp(-2 pi i k / 400) */
    rotation_t rotations[mel_window_k];
    band_t bands[mel_bins_k];
    /** A frequency lies under two triangles at the most. */
    double weights[2 * frequencies_k];

    tables_t() noexcept {
        for (size_t index = 0; index != mel_window_k; ++index) {
            double const angle = 2 * std::numbers::pi * double(index) / mel_window_k;
            rotations[index] = {std::cos(angle), -std::sin(angle)};
            window[index] = 0.5 - 0.5 * std::cos(angle);
        }
        double const top = hertz_to_mel(mel_sample_rate_k / 2.);
        size_t used = 0;
        for (size_t bin = 0; bin != mel_bins_k; ++bin) {
            double corners[3];
            for (size_t corner = 0; corner != 3; ++corner)
                corners[corner] = mel_to_hertz(top * double(bin + corner) / (mel_bins_k + 1));
            bands[bin] = {0, 0, used};
            for (size_t frequency = 0; frequency != frequencies_k; ++frequency) {
                double const hertz = double(frequency) * mel_sample_rate_k / mel_window_k;
                double const height = std::min((hertz - corners[0]) / (corners[1] - corners[0]),
                                               (corners[2] - hertz) / (corners[2] - corners[1]));
                if (height <= 0) continue;
                if (!bands[bin].count++) bands[bin].first = frequency;
                weights[used++] = height * 2 / (corners[2] - corners[0]);
            }
        }
    }
};

tables_t const &tables() noexcept {
    static tables_t const made;
    return made;
}

void rotate(complex_t &value, rotation_t by) noexcept {
    for (size_t lane = 0; lane != lanes_k; ++lane) {
        double const real = value.real.values[lane], imaginary = value.imaginary.values[lane];
        value.real.values[lane] = real * by.cosine - imaginary * by.sine;
        value.imaginary.values[lane] = real * by.sine + imaginary * by.cosine;
    }
}

struct radix_2_t {
    static constexpr size_t size_k = 2;

    static void transform(complex_t (&values)[2]) noexcept {
        for (size_t lane = 0; lane != lanes_k; ++lane)
            for (lanes_t complex_t::*part : {&complex_t::real, &complex_t::imaginary}) {
                double const a = (values[0].*part).values[lane], b = (values[1].*part).values[lane];
                (values[0].*part).values[lane] = a + b, (values[1].*part).values[lane] = a - b;
            }
    }
};

struct radix_4_t {
    static constexpr size_t size_k = 4;

    static void transform(complex_t (&values)[4]) noexcept {
        for (size_t lane = 0; lane != lanes_k; ++lane) {
            double real[4], imaginary[4];
            for (size_t index = 0; index != 4; ++index)
                real[index] = values[index].real.values[lane], imaginary[index] = values[index].imaginary.values[lane];
            double const even_real = real[0] + real[2], odd_real = real[0] - real[2];
            double const even_imaginary = imaginary[0] + imaginary[2], odd_imaginary = imaginary[0] - imaginary[2];
            double const sum_real = real[1] + real[3], difference_real = real[1] - real[3];
            double const sum_imaginary = imaginary[1] + imaginary[3],
                         difference_imaginary = imaginary[1] - imaginary[3];
            values[0].real.values[lane] = even_real + sum_real;
            values[0].imaginary.values[lane] = even_imaginary + sum_imaginary;
            values[1].real.values[lane] = odd_real + difference_imaginary;
            values[1].imaginary.values[lane] = odd_imaginary - difference_real;
            values[2].real.values[lane] = even_real - sum_real;
            values[2].imaginary.values[lane] = even_imaginary - sum_imaginary;
            values[3].real.values[lane] = odd_real - difference_imaginary;
            values[3].imaginary.values[lane] = odd_imaginary + difference_real;
        }
    }
};

struct radix_5_t {
    static constexpr size_t size_k = 5;

    static void transform(complex_t (&values)[5]) noexcept {
        // Cosines and sines of 72 and 144 degrees.
        constexpr double cosine_1 = 0.30901699437494742410, cosine_2 = -0.80901699437494742410;
        constexpr double sine_1 = 0.95105651629515357212, sine_2 = 0.58778525229247312917;
        for (size_t lane = 0; lane != lanes_k; ++lane) {
            double real[5], imaginary[5];
            for (size_t index = 0; index != 5; ++index)
                real[index] = values[index].real.values[lane], imaginary[index] = values[index].imaginary.values[lane];
            double const outer_real = real[1] + real[4], inner_real = real[2] + real[3];
            double const outer_imaginary = imaginary[1] + imaginary[4], inner_imaginary = imaginary[2] + imaginary[3];
            double const outer_gap_real = real[1] - real[4], inner_gap_real = real[2] - real[3];
            double const outer_gap_imaginary = imaginary[1] - imaginary[4];
            double const inner_gap_imaginary = imaginary[2] - imaginary[3];
            double const first_real = real[0] + cosine_1 * outer_real + cosine_2 * inner_real;
            double const first_imaginary = imaginary[0] + cosine_1 * outer_imaginary + cosine_2 * inner_imaginary;
            double const second_real = real[0] + cosine_2 * outer_real + cosine_1 * inner_real;
            double const second_imaginary = imaginary[0] + cosine_2 * outer_imaginary + cosine_1 * inner_imaginary;
            double const first_turn_real = sine_1 * outer_gap_imaginary + sine_2 * inner_gap_imaginary;
            double const first_turn_imaginary = sine_1 * outer_gap_real + sine_2 * inner_gap_real;
            double const second_turn_real = sine_2 * outer_gap_imaginary - sine_1 * inner_gap_imaginary;
            double const second_turn_imaginary = sine_2 * outer_gap_real - sine_1 * inner_gap_real;
            values[0].real.values[lane] = real[0] + outer_real + inner_real;
            values[0].imaginary.values[lane] = imaginary[0] + outer_imaginary + inner_imaginary;
            values[1].real.values[lane] = first_real + first_turn_real;
            values[1].imaginary.values[lane] = first_imaginary - first_turn_imaginary;
            values[2].real.values[lane] = second_real + second_turn_real;
            values[2].imaginary.values[lane] = second_imaginary - second_turn_imaginary;
            values[3].real.values[lane] = second_real - second_turn_real;
            values[3].imaginary.values[lane] = second_imaginary + second_turn_imaginary;
            values[4].real.values[lane] = first_real - first_turn_real;
            values[4].imaginary.values[lane] = first_imaginary + first_turn_imaginary;
        }
    }
};

/** A step of Stockham's transform: `stride` interleaved transforms of `length` become radix times as many, shorter. */
template <typename radix_type_> void step(complex_t const *from, complex_t *to, size_t length, size_t stride) noexcept {
    constexpr size_t radix_k = radix_type_::size_k;
    rotation_t const *const rotations = tables().rotations;
    size_t const shorter = length / radix_k;
    for (size_t phase = 0; phase != shorter; ++phase)
        for (size_t offset = 0; offset != stride; ++offset) {
            complex_t values[radix_k];
            for (size_t index = 0; index != radix_k; ++index)
                values[index] = from[offset + stride * (phase + index * shorter)];
            radix_type_::transform(values);
            for (size_t index = 0; index != radix_k; ++index) {
                if (phase) rotate(values[index], rotations[phase * index * (mel_window_k / length)]);
                to[offset + stride * (radix_k * phase + index)] = values[index];
            }
        }
}

/** Power at every frequency, from pairs of samples: `pairs` and `scratch` are overwritten. */
void power_spectrum(complex_t *pairs, complex_t *scratch, lanes_t *power) noexcept {
    static_assert(5 * 5 * 4 * 2 == pairs_k);
    step<radix_5_t>(pairs, scratch, 200, 1);
    step<radix_5_t>(scratch, pairs, 40, 5);
    step<radix_4_t>(pairs, scratch, 8, 25);
    step<radix_2_t>(scratch, pairs, 2, 100);
    rotation_t const *const rotations = tables().rotations;
    for (size_t frequency = 0; frequency != frequencies_k; ++frequency) {
        complex_t const &here = pairs[frequency % pairs_k], &there = pairs[(pairs_k - frequency) % pairs_k];
        rotation_t const by = rotations[frequency];
        for (size_t lane = 0; lane != lanes_k; ++lane) {
            // Spectra of the even samples and, over i, of the odd ones.
            double const even_real = here.real.values[lane] + there.real.values[lane];
            double const even_imaginary = here.imaginary.values[lane] - there.imaginary.values[lane];
            double const odd_real = here.imaginary.values[lane] + there.imaginary.values[lane];
            double const odd_imaginary = there.real.values[lane] - here.real.values[lane];
            double const real = even_real + odd_real * by.cosine - odd_imaginary * by.sine;
            double const imaginary = even_imaginary + odd_real * by.sine + odd_imaginary * by.cosine;
            power[frequency].values[lane] = (real * real + imaginary * imaginary) / 4;
        }
    }
}

/** Where sample `index` of a recording that is mirrored about its ends lies. */
size_t mirror(ptrdiff_t index, size_t count) noexcept {
    if (count == 1) return 0;
    ptrdiff_t const period = 2 * ptrdiff_t(count - 1);
    ptrdiff_t const wrapped = (index % period + period) % period;
    return size_t(std::min(wrapped, period - wrapped));
}

} // namespace

void log_mel(float const *samples, size_t count, float *frames) noexcept {
    tables_t const &shared = tables();
    size_t const frame_count = mel_frames(count);
    complex_t pairs[pairs_k], scratch[pairs_k];
    lanes_t power[frequencies_k];
    float loudest = -10;
    for (size_t first = 0; first < frame_count; first += lanes_k) {
        size_t const lanes = std::min(lanes_k, frame_count - first);
        if (lanes != lanes_k) std::memset(pairs, 0, sizeof(pairs));
        for (size_t lane = 0; lane != lanes; ++lane) {
            ptrdiff_t const start = ptrdiff_t((first + lane) * mel_hop_k) - ptrdiff_t(mel_window_k / 2);
            float mirrored[mel_window_k];
            bool const inside = start >= 0 && size_t(start) + mel_window_k <= count;
            if (!inside)
                for (size_t index = 0; index != mel_window_k; ++index)
                    mirrored[index] = samples[mirror(start + ptrdiff_t(index), count)];
            float const *const seen = inside ? samples + start : mirrored;
            for (size_t pair = 0; pair != pairs_k; ++pair) {
                pairs[pair].real.values[lane] = seen[2 * pair] * shared.window[2 * pair];
                pairs[pair].imaginary.values[lane] = seen[2 * pair + 1] * shared.window[2 * pair + 1];
            }
        }
        power_spectrum(pairs, scratch, power);
        for (size_t bin = 0; bin != mel_bins_k; ++bin) {
            band_t const band = shared.bands[bin];
            lanes_t sum {};
            for (size_t index = 0; index != band.count; ++index)
                for (size_t lane = 0; lane != lanes_k; ++lane)
                    sum.values[lane] += power[band.first + index].values[lane] * shared.weights[band.weights + index];
            for (size_t lane = 0; lane != lanes; ++lane) {
                float const level = std::log10(float(std::clamp(sum.values[lane], 1e-10, 1e38)));
                loudest = std::max(loudest, level);
                frames[(first + lane) * mel_bins_k + bin] = level;
            }
        }
    }
    for (size_t index = 0; index != frame_count * mel_bins_k; ++index)
        frames[index] = (std::max(frames[index], loudest - 8) + 4) / 4;
}

} // namespace uform
