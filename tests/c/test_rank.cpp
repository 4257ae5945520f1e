/**
 *  The kernels of ranking, of every class that this machine can run, against sums made one number at a time; and the
 *  verbs on threads, whose F32 scores have the same bits in every class. What kernels read ends where its allocation
 *  does, so that sanitizers see them read past it.
 */
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "check.h"
#if defined(__x86_64__) && defined(__linux__)
#include "amx_emulator.c"
#endif
#include "kernels/packed.h"
#include "kernels/scalars.h"
#include "kernels/score/kernels.h"
#include "rank/vectors.h"
#include "uform/rank.h"

namespace {

using namespace uform;

std::mt19937 random_bits(5);
uform_cpu_class_t tested = uform_cpu_class_serial_k;

float uniform() { return std::uniform_real_distribution<float>(-1, 1)(random_bits); }
size_t between(size_t least, size_t most) { return std::uniform_int_distribution<size_t>(least, most)(random_bits); }

/** Rows of a matrix with a gap behind each but the last. */
template <typename element_type_> struct rows_t {
    size_t count, width, stride;
    std::vector<element_type_> data;

    rows_t(size_t count, size_t width, size_t gap) : count(count), width(width), stride(width + gap) {
        data.resize(count ? (count - 1) * stride + width : 0);
        data.shrink_to_fit();
    }
    element_type_ *row(size_t index) { return data.data() + index * stride; }
    uform_vectors_t vectors(uform_vectors_kind_t kind, size_t numbers) const {
        return {data.data(), count, numbers, stride * sizeof(element_type_), kind};
    }
};

struct free_t {
    void operator()(void *memory) const { std::free(memory); }
};
using aligned_t = std::unique_ptr<void, free_t>;

aligned_t pack(uform_vectors_t const &queries, size_t lanes, uform_vectors_kind_t kind) {
    aligned_t packed(std::aligned_alloc(64, round_up(packed_bytes(queries.width, lanes, kind), 64)));
    pack_queries(queries, 0, queries.count, lanes, kind, packed.get());
    return packed;
}

constexpr size_t widths_k[] = {1, 3, 8, 31, 64, 100, 128};

void test_f32() {
    score_kernels_t const &kernels = score_kernels_of(tested);
    struct {
        score_kernel_t kernel;
        size_t lanes;
    } const all[] = {{kernels.f32, score_lanes_k},
                     {kernels.f32_half, score_half_lanes_k},
                     {kernels.f32_narrow, score_narrow_lanes_k}};
    for (auto const &[kernel, lanes] : all)
        for (size_t width : widths_k) {
            rows_t<float> rows(between(1, 30), width, between(0, 5)), queries(between(1, lanes), width, 0);
            for (float &number : rows.data) number = uniform();
            for (float &number : queries.data) number = uniform();
            aligned_t const packed = pack(queries.vectors(uform_vectors_f32_k, width), lanes, uform_vectors_f32_k);
            std::vector<float> scores(rows.count * lanes);
            kernel({rows.data.data(), rows.stride * sizeof(float), rows.count, width, packed.get(), scores.data()});
            bool are_same = true;
            for (size_t row = 0; row != rows.count; ++row)
                for (size_t lane = 0; lane != lanes; ++lane) {
                    float sum = 0;
                    for (size_t column = 0; column != width && lane < queries.count; ++column)
                        sum = std::fma(rows.row(row)[column], queries.row(lane)[column], sum);
                    are_same &= scores[row * lanes + lane] == sum;
                }
            CHECK(are_same);
        }
}

void test_bf16() {
    score_kernels_t const &kernels = score_kernels_of(tested);
    if (!kernels.bf16) return;
    for (size_t width : {size_t(32), size_t(128), size_t(96)}) {
        size_t const count = between(1, 70);
        rows_t<bf16_t> rows(count + score_slack_rows_k, width, 0), queries(between(1, score_lanes_k), width, 0);
        for (bf16_t &number : rows.data) number = f32_to_bf16(uniform());
        for (bf16_t &number : queries.data) number = f32_to_bf16(uniform());
        aligned_t const packed =
            pack(queries.vectors(uform_vectors_bf16_k, width), score_lanes_k, uform_vectors_bf16_k);
        std::vector<float> scores((count + score_slack_rows_k) * score_lanes_k);
        kernels.bf16({rows.data.data(), width * sizeof(bf16_t), count, width, packed.get(), scores.data()});
        for (size_t row = 0; row != count; ++row)
            for (size_t lane = 0; lane != queries.count; ++lane) {
                double sum = 0, magnitude = 0;
                for (size_t column = 0; column != width; ++column) {
                    double const term =
                        double(bf16_to_f32(rows.row(row)[column])) * double(bf16_to_f32(queries.row(lane)[column]));
                    sum += term, magnitude += std::fabs(term);
                }
                CHECK(std::fabs(scores[row * score_lanes_k + lane] - sum) <= 1e-5 * magnitude);
            }
    }
}

void test_i8() {
    score_kernels_t const &kernels = score_kernels_of(tested);
    for (size_t lanes : {score_i8_lanes_k, size_t(1)})
        for (size_t width : widths_k) {
            rows_t<int8_t> rows(between(1, 20), width, between(0, 3)), queries(between(1, lanes), width, 0);
            for (int8_t &number : rows.data) number = int8_t(between(0, 255) - 128);
            for (int8_t &number : queries.data) number = int8_t(between(0, 255) - 128);
            aligned_t const packed = pack(queries.vectors(uform_vectors_i8_k, width), lanes, uform_vectors_i8_k);
            std::vector<int32_t> scores(rows.count * lanes);
            (lanes == 1 ? kernels.i8_one
                        : kernels.i8)({rows.data.data(), rows.stride, rows.count, width, packed.get(), scores.data()});
            for (size_t row = 0; row != rows.count; ++row)
                for (size_t lane = 0; lane != queries.count; ++lane) {
                    int32_t sum = 0;
                    for (size_t column = 0; column != width; ++column)
                        sum += rows.row(row)[column] * queries.row(lane)[column];
                    CHECK(scores[row * lanes + lane] == sum);
                }
        }
}

void test_bits() {
    score_kernels_t const &kernels = score_kernels_of(tested);
    for (size_t lanes : {score_bits_lanes_k, size_t(1)})
        for (size_t width : widths_k) {
            rows_t<uint8_t> rows(between(1, 20), width, between(0, 3)), queries(between(1, lanes), width, 0);
            for (uint8_t &byte : rows.data) byte = uint8_t(random_bits());
            for (uint8_t &byte : queries.data) byte = uint8_t(random_bits());
            aligned_t const packed =
                pack(queries.vectors(uform_vectors_bits_k, width * 8), lanes, uform_vectors_bits_k);
            std::vector<int32_t> scores(rows.count * lanes);
            (lanes == 1 ? kernels.bits_one : kernels.bits)(
                {rows.data.data(), rows.stride, rows.count, width, packed.get(), scores.data()});
            for (size_t row = 0; row != rows.count; ++row)
                for (size_t lane = 0; lane != queries.count; ++lane) {
                    int32_t sum = 0;
                    for (size_t byte = 0; byte != width; ++byte)
                        sum += __builtin_popcount(rows.row(row)[byte] ^ queries.row(lane)[byte]);
                    CHECK(scores[row * lanes + lane] == sum);
                }
        }
}

uform_executor_t *executor_of(uform_cpu_class_t cpu_class, size_t threads) {
    uform_executor_t *executor = nullptr;
    uform_executor_ram_t options {};
    options.threads = threads, options.cpu_class = cpu_class;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_success_k);
    return executor;
}

