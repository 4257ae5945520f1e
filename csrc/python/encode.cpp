/** The text verbs of `uform/encode.h`. */
#include "uform/encode.h"

#include "buffers.h"
#include "call.h"
#include "enumerations.h"
#include "outputs.h"
#include "views.h"

namespace uform::python {
namespace {

/** What both verbs have in common. */
class text_call_t : public call_t {
  public:
    text_call_t(model_handle_t model, py::handle texts, py::handle arena, py::object stats, py::object handler)
        : call_t(std::move(model), argument<arena_t>(arena, "arena", "Arena").handle, std::move(handler)),
          texts_(texts, "texts"), stats_object_(std::move(stats)) {
        if (!stats_object_.is_none())
            stats_target_ = &argument<uform_text_encode_stats_t>(stats_object_, "stats", "TextEncodeStats");
    }

    void publish_stats() noexcept override {
        if (stats_target_) *stats_target_ = stats_;
    }

  protected:
    /** Fills in what the argument structures of both verbs share. */
    template <typename arguments_type_>
    void fill(arguments_type_ &arguments, uform_executor_t *executor, uform_outcome_t **completion) noexcept {
        fill_call(arguments, executor, completion);
        arguments.texts = texts_.tape();
        arguments.stats = &stats_;
    }

    batch_input_t texts_;
    py::object stats_object_;
    uform_text_encode_stats_t *stats_target_ = nullptr; /**< Inside of the object, if any. */
    uform_text_encode_stats_t stats_ {};
};

class text_encode_call_t final : public text_call_t {
  public:
    text_encode_call_t(model_handle_t model, py::handle texts, py::handle arena, py::handle outputs, py::handle scalar,
                       py::object stats, py::object handler)
        : text_call_t(std::move(model), texts, arena, std::move(stats), std::move(handler)), outputs_(outputs, scalar) {
    }

    uform_status_t submit(uform_executor_t *executor, uform_outcome_t **completion) noexcept override {
        uform_text_encode_t arguments {};
        fill(arguments, executor, completion);
        outputs_.fill(arguments);
        return uform_text_encode(model_.get(), &arguments);
    }

    py::object result() override { return outputs_.result(arena_); }

  private:
    outputs_t outputs_;
};

class text_choose_call_t final : public text_call_t {
  public:
    text_choose_call_t(model_handle_t model, py::handle texts, py::handle choices, py::handle arena, py::handle groups,
                       py::object stats, py::object handler)
        : text_call_t(std::move(model), texts, arena, std::move(stats), std::move(handler)),
          choices_(choices, "choices", batch_contents_t::letters_k), groups_(groups) {}

    uform_status_t submit(uform_executor_t *executor, uform_outcome_t **completion) noexcept override {
        uform_text_choose_t arguments {};
        fill(arguments, executor, completion);
        arguments.choices = choices_.tape();
        arguments.temperature_groups = groups_.data();
        arguments.temperature_groups_count = groups_.count();
        arguments.probabilities = &probabilities_;
        return uform_text_choose(model_.get(), &arguments);
    }

    py::object result() override { return py::cast(rows_tape_t(arena_, probabilities_, true)); }

