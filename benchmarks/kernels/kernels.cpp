/**
 *  Speed of each kernel of each CPU class that the machine has, on one thread, beside the most that the class's
 *  multiply-adds can do. Shapes are those of the models "tiny" (hidden 256) and "base" (hidden 512).
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "kernels/convert/convert.h"
#include "kernels/kernels.h"
#include "kernels/scalars.h"
#include "peak.h"
#include "stopwatch.h"

namespace {

using namespace uform;

struct free_t {
    void operator()(void *pointer) const noexcept { std::free(pointer); }
};

/** Zeroed memory, aligned to pages. */
template <typename element_type_ = std::byte> class buffer_t {
  public:
    explicit buffer_t(size_t count) {
        size_t const bytes = round_up(count * sizeof(element_type_), 4096);
        pointer_.reset(static_cast<element_type_ *>(std::aligned_alloc(4096, bytes)));
        std::memset(static_cast<void *>(pointer_.get()), 0, bytes);
    }
    element_type_ *get() const noexcept { return pointer_.get(); }

  private:
    std::unique_ptr<element_type_, free_t> pointer_;
};

uint32_t random_state = 1;

float random_unit() noexcept {
    random_state = random_state * 1664525u + 1013904223u;
    return static_cast<float>(random_state >> 8) * 0x1p-23f - 1.f;
}

void fill(kernels_t const &kernels, std::byte *activations, size_t count) noexcept {
    for (size_t i = 0; i != count; ++i) {
        float const value = random_unit();
        convert(&value, 1, kernels.activations, activations + i * kernels.activation_size());
    }
}

constexpr size_t slack_rows_k = 32;
/** Matrices that take turns, so that weights come from where a model of so many layers has them. */
constexpr size_t layers_k = 6;

double linear(kernels_t const &kernels, size_t rows, size_t outputs, size_t columns, epilogue_t epilogue,
              bool quantized) {
    size_t const elements = outputs * columns;
    bool const activate = epilogue == epilogue_t::activate_k;
    buffer_t<> activations((rows + slack_rows_k) * columns * kernels.activation_size());
    fill(kernels, activations.get(), rows * columns);
    buffer_t<bf16_t> data(quantized ? 0 : layers_k * elements);
    buffer_t<e4m3_t> codes(quantized ? layers_k * elements : 0);
    buffer_t<float> scales(outputs), out(rows * outputs), decoded(tile_rows_k * columns);
    for (size_t i = 0; i != layers_k * elements; ++i) {
        if (quantized) codes.get()[i] = f32_to_e4m3(random_unit());
        else data.get()[i] = f32_to_bf16(random_unit());
    }
    for (size_t i = 0; i != outputs; ++i) scales.get()[i] = 1.f;
    packed_t weights;
    weights.rows = outputs, weights.columns = columns;
    linear_t arguments;
    arguments.activations = activations.get(), arguments.activation_stride = columns, arguments.rows = rows;
    arguments.weights = &weights, arguments.tile_end = weights.tiles(), arguments.epilogue = epilogue;
    arguments.out = out.get(), arguments.out_stride = activate ? outputs / 2 : outputs;
    arguments.decoded = decoded.get();
    size_t layer = 0;
    double const seconds = fastest([&] {
        if (quantized) weights.data_e4m3 = codes.get() + layer * elements, weights.scales = scales.get();
        else weights.data = data.get() + layer * elements;
        layer = (layer + 1) % layers_k;
        kernels.linear(arguments);
    });
    return 2. * static_cast<double>(rows * elements) / seconds;
}

double attention(kernels_t const &kernels, size_t count, size_t dimension, size_t window) {
    // Heads of the model "tiny" lie beside each other.
    size_t const heads = 256 / dimension, stride = 3 * 256, size = kernels.activation_size();
    buffer_t<> activations((count + slack_rows_k) * stride * size), out(count * 256 * size);
    fill(kernels, activations.get(), count * stride);
    buffer_t<> scratch(attention_scratch(count, dimension));
    attention_t arguments;
    arguments.stride = stride, arguments.count = arguments.query_end = count, arguments.head_dimension = dimension;
    arguments.window = window, arguments.out_stride = 256, arguments.scratch = scratch.get();
    double const seconds = fastest([&] {
        for (size_t head = 0; head != heads; ++head) {
            arguments.queries = activations.get() + head * dimension * size;
            arguments.keys = activations.get() + (256 + head * dimension) * size;
            arguments.values = activations.get() + (512 + head * dimension) * size;
            arguments.out = out.get() + head * dimension * size;
            kernels.attention(arguments);
        }
    });
    double const attended = static_cast<double>(window && 2 * window + 1 < count ? 2 * window + 1 : count);
    return 4. * static_cast<double>(count * 256) * attended / seconds;
}