std::vector<float> maxsim(uform_cpu_class_t cpu_class, size_t threads, rows_t<float> const &queries,
                          rows_t<float> const &documents, std::vector<size_t> const &query_offsets,
                          std::vector<size_t> const &document_offsets) {
    uform_maxsim_t arguments {};
    arguments.executor = executor_of(cpu_class, threads);
    arguments.queries = queries.vectors(uform_vectors_f32_k, queries.width);
    arguments.documents = documents.vectors(uform_vectors_f32_k, documents.width);
    arguments.query_offsets = query_offsets.data(), arguments.query_count = query_offsets.size() - 1;
    arguments.document_offsets = document_offsets.data(), arguments.document_count = document_offsets.size() - 1;
    std::vector<float> scores(arguments.query_count * arguments.document_count);
    arguments.scores = scores.data();
    CHECK_STATUS(uform_maxsim(&arguments), uform_success_k);
    uform_executor_free(arguments.executor);
    return scores;
}

/** Vectors of a kind that makes it hard to tell early which of them is the closest. */
enum class hard_t { no_k, equal_k, near_k, large_k, small_k, huge_k, zero_k, not_finite_k, count_k };

void fill(rows_t<float> &rows, hard_t hard, bool are_documents) {
    for (float &number : rows.data) number = uniform() * 0.1f;
    for (size_t row = 0; row != rows.count; ++row)
        for (size_t column = 0; column != rows.width; ++column) {
            float &number = rows.row(row)[column];
            switch (hard) {
            case hard_t::equal_k:
                if (are_documents && row % 3) number = rows.row(0)[column];
                break;
            // What BF16 cannot tell apart.
            case hard_t::near_k:
                if (are_documents && row % 7) number = rows.row(0)[column] * (1 + 0.001f * uniform());
                break;
            case hard_t::large_k: number *= row % 5 ? 1.f : 1000.f; break;
            case hard_t::small_k: number *= 1e-25f; break;
            case hard_t::huge_k: number *= 1e25f; break;
            case hard_t::zero_k:
                if (row % 4 == 1) number = 0;
                break;
            case hard_t::not_finite_k:
                if (are_documents && row % 11 == 5 && column == rows.width / 2)
                    number = row % 2 ? std::numeric_limits<float>::infinity() : std::nanf("");
                break;
            default: break;
            }
        }
}

