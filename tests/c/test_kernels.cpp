/**
 *  Every kernel of every class that this machine can run, against float64 on the same rounded inputs, with the
 *  tolerances that the kernels' headers state; and that no output depends on how rows, tiles or queries are shared out.
 *  SAPPHIRE runs over an emulator of AMX where the processor has the rest of the class.
 */
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#if defined(__x86_64__) && defined(__linux__)
#include "amx_emulator.c"
#endif
#include "kernels/choose/choose.h"
#include "kernels/convert/convert.h"
#include "kernels/kernels.h"
#include "kernels/scalars.h"

namespace {

using namespace uform;

std::mt19937 random_bits(11);
/** The class whose turn it is. */
kernels_t const *tested = nullptr;

float uniform(float most = 1.f) { return std::uniform_real_distribution<float>(-most, most)(random_bits); }
size_t between(size_t least, size_t most) { return std::uniform_int_distribution<size_t>(least, most)(random_bits); }

constexpr unsigned char guard_k = 0xA5;

/** Memory aligned to 64 bytes, with bytes behind it that nothing may touch. */
template <typename element_type_> class guarded_t {
  public:
    explicit guarded_t(size_t count) : count_(count), bytes_(round_up(count * sizeof(element_type_) + 64, 64)) {
        data_ = static_cast<element_type_ *>(std::aligned_alloc(64, bytes_));
        std::memset(static_cast<void *>(data_), guard_k, bytes_);
    }
    guarded_t(guarded_t const &) = delete;
    ~guarded_t() { std::free(data_); }

    bool intact() const {
        auto const *bytes = reinterpret_cast<unsigned char const *>(data_);
        for (size_t i = count_ * sizeof(element_type_); i != bytes_; ++i)
            if (bytes[i] != guard_k) return false;
        return true;
    }
    element_type_ *data() const { return data_; }
    element_type_ &operator[](size_t index) const { return data_[index]; }
    size_t size() const { return count_; }

  private:
    size_t count_, bytes_;
    element_type_ *data_;
};

/** Activations of a class: what a kernel reads, and the same numbers in F64. Rows behind the last one are NaN. */
struct activations_t {
    static constexpr size_t slack_k = 32;
    guarded_t<unsigned char> bytes;
    std::vector<double> values;

    activations_t(kernels_t const &kernels, size_t rows, size_t columns, float most = 1.f)
        : bytes((rows + slack_k) * columns * kernels.activation_size()), values(rows * columns) {
        std::memset(bytes.data(), 0xFF, bytes.size());
        for (size_t i = 0; i != values.size(); ++i) {
            float value = uniform(most);
            if (kernels.activations == uform_bf16_k) value = bf16_to_f32(f32_to_bf16(value));
            values[i] = value;
            convert(&value, 1, kernels.activations, bytes.data() + i * kernels.activation_size());
        }
    }
};

double read(kernels_t const &kernels, void const *activations, size_t index) {
    if (kernels.activations == uform_f32_k) return static_cast<float const *>(activations)[index];
    return bf16_to_f32(static_cast<bf16_t const *>(activations)[index]);
}

/** Rounding of an activation: nothing for F32, half a unit in the last place of 8 bits for BF16. */
double rounding(kernels_t const &kernels) { return kernels.activations == uform_bf16_k ? 0x1p-8 : 0; }

/** A packed matrix and its numbers in F64. */
struct matrix_t {
    packed_t packed;
    guarded_t<bf16_t> data;
    guarded_t<e4m3_t> codes;
    guarded_t<float> scales;
    std::vector<double> values;