  private:
    batch_input_t choices_;
    groups_input_t groups_;
    uform_rows_tape_t probabilities_ {};
};

template <typename receiver_type_>
void bind_text_verbs(py::class_<receiver_type_> &receiver, py::object const &default_outputs) {
    receiver.def(
        "text_encode",
        [](receiver_type_ const &self, py::object const &texts, py::object const &arena, py::object const &outputs,
           py::object const &outputs_scalar, py::object const &stats, py::object const &progress) {
            return self.run(std::make_unique<text_encode_call_t>(self.model, texts, arena, outputs, outputs_scalar,
                                                                 stats, progress));
        },
        py::arg("texts"), py::arg("arena"), py::kw_only(), py::arg("outputs") = default_outputs,
        py::arg("outputs_scalar") = scalar_enumeration.member(uform_f32_k), py::arg("stats") = py::none(),
        py::arg("progress") = py::none(),
        "text_encode(self, texts, arena, *, outputs=Outputs.EMBEDDINGS, outputs_scalar=Scalar.F32, stats=None, "
        "progress=None)\n--\n\n"
        "Encodes texts, a byte a token.\n\n"
        "texts: a sequence of str (as UTF-8) and bytes-like objects, gathered with one copy; or a tuple\n"
        "    (data, offsets) of C-contiguous buffers, bytes and `count + 1` uint64, read where they lie.\n"
        "arena: the Arena where outputs land; the views over its former outputs go stale.\n"
        "outputs: the surfaces to keep; what is left out costs nothing and answers None.\n"
        "outputs_scalar: the Scalar that every output lands as.\n"
        "stats: a TextEncodeStats to overwrite when the call succeeds.\n"
        "progress: called with (completed, total) texts; returning False, or raising, stops the call.\n\n"
        "Answers an EncodedBatch: embeddings, an ArenaBuffer of (count, dimensions), rows of unit length, zeros for\n"
        "an empty text; states, a RowsTape of (tokens, hidden); token_vectors, a RowsTape of (tokens, token_width),\n"
        "rows of unit length. A text of more than `context` bytes is truncated, and counted in the stats.\n\n"
        "Raises InvalidArgumentError (a broken tape, by item; a closed executor), MalformedError (a lone surrogate,\n"
        "by item), UnsupportedLayoutError (a buffer that is not contiguous), ArgumentTypeError, UnsupportedError (a\n"
        "model without a token head), ConfigMismatchError (model and executor pinned to different classes),\n"
        "UnknownKindError, ContendedError (arena or executor), CancelledError, OutOfMemoryError.");
    receiver.def(
        "text_choose",
        [](receiver_type_ const &self, py::object const &texts, py::object const &choices, py::object const &arena,
           py::object const &temperature_groups, py::object const &stats, py::object const &progress) {
            return self.run(std::make_unique<text_choose_call_t>(self.model, texts, choices, arena, temperature_groups,
                                                                 stats, progress));
        },
        py::arg("texts"), py::arg("choices"), py::arg("arena"), py::kw_only(),
        py::arg("temperature_groups") = py::none(), py::arg("stats") = py::none(), py::arg("progress") = py::none(),
        "text_choose(self, texts, choices, arena, *, temperature_groups=None, stats=None, progress=None)\n--\n\n"
        "Scores each text's choices, single bytes, through one forward pass: a softmax over them alone, at the\n"
        "calibrated inverse temperature of the text's question type.\n\n"
        "texts, arena, stats, progress: as `text_encode` takes them; a text is truncated at `context - 1` bytes.\n"
        "choices: as many items as texts, each the legal bytes, at least one and none twice; of a str, ASCII alone.\n"
        "temperature_groups: a question type per text, below the model's `choice_temperature_groups`; None: all 0.\n\n"
        "Answers a RowsTape of (choices,) in F32, whatever the weights are: item `i` sums to one, in the order of\n"
        "its choices.\n\n"
        "Raises what `text_encode` does, ShapeMismatchError (as many choices and groups as texts), UnsupportedError\n"
        "(a model without the byte decoder).");
}

} // namespace

void bind_encode(py::module_ &module, receivers_t &receivers, py::object const &default_outputs) {
    py::class_<uform_text_encode_stats_t>(
        module, "TextEncodeStats", py::is_final(),
        "What a call of `text_encode` or `text_choose` did; overwritten by each one that succeeds.")
        .def(py::init([] { return uform_text_encode_stats_t {}; }))
        .def_readonly("truncated_items", &uform_text_encode_stats_t::truncated_items,
                      "Texts of more tokens than the model's `context`, cut at it.")
        .def_readonly("encoded_tokens", &uform_text_encode_stats_t::encoded_tokens,
                      "Tokens that went through the network.")
        .def("__repr__", [](uform_text_encode_stats_t const &self) {
            return py::str("TextEncodeStats(truncated_items={}, encoded_tokens={})")
                .format(self.truncated_items, self.encoded_tokens);
        });

    bind_text_verbs(receivers.model, default_outputs);
    bind_text_verbs(receivers.on, default_outputs);
    bind_text_verbs(receivers.deferred_on, default_outputs);
}

} // namespace uform::python
