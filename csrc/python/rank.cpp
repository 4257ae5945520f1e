/** Ranking: what `uform/rank.h` has, over buffers. The package's `uform.rank` makes their outputs. */
#include "uform/rank.h"

#include "buffers.h"
#include "call.h"
#include "enumerations.h"

namespace uform::python {
namespace {

buffer_t array_of(py::handle object, char const *name) {
    if (!PyObject_CheckBuffer(object.ptr()))
        raise_type(UFORM_NO_ITEM, "%s: an array is needed, as numpy.asarray makes it, not %s", name, type_name(object));
    return buffer_t::of(object, name);
}

/** A matrix in a C-contiguous buffer of two dimensions. Keeps what it points to. */
class vectors_input_t {
  public:
    /** `kinds`: those that are taken, of F32 'f', BF16 'Hh' (its bits) or its raw bytes, I8 'b', bits 'B'. */
    vectors_input_t(py::handle object, char const *name, bool is_late_interaction) : buffer_(array_of(object, name)) {
        if (buffer_.dimensions() != 2)
            raise(uform_shape_mismatch_k, UFORM_NO_ITEM, "%s: two dimensions are needed, not %d", name,
                  buffer_.dimensions());
        if (!buffer_.is_contiguous())
            raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: it has to be C-contiguous", name);
        vectors_.data = buffer_.data();
        vectors_.count = buffer_.side(0);
        vectors_.width = buffer_.side(1);
        if (buffer_.holds("f", 4)) vectors_.kind = uform_vectors_f32_k;
        else if (is_late_interaction && buffer_.holds("Hh", 2)) vectors_.kind = uform_vectors_bf16_k;
        else if (is_late_interaction && buffer_.holds("B", 1) && vectors_.width % 2 == 0) {
            vectors_.kind = uform_vectors_bf16_k;
            vectors_.width /= 2;
        }
        else if (!is_late_interaction && buffer_.holds("b", 1)) vectors_.kind = uform_vectors_i8_k;
        else if (!is_late_interaction && buffer_.holds("B", 1)) {
            vectors_.kind = uform_vectors_bits_k;
            vectors_.width *= 8;
        }
        else
            raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: %s needed, not %s", name,
                  is_late_interaction ? "float32, or the bits of bfloat16 as uint16, are"
                                      : "float32, int8, or packed bits as uint8, are",
                  buffer_.format().c_str());
        if (!vectors_.count && !vectors_.width) vectors_.width = 1;
    }

    uform_vectors_t const &vectors() const noexcept { return vectors_; }

  private:
    buffer_t buffer_;
    uform_vectors_t vectors_ {};
};

/** Integers of 64 bits in a C-contiguous buffer of one dimension. */
class integers_input_t {
  public:
    integers_input_t(py::handle object, char const *name) : buffer_(array_of(object, name)) {
        if (buffer_.dimensions() != 1 || !buffer_.is_contiguous() || !buffer_.holds("QqLlNn", 8))
            raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: a vector of 64-bit integers is needed, not of %s",
                  name, buffer_.format().c_str());
    }

    void const *data() const noexcept { return buffer_.data(); }
    size_t count() const noexcept { return buffer_.length() / 8; }

  private:
    buffer_t buffer_;
};

/** `count + 1` offsets. */
struct offsets_input_t : integers_input_t {
    offsets_input_t(py::handle object, char const *name) : integers_input_t(object, name) {
        if (!integers_input_t::count())
            raise(uform_invalid_argument_k, UFORM_NO_ITEM, "%s: there are none, but `count + 1` are needed", name);
    }

    size_t const *offsets() const noexcept { return static_cast<size_t const *>(data()); }
    size_t items() const noexcept { return integers_input_t::count() - 1; }
};