void test_maxsim() {
    for (size_t hard = 0; hard != size_t(hard_t::count_k); ++hard)
        for (size_t width : {size_t(7), size_t(48), size_t(64), size_t(100), size_t(128)}) {
            std::vector<size_t> const query_offsets = {0, 1, 1, 33, 40},
                                      document_offsets = {0, 180, 181, 181, 500, 503};
            rows_t<float> queries(40, width, between(0, 2)), documents(503, width, between(0, 2));
            fill(queries, hard_t(hard), false), fill(documents, hard_t(hard), true);
            auto const expected =
                maxsim(uform_cpu_class_serial_k, 1, queries, documents, query_offsets, document_offsets);
            for (size_t threads : {1, 2}) {
                auto const found = maxsim(tested, threads, queries, documents, query_offsets, document_offsets);
                CHECK(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0);
            }
        }
}

void test_top_k() {
    constexpr size_t count = 1000, width = 40, k = 17;
    rows_t<float> queries(9, width, 0), corpus(count, width, 3);
    for (auto *rows : {&queries, &corpus})
        for (float &number : rows->data) number = float(between(0, 3));
    for (size_t queries_in_use : {size_t(1), size_t(9)}) {
        queries.count = queries_in_use;
        std::vector<float> scores(queries.count * k);
        std::vector<int64_t> ids(queries.count * k);
        uform_top_k_t arguments {};
        arguments.executor = executor_of(tested, 2);
        arguments.queries = queries.vectors(uform_vectors_f32_k, width);
        arguments.corpus = corpus.vectors(uform_vectors_f32_k, width);
        arguments.k = k, arguments.scores = scores.data(), arguments.ids = ids.data();
        CHECK_STATUS(uform_top_k(&arguments), uform_success_k);
        uform_executor_free(arguments.executor);
        for (size_t query = 0; query != queries.count; ++query) {
            std::vector<std::pair<float, int64_t>> expected;
            for (size_t row = 0; row != count; ++row) {
                float sum = 0;
                for (size_t column = 0; column != width; ++column)
                    sum += queries.row(query)[column] * corpus.row(row)[column];
                expected.emplace_back(-sum, row);
            }
            std::sort(expected.begin(), expected.end());
            for (size_t index = 0; index != k; ++index) {
                CHECK(scores[query * k + index] == -expected[index].first);
                CHECK(ids[query * k + index] == expected[index].second);
            }
        }
    }
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
        tested = cpu_class;
        fprintf(stderr, "%s\n", uform_cpu_class_name(cpu_class));
        RUN(test_f32);
        RUN(test_bf16);
        RUN(test_i8);
        RUN(test_bits);
        RUN(test_maxsim);
        RUN(test_top_k);
    }
    return check_report();
}