double normalize(kernels_t const &kernels, size_t rows, size_t columns) {
    buffer_t<float> residual(rows * columns), gain(columns);
    buffer_t<> activations(rows * columns * kernels.activation_size());
    for (size_t i = 0; i != rows * columns; ++i) residual.get()[i] = random_unit();
    normalize_t arguments;
    arguments.rows = residual.get(), arguments.count = rows, arguments.columns = columns;
    arguments.gain = gain.get(), arguments.epsilon = 1e-6f, arguments.activations = activations.get();
    return static_cast<double>(rows * columns) / fastest([&] { kernels.normalize(arguments); });
}

double rope(kernels_t const &kernels, size_t dimension) {
    size_t const count = kernels.head_tokens;
    buffer_t<float> heads(count * dimension), gain(dimension), rotary(count * dimension);
    buffer_t<> activations(count * 3 * 256 * kernels.activation_size());
    buffer_t<uint32_t> positions(count);
    for (size_t i = 0; i != count; ++i) positions.get()[i] = static_cast<uint32_t>(i);
    for (size_t i = 0; i != count * dimension; ++i) heads.get()[i] = rotary.get()[i] = random_unit();
    rope_t arguments;
    arguments.heads = heads.get(), arguments.count = count, arguments.head_dimension = dimension;
    arguments.gain = gain.get(), arguments.rotary = rotary.get(), arguments.positions = positions.get();
    arguments.epsilon = 1e-6f, arguments.activations = activations.get(), arguments.activation_stride = 3 * 256;
    return static_cast<double>(count * dimension) / fastest([&] { kernels.rope(arguments); });
}

double pool(kernels_t const &kernels, size_t rows, size_t columns) {
    buffer_t<float> states(rows * columns);
    buffer_t<> activations(columns * kernels.activation_size());
    pooling_t arguments;
    arguments.rows = states.get(), arguments.count = rows, arguments.columns = arguments.column_end = columns;
    arguments.activations = activations.get();
    return static_cast<double>(rows * columns) / fastest([&] { kernels.pool(arguments); });
}

void report(kernels_t const &kernels) {
    double const most = peak(kernels.cpu_class);
    char const *name = uform_cpu_class_name(kernels.cpu_class);
    std::printf("%s, peak %.1f GFLOP/s\n", name, most * 1e-9);
    auto const line = [&](char const *what, double rate) {
        std::printf("  %-44s %8.1f GFLOP/s %5.1f%%\n", what, rate * 1e-9, 100 * rate / most);
    };
    struct layer_t {
        char const *name;
        size_t columns, outputs;
        epilogue_t epilogue;
    };
    constexpr layer_t layers[] = {
        {"tiny qkv", 256, 768, epilogue_t::store_k},         {"tiny output", 256, 256, epilogue_t::add_k},
        {"tiny gate_up", 256, 1408, epilogue_t::activate_k}, {"tiny down", 704, 256, epilogue_t::add_k},
        {"base qkv", 512, 1536, epilogue_t::store_k},        {"base output", 512, 512, epilogue_t::add_k},
        {"base gate_up", 512, 2816, epilogue_t::activate_k}, {"base down", 1408, 512, epilogue_t::add_k},
    };
    char what[64];
    for (layer_t const &layer : layers)
        for (size_t rows : {size_t(64), kernels.group_tokens})
            for (bool quantized : {false, true}) {
                std::snprintf(what, sizeof(what), "linear %s, %zu rows, %s", layer.name, rows,
                              quantized ? "E4M3" : "BF16");
                line(what, linear(kernels, rows, layer.outputs, layer.columns, layer.epilogue, quantized));
            }
    for (size_t count : {64, 120, 512, 4096}) {
        std::snprintf(what, sizeof(what), "attention, %zu tokens", count);
        line(what, attention(kernels, count, 64, 0));
    }
    line("attention, 4096 tokens, window 128", attention(kernels, 4096, 64, 128));
    line("attention, 120 tokens, dimension 32", attention(kernels, 120, 32, 0));
    auto const rate = [&](char const *kernel, double elements) {
        std::printf("  %-44s %8.2f G elements/s\n", kernel, elements * 1e-9);
    };
    rate("norm, 384 rows of 256", normalize(kernels, 384, 256));
    rate("rope, heads of 64", rope(kernels, 64));
    rate("pool, 120 rows of 256", pool(kernels, 120, 256));
}

} // namespace

/** Arguments: names of CPU classes; none: all that the machine has, but SERIAL. */
int main(int count, char **names) {
    for (int number = uform_cpu_class_haswell_k; uform_cpu_class_name(number); ++number) {
        bool wanted = count == 1;
        for (int i = 1; i != count; ++i) wanted |= !std::strcmp(names[i], uform_cpu_class_name(number));
        if (!wanted || !uform_cpu_class_supported(number)) continue;
        kernels_t const &kernels = kernels_of(static_cast<uform_cpu_class_t>(number));
        if (kernels.cpu_class == number) report(kernels);
    }
}