    matrix_t(size_t rows, size_t columns, bool quantized)
        : data(round_up(rows, 32) * round_up(columns, 32)), codes(data.size()), scales(round_up(rows, 32)),
          values(rows * columns) {
        packed.rows = rows, packed.columns = columns;
        std::memset(data.data(), 0, data.size() * sizeof(bf16_t));
        std::memset(codes.data(), 0, codes.size());
        for (size_t row = 0; row != scales.size(); ++row) scales[row] = std::fabs(uniform()) + 0.1f;
        size_t const padded = packed.padded_columns();
        for (size_t row = 0; row != rows; ++row)
            for (size_t column = 0; column != columns; ++column) {
                size_t const place = ((row / 16 * padded / 2 + column / 2) * 16 + row % 16) * 2 + column % 2;
                data[place] = f32_to_bf16(uniform());
                // All codes but the two that are NaN.
                do codes[place] = static_cast<e4m3_t>(random_bits());
                while ((codes[place] & 0x7f) == 0x7f);
                values[row * columns + column] =
                    quantized ? double(e4m3_to_f32(codes[place])) * scales[row] : bf16_to_f32(data[place]);
            }
        if (quantized) packed.data_e4m3 = codes.data(), packed.scales = scales.data();
        else packed.data = data.data();
    }
};

/** What a class's product may be off by, as a share of the sum of magnitudes: product.h. */
double product_tolerance(kernels_t const &kernels) { return kernels.activations == uform_bf16_k ? 1e-5 : 1e-6; }

/** Cuts from 0 to `count`, both among them, in order. */
std::vector<size_t> cuts(size_t count) {
    std::vector<size_t> all {0, between(0, count), between(0, count), count};
    std::sort(all.begin(), all.end());
    return all;
}

void check_linear(kernels_t const &kernels, size_t rows, size_t outputs, size_t columns, epilogue_t epilogue,
                  bool quantized) {
    activations_t const activations(kernels, rows, columns);
    matrix_t const weights(outputs, columns, quantized);
    bool const activate = epilogue == epilogue_t::activate_k;
    size_t const out_columns = activate ? outputs / 2 : outputs, out_stride = out_columns + between(0, 40);
    size_t const out_size = activate ? kernels.activation_size() : sizeof(float);
    guarded_t<unsigned char> whole(rows * out_stride * out_size), split(rows * out_stride * out_size);
    std::vector<float> before(rows * outputs);
    for (float &value : before) value = uniform();
    if (epilogue == epilogue_t::add_k)
        for (size_t row = 0; row != rows; ++row)
            for (auto *out : {&whole, &split})
                std::memcpy(out->data() + row * out_stride * sizeof(float), before.data() + row * outputs,
                            outputs * sizeof(float));
    guarded_t<float> decoded(32 * weights.packed.padded_columns());

    linear_t arguments;
    arguments.activation_stride = columns;
    arguments.weights = &weights.packed;
    arguments.epilogue = epilogue;
    arguments.out_stride = out_stride;
    arguments.decoded = decoded.data();
    auto const run = [&](unsigned char *out, size_t row, size_t row_end, size_t tile, size_t tile_end) {
        arguments.activations = activations.bytes.data() + row * columns * kernels.activation_size();
        arguments.rows = row_end - row;
        arguments.tile_begin = tile, arguments.tile_end = tile_end;
        arguments.out = out + (row * out_stride + tile * (activate ? 16 : 32)) * out_size;
        kernels.linear(arguments);
    };
    size_t const tiles = weights.packed.tiles();
    run(whole.data(), 0, rows, 0, tiles);
    auto const row_cuts = cuts(rows), tile_cuts = cuts(tiles);
    for (size_t i = 3; i--;)
        for (size_t j = 0; j != 3; ++j) run(split.data(), row_cuts[i], row_cuts[i + 1], tile_cuts[j], tile_cuts[j + 1]);
    CHECK(std::memcmp(whole.data(), split.data(), whole.size()) == 0);
    CHECK(whole.intact() && split.intact() && decoded.intact());
    bool gaps_are_intact = true;
    for (size_t row = 0; row != rows; ++row)
        for (size_t byte = out_columns * out_size; byte != out_stride * out_size; ++byte)
            gaps_are_intact &= whole[row * out_stride * out_size + byte] == guard_k;
    CHECK(gaps_are_intact);

    std::vector<double> sums(rows * outputs), magnitudes(rows * outputs);
    for (size_t row = 0; row != rows; ++row)
        for (size_t n = 0; n != outputs; ++n)
            for (size_t k = 0; k != columns; ++k) {
                double const term = activations.values[row * columns + k] * weights.values[n * columns + k];
                sums[row * outputs + n] += term;
                magnitudes[row * outputs + n] += std::fabs(term);
            }
    double const tolerance = product_tolerance(kernels);
    for (size_t row = 0; row != rows; ++row)
        for (size_t n = 0; n != out_columns; ++n) {
            if (activate) {
                size_t const gate_at = row * outputs + n / 16 * 32 + n % 16, up_at = gate_at + 16;
                double const gate = sums[gate_at], silu = gate / (1 + std::exp(-gate));
                double const expected = silu * sums[up_at], result = read(kernels, whole.data(), row * out_stride + n);
                // The slope of SiLU is below 1.1.
                double const off = tolerance * (1.1 * magnitudes[gate_at] * std::fabs(sums[up_at]) +
                                                magnitudes[up_at] * std::fabs(silu));
                double const relative = kernels.activations == uform_bf16_k ? 1e-4 + rounding(kernels) : 2e-6;
                CHECK(std::fabs(result - expected) <= off + relative * std::fabs(expected) + 1e-30);
                continue;
            }
            float result;
            std::memcpy(&result, whole.data() + (row * out_stride + n) * sizeof(float), sizeof(result));
            double expected = sums[row * outputs + n];
            double off = tolerance * magnitudes[row * outputs + n];
            if (epilogue == epilogue_t::add_k) {
                expected += before[row * outputs + n];
                off += 1.2e-7 * std::fabs(expected);
            }
            CHECK(std::fabs(result - expected) <= off + 1e-30);
        }
}

void test_linear() {
    kernels_t const &kernels = *tested;
    for (bool quantized : {false, true})
        for (epilogue_t epilogue : {epilogue_t::store_k, epilogue_t::add_k, epilogue_t::activate_k}) {
            // Outputs of heads may be any number; those of gates come by 32.
            auto const outputs = [epilogue] {
                return epilogue == epilogue_t::activate_k ? 32 * between(1, 4) : between(1, 130);
            };
            for (size_t rows = 1; rows <= 70; rows += rows < 34 ? 1 : 6)
                check_linear(kernels, rows, outputs(), 32 * between(1, 8), epilogue, quantized);
            for (size_t columns : {352, 384, 416, 512, 704, 1408})
                for (size_t rows : {size_t(1), between(2, 40), between(100, 170)})
                    check_linear(kernels, rows, outputs() / 64 * 32 + 32, columns, epilogue, quantized);
        }
}

/** All codes of E4M3, one a product: exact. */
void test_decode() {
    kernels_t const &kernels = *tested;
    constexpr size_t count = 32;
    activations_t const activations(kernels, count, count, 0.f);
    float const one = 1;
    for (size_t i = 0; i != count; ++i)
        convert(&one, 1, kernels.activations, activations.bytes.data() + i * (count + 1) * kernels.activation_size());
    matrix_t const weights(256, count, true);
    for (size_t i = 0; i != weights.codes.size(); ++i) {
        auto const code = static_cast<e4m3_t>(i / 32 + i % 32 * 8);
        weights.codes[i] = (code & 0x7f) == 0x7f ? 0 : code;
    }
    for (size_t i = 0; i != weights.scales.size(); ++i) weights.scales[i] = 1;
    guarded_t<float> out(count * 256);
    guarded_t<float> decoded(32 * count);
    linear_t arguments;
    arguments.activations = activations.bytes.data(), arguments.activation_stride = arguments.rows = count;
    arguments.weights = &weights.packed, arguments.tile_end = weights.packed.tiles();
    arguments.out = out.data(), arguments.out_stride = 256, arguments.decoded = decoded.data();
    kernels.linear(arguments);
    for (size_t k = 0; k != count; ++k)
        for (size_t n = 0; n != 256; ++n) {
            size_t const place = ((n / 16 * count / 2 + k / 2) * 16 + n % 16) * 2 + k % 2;
            CHECK(out[k * 256 + n] == e4m3_to_f32(weights.codes[place]));
        }
}

void test_norm() {
    kernels_t const &kernels = *tested;
    for (size_t columns : {32, 64, 96, 256, 704}) {
        size_t const count = between(1, 9);
        std::vector<float> rows(count * columns), gain(columns);
        for (float &value : rows) value = uniform(3.f);
        for (float &value : gain) value = uniform(2.f);
        guarded_t<unsigned char> activations(count * columns * kernels.activation_size());
        guarded_t<float> states(count * columns), units(count * columns);
        normalize_t arguments;
        arguments.rows = rows.data(), arguments.count = count, arguments.columns = columns;
        arguments.gain = gain.data(), arguments.epsilon = 1e-6f;
        arguments.activations = activations.data(), arguments.states = states.data();
        kernels.normalize(arguments);
        std::memcpy(units.data(), rows.data(), rows.size() * sizeof(float));
        std::memset(units.data(), 0, columns * sizeof(float));
        kernels.unit(units.data(), count, columns);
        for (size_t row = 0; row != count; ++row) {
            double squares = 0;
            for (size_t n = 0; n != columns; ++n) squares += double(rows[row * columns + n]) * rows[row * columns + n];
            for (size_t n = 0; n != columns; ++n) {
                size_t const at = row * columns + n;
                double const expected = rows[at] / std::sqrt(squares / double(columns) + 1e-6) * gain[n];
                CHECK(std::fabs(states[at] - expected) <= 2e-6 * std::fabs(expected));
                double const rounded = read(kernels, activations.data(), at);
                CHECK(std::fabs(rounded - expected) <= (2e-6 + rounding(kernels)) * std::fabs(expected));
                double const unit = row ? rows[at] / std::sqrt(squares) : 0;
                CHECK(std::fabs(units[at] - unit) <= 2e-6 * std::fabs(unit));
            }
        }
        CHECK(activations.intact() && states.intact() && units.intact());
    }
    // Rows that are no multiple of any vector.
    for (size_t columns : {1, 3, 7, 15, 17, 24, 100}) {
        guarded_t<float> row(columns);
        double squares = 0;
        for (size_t n = 0; n != columns; ++n) row[n] = uniform() + 2, squares += double(row[n]) * row[n];
        std::vector<float> const before(row.data(), row.data() + columns);
        kernels.unit(row.data(), 1, columns);
        for (size_t n = 0; n != columns; ++n) CHECK(std::fabs(row[n] - before[n] / std::sqrt(squares)) <= 2e-6);
        CHECK(row.intact());
    }
}

void test_rope() {
    kernels_t const &kernels = *tested;
    for (size_t dimension : {32, 64}) {
        size_t const count = 7, half = dimension / 2, stride = 3 * dimension;
        std::vector<float> heads(count * dimension), gain(dimension), rotary(count * dimension);
        for (auto *values : {&heads, &gain})
            for (float &value : *values) value = uniform(2.f);
        for (size_t position = 0; position != count; ++position)
            for (size_t j = 0; j != half; ++j) {
                double const angle = j < half / 2 ? double(position * (j + 1)) : 0;
                rotary[position * dimension + j] = float(std::cos(angle));
                rotary[position * dimension + half + j] = float(std::sin(angle));
            }
        uint32_t const positions[count] = {6, 0, 3, 3, 1, 2, 5};
        guarded_t<unsigned char> out(count * stride * kernels.activation_size());
        rope_t arguments;
        arguments.heads = heads.data(), arguments.count = count, arguments.head_dimension = dimension;
        arguments.gain = gain.data(), arguments.rotary = rotary.data(), arguments.positions = positions;
        arguments.epsilon = 1e-6f, arguments.factor = 0.7f;
        arguments.activations = out.data(), arguments.activation_stride = stride;
        kernels.rope(arguments);
        for (size_t row = 0; row != count; ++row) {
            float const *head = heads.data() + row * dimension, *angles = rotary.data() + positions[row] * dimension;
            double squares = 0, size = 0;
            for (size_t j = 0; j != dimension; ++j) squares += double(head[j]) * head[j];
            double const factor = double(0.7f) / std::sqrt(squares / double(dimension) + 1e-6);
            for (size_t j = 0; j != dimension; ++j) size += std::pow(head[j] * double(gain[j]) * factor, 2);
            for (size_t j = 0; j != half; ++j) {
                double const a = double(head[j]) * gain[j] * factor,
                             b = double(head[j + half]) * gain[j + half] * factor;
                double const first = a * angles[j] - b * angles[half + j],
                             second = b * angles[j] + a * angles[half + j];
                double const off = 2e-6 * std::sqrt(size);
                CHECK(std::fabs(read(kernels, out.data(), row * stride + j) - first) <=
                      off + rounding(kernels) * std::fabs(first));
                CHECK(std::fabs(read(kernels, out.data(), row * stride + j + half) - second) <=
                      off + rounding(kernels) * std::fabs(second));
            }
        }
        arguments.gain = nullptr;
        kernels.rope(arguments);
        for (size_t i = 0; i != dimension; ++i)
            CHECK(std::fabs(read(kernels, out.data(), stride + i) - heads[dimension + i]) <=
                  rounding(kernels) * std::fabs(heads[dimension + i]));
        CHECK(out.intact());
    }
}

double to_bf16(double value) { return bf16_to_f32(f32_to_bf16(static_cast<float>(value))); }

void check_attention(kernels_t const &kernels, size_t count, size_t dimension, size_t window, float most = 2.f,
                     bool bounded = false) {
    size_t const stride = 3 * dimension + between(0, 1) * 32, size = kernels.activation_size();
    size_t const out_stride = dimension + between(0, 1) * 32;
    activations_t const heads(kernels, count, stride, most);
    guarded_t<unsigned char> whole(count * out_stride * size), split(count * out_stride * size);
    guarded_t<std::byte> scratch(attention_scratch(count, dimension));
    attention_t arguments;
    arguments.queries = heads.bytes.data();
    arguments.keys = heads.bytes.data() + dimension * size;
    arguments.values = heads.bytes.data() + 2 * dimension * size;
    arguments.stride = stride, arguments.count = count, arguments.head_dimension = dimension;
    arguments.window = window, arguments.out_stride = out_stride, arguments.scratch = scratch.data();
    arguments.bounded = bounded;
    auto const run = [&](unsigned char *out, size_t begin, size_t end) {
        arguments.out = out, arguments.query_begin = begin, arguments.query_end = end;
        kernels.attention(arguments);
    };
    run(whole.data(), 0, count);
    auto const query_cuts = cuts(count);
    for (size_t i = 3; i--;) run(split.data(), query_cuts[i], query_cuts[i + 1]);
    CHECK(std::memcmp(whole.data(), split.data(), whole.size()) == 0);
    CHECK(whole.intact() && split.intact() && scratch.intact());

    // Keys and values are rounded to BF16 by every class, probabilities by those with BF16 activations.
    double const tolerance = kernels.activations == uform_bf16_k ? 1e-2 : 1e-5;
    for (size_t query = 0; query < count; query += count > 100 ? 7 : 1) {
        size_t const begin = window && query > window ? query - window : 0;
        size_t const end = window && query + window + 1 < count ? query + window + 1 : count;
        std::vector<double> powers(count);
        double largest = -INFINITY, total = 0, magnitude = 0;
        for (size_t key = begin; key != end; ++key) {
            double sum = 0;
            for (size_t j = 0; j != dimension; ++j) {
                double const term =
                    heads.values[query * stride + j] * to_bf16(heads.values[key * stride + dimension + j]);
                powers[key] += term, sum += std::fabs(term);
            }
            largest = std::fmax(largest, powers[key]), magnitude = std::fmax(magnitude, sum);
        }
        for (size_t key = begin; key != end; ++key) total += powers[key] = std::exp2(powers[key] - largest);
        for (size_t j = 0; j != dimension; ++j) {
            double expected = 0;
            for (size_t key = begin; key != end; ++key)
                expected += powers[key] / total * to_bf16(heads.values[key * stride + 2 * dimension + j]);
            double const result = read(kernels, whole.data(), query * out_stride + j);
            CHECK(std::fabs(result - expected) <= most * (tolerance + product_tolerance(kernels) * magnitude));
        }
    }
}

void test_attention() {
    kernels_t const &kernels = *tested;
    for (size_t dimension : {32, 64}) {
        for (size_t count : {1, 2, 15, 16, 17, 31, 32, 33, 63, 97, 120, 128, 129, 160, 255, 300}) {
            check_attention(kernels, count, dimension, 0);
            for (size_t window : {1, 20, 130}) check_attention(kernels, count, dimension, window);
            // 64 numbers of at most 1: no score is above the bound.
            for (size_t window : {0, 1, 20, 130}) check_attention(kernels, count, dimension, window, 1.f, true);
        }
        for (size_t window : {0, 64, 200}) check_attention(kernels, 700, dimension, window);
        // Scores of hundreds: most probabilities vanish, and maxima rise by much from block to block.
        for (size_t window : {0, 33}) check_attention(kernels, 290, dimension, window, 9.f);
    }
}

/** Scores that are all at the lower end of the bound, but for some at the upper one. */
void test_attention_at_its_bound() {
    kernels_t const &kernels = *tested;
    size_t const count = 300, dimension = 64, size = kernels.activation_size();
    size_t const numbers = (count + activations_t::slack_k) * dimension;
    for (size_t above : {size_t(0), size_t(1), count}) {
        guarded_t<unsigned char> queries(numbers * size), keys(numbers * size), values(numbers * size);
        guarded_t<unsigned char> out(count * dimension * size);
        guarded_t<std::byte> scratch(attention_scratch(count, dimension));
        for (size_t i = 0; i != count * dimension; ++i) {
            size_t const token = i / dimension;
            float const query = 1, key = token < above ? 1 : -1, value = token < above ? 3 : -2;
            convert(&query, 1, kernels.activations, queries.data() + i * size);
            convert(&key, 1, kernels.activations, keys.data() + i * size);
            convert(&value, 1, kernels.activations, values.data() + i * size);
        }
        attention_t arguments;
        arguments.queries = queries.data(), arguments.keys = keys.data(), arguments.values = values.data();
        arguments.stride = arguments.out_stride = dimension, arguments.head_dimension = dimension;
        arguments.count = arguments.query_end = count, arguments.bounded = true;
        arguments.out = out.data(), arguments.scratch = scratch.data();
        static_assert(attention_bound_k == 64);
        kernels.attention(arguments);
        double const expected = above ? 3 : -2;
        for (size_t i = 0; i != count * dimension; ++i)
            CHECK(std::fabs(read(kernels, out.data(), i) - expected) <= 1e-5);
    }
}

void test_pool() {
    kernels_t const &kernels = *tested;
    for (size_t columns : {32, 64, 96, 256}) {
        size_t const count = between(1, 400);
        std::vector<float> rows(count * columns);
        for (float &value : rows) value = uniform() + 1;
        guarded_t<unsigned char> whole(columns * kernels.activation_size()), split(columns * kernels.activation_size());
        pooling_t arguments;
        arguments.rows = rows.data(), arguments.count = count, arguments.columns = columns;
        auto const run = [&](unsigned char *out, size_t begin, size_t end) {
            arguments.activations = out, arguments.column_begin = begin, arguments.column_end = end;
            kernels.pool(arguments);
        };
        run(whole.data(), 0, columns);
        for (size_t column = 0; column != columns; column += 32) run(split.data(), column, column + 32);
        CHECK(std::memcmp(whole.data(), split.data(), whole.size()) == 0);
        CHECK(whole.intact() && split.intact());
        for (size_t n = 0; n != columns; ++n) {
            double mean = 0;
            for (size_t row = 0; row != count; ++row) mean += rows[row * columns + n] / double(count);
            double const off = 1e-6 * std::sqrt(double(count)) + rounding(kernels);
            CHECK(std::fabs(read(kernels, whole.data(), n) - mean) <= off * std::fabs(mean) + 1e-6);
        }
    }
}

void test_choose() {
    float logits[256];
    for (float &value : logits) value = uniform(30.f);
    uint8_t const choices[] = {'y', 'n', 0, 255, 'A'};
    float probabilities[5];
    choose(logits, 0.5f, choices, 5, probabilities);
    double total = 0, sum = 0;
    for (uint8_t choice : choices) total += std::exp(logits[choice] * 0.5);
    for (size_t i = 0; i != 5; ++i) {
        CHECK(std::fabs(probabilities[i] - std::exp(logits[choices[i]] * 0.5) / total) <= 1e-7);
        sum += probabilities[i];
    }
    CHECK(std::fabs(sum - 1) <= 1e-6);
    // Far beyond what exp takes.
    for (float &value : logits) value *= 1e30f;
    choose(logits, 1.f, choices, 5, probabilities);
    for (float probability : probabilities) CHECK(probability >= 0 && probability <= 1);
}

void test_convert() {
    float const values[] = {0.f, -0.f, 1.f, 1.00390625f, 449.f, -1e9f, 0x1p-9f, 0x1p-10f, 3e38f};
    bf16_t halves[9];
    e4m3_t codes[9];
    convert(values, 9, uform_bf16_k, halves);
    convert(values, 9, uform_e4m3_k, codes);
    bf16_t const expected_halves[] = {0, 0x8000, 0x3f80, 0x3f80, 0x43e0, 0xce6e, 0x3b00, 0x3a80, 0x7f62};
    e4m3_t const expected_codes[] = {0, 0x80, 0x38, 0x38, 0x7e, 0xfe, 1, 0, 0x7e};
    for (size_t i = 0; i != 9; ++i) CHECK(halves[i] == expected_halves[i] && codes[i] == expected_codes[i]);
}

} // namespace

int main() {
#if defined(__x86_64__) && defined(__linux__)
    if (__builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi"))
        setenv("UFORM_ASSUME_CPU_CLASS", "SAPPHIRE", 0);
#endif
    for (uform_cpu_class_t cpu_class : {uform_cpu_class_serial_k, uform_cpu_class_haswell_k, uform_cpu_class_skylake_k,
                                        uform_cpu_class_genoa_k, uform_cpu_class_sapphire_k}) {
        if (!uform_cpu_class_supported(cpu_class)) continue;
        fprintf(stderr, "%s\n", uform_cpu_class_name(cpu_class));
        tested = &kernels_of(cpu_class);
        RUN(test_linear);
        RUN(test_decode);
        RUN(test_norm);
        RUN(test_rope);
        RUN(test_attention);
        RUN(test_attention_at_its_bound);
        RUN(test_pool);
    }
    RUN(test_choose);
    RUN(test_convert);
    return check_report();
}