void maxsim(py::object const &queries, py::object const &query_offsets, py::object const &documents,
            py::object const &document_offsets, py::object const &candidate_offsets, py::object const &candidates,
            py::buffer const &scores, py::object const &executor) {
    vectors_input_t const query_vectors(queries, "queries", true), document_vectors(documents, "documents", true);
    offsets_input_t const of_queries(query_offsets, "query_offsets"),
        of_documents(document_offsets, "document_offsets");
    std::unique_ptr<offsets_input_t const> of_candidates;
    std::unique_ptr<integers_input_t const> named;
    uform_maxsim_t arguments {};
    if (!candidates.is_none()) {
        of_candidates = std::make_unique<offsets_input_t const>(candidate_offsets, "candidate_offsets");
        named = std::make_unique<integers_input_t const>(candidates, "candidates");
        if (of_candidates->items() != of_queries.items())
            raise(uform_shape_mismatch_k, UFORM_NO_ITEM, "candidates: lists of %zu queries, but there are %zu",
                  of_candidates->items(), of_queries.items());
        if (of_candidates->offsets()[of_candidates->items()] != named->count())
            raise(uform_invalid_argument_k, UFORM_NO_ITEM, "candidates: %zu of them, but the offsets end at %zu",
                  named->count(), of_candidates->offsets()[of_candidates->items()]);
        arguments.candidate_offsets = of_candidates->offsets();
        arguments.candidates = static_cast<int64_t const *>(named->data());
    }
    py::buffer_info const out = scores.request(true);
    executor_handle_t const handle = executor_argument(executor);
    arguments.executor = handle.get();
    arguments.queries = query_vectors.vectors();
    arguments.query_offsets = of_queries.offsets();
    arguments.query_count = of_queries.items();
    arguments.documents = document_vectors.vectors();
    arguments.document_offsets = of_documents.offsets();
    arguments.document_count = of_documents.items();
    arguments.scores = static_cast<float *>(out.ptr);
    size_t const needed = named ? named->count() : of_queries.items() * of_documents.items();
    if (size_t(out.size) != needed || out.itemsize != 4)
        raise(uform_shape_mismatch_k, UFORM_NO_ITEM, "scores: %zu float32 are needed", needed);
    check([&] { return uform_maxsim(&arguments); });
}

void top_k(py::object const &queries, py::object const &corpus, py::object const &count, py::object const &first_id,
           bool merge, py::buffer const &scores, py::buffer const &ids, py::object const &executor) {
    vectors_input_t const query_vectors(queries, "queries", false), corpus_vectors(corpus, "corpus", false);
    py::buffer_info const score_out = scores.request(true), id_out = ids.request(true);
    executor_handle_t const handle = executor_argument(executor);
    size_t const k = size_argument(count, "k");
    uform_top_k_t arguments {};
    arguments.executor = handle.get();
    arguments.queries = query_vectors.vectors();
    arguments.corpus = corpus_vectors.vectors();
    arguments.k = k;
    arguments.first_id = static_cast<int64_t>(size_argument(first_id, "first_id"));
    arguments.merge = merge;
    arguments.scores = score_out.ptr;
    arguments.ids = static_cast<int64_t *>(id_out.ptr);
    size_t const needed = arguments.queries.count * k;
    if (size_t(score_out.size) != needed || size_t(id_out.size) != needed)
        raise(uform_shape_mismatch_k, UFORM_NO_ITEM, "merge: (%zu, %zu) scores and ids are needed",
              arguments.queries.count, k);
    bool const is_f32 = arguments.queries.kind == uform_vectors_f32_k;
    if (score_out.format != (is_f32 ? "f" : "i") || id_out.itemsize != 8)
        raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "merge: scores of %s and ids of int64 are needed",
              is_f32 ? "float32" : "int32");
    check([&] { return uform_top_k(&arguments); });
}

} // namespace

void bind_rank(py::module_ &module) {
    module.def("_maxsim", maxsim,
               "_maxsim(queries, query_offsets, documents, document_offsets, candidate_offsets, candidates, scores, "
               "executor)\n--\n\nWrites scores to memory that is lent: see `uform.rank.maxsim`.");
    module.def("_top_k", top_k,
               "_top_k(queries, corpus, k, first_id, merge, scores, ids, executor)\n--\n\n"
               "Writes results to memory that is lent: see `uform.rank.top_k`.");
}

} // namespace uform::python
