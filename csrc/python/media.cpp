/** The media verbs of `uform/encode.h`. */
#include "uform/encode.h"

#include <cstring>
#include <string>
#include <vector>

#include "buffers.h"
#include "call.h"
#include "enumerations.h"
#include "media_inputs.h"
#include "outputs.h"

namespace uform::python {
namespace {

/** What Python's stats classes hold: the library's numbers, and the items that were skipped. */
template <typename numbers_type_> struct media_stats_t {
    numbers_type_ numbers {};
    std::vector<size_t> items; /**< As many as `faults`. */
    std::vector<uform_item_fault_t> faults;
};

using image_stats_t = media_stats_t<uform_image_encode_stats_t>;
using video_stats_t = media_stats_t<uform_video_encode_stats_t>;
using audio_stats_t = media_stats_t<uform_audio_encode_stats_t>;

template <typename stats_type_> constexpr char const *stats_name_k = nullptr;
template <> constexpr char const *stats_name_k<image_stats_t> = "ImageEncodeStats";
template <> constexpr char const *stats_name_k<video_stats_t> = "VideoEncodeStats";
template <> constexpr char const *stats_name_k<audio_stats_t> = "AudioEncodeStats";

uform_media_limits_t limits_argument(py::handle object) {
    if (object.is_none()) return {};
    if (!py::isinstance(object, py::module_::import("uform.encode").attr("MediaLimits")))
        raise_type(UFORM_NO_ITEM, "limits: a uform.MediaLimits is needed, not %s", type_name(object));
    return {size_argument(object.attr("pixels"), "limits.pixels"),
            size_argument(object.attr("seconds"), "limits.seconds"),
            size_argument(object.attr("bytes"), "limits.bytes")};
}

/** What the calls of all media verbs have in common. */
template <typename stats_type_> class media_call_t : public call_t {
  public:
    media_call_t(model_handle_t model, py::handle arena, py::handle outputs, py::handle scalar, py::object stats,
                 py::object handler)
        : call_t(std::move(model), argument<arena_t>(arena, "arena", "Arena").handle, std::move(handler)),
          outputs_(outputs, scalar), stats_object_(std::move(stats)) {
        if (!stats_object_.is_none())
            stats_target_ = &argument<stats_type_>(stats_object_, "stats", stats_name_k<stats_type_>);
    }

    void publish_stats() noexcept override {
        if (!stats_target_) return;
        // Only the faults of items that were skipped stay. Nothing is allocated, so that nothing can fail.
        size_t skipped = 0;
        for (size_t item = 0; item != stats_.faults.size(); ++item) {
            if (stats_.faults[item].status == uform_success_k) continue;
            stats_.items[skipped] = item;
            stats_.faults[skipped++] = stats_.faults[item];
        }
        stats_.items.resize(skipped);
        stats_.faults.resize(skipped);
        stats_.items.shrink_to_fit();
        stats_.faults.shrink_to_fit();
        std::swap(*stats_target_, stats_);
    }

    py::object result() override { return outputs_.result(arena_); }

  protected:
    /** Fills in what the argument structures of all media verbs share. */
    template <typename arguments_type_>
    void fill(arguments_type_ &arguments, uform_executor_t *executor, uform_outcome_t **completion) noexcept {
        fill_call(arguments, executor, completion);
        outputs_.fill(arguments);
        arguments.stats = &stats_.numbers;
    }

    void skip_malformed(size_t count) {
        if (!stats_target_)
            raise(uform_invalid_argument_k, UFORM_NO_ITEM,
                  "skip_malformed: stats have to be given as well, since they tell which items were skipped: "
                  "stats=uform.%s()",
                  stats_name_k<stats_type_>);
        stats_.items.resize(count);
        stats_.faults.resize(count);
    }
    /** Where the library says why it skipped an item; NULL where it is not to skip any. */
    uform_item_fault_t *faults() noexcept { return stats_.faults.empty() ? nullptr : stats_.faults.data(); }

  private:
    outputs_t outputs_;
    py::object stats_object_;
    stats_type_ *stats_target_ = nullptr; /**< Inside of the object, if any. */
    stats_type_ stats_;
};

template <typename stats_type_, typename arguments_type_,
          uform_status_t (*encode_)(uform_model_t const *, arguments_type_ const *)>
class files_call_t final : public media_call_t<stats_type_> {
  public:
    files_call_t(model_handle_t model, py::handle files, py::handle arena, py::handle outputs, py::handle scalar,
                 py::handle limits, py::handle skip_malformed, py::object stats, py::object handler)
        : media_call_t<stats_type_>(std::move(model), arena, outputs, scalar, std::move(stats), std::move(handler)),
          files_(files, "files", batch_contents_t::files_k), limits_(limits_argument(limits)) {
        if (!PyBool_Check(skip_malformed.ptr()))
            raise_type(UFORM_NO_ITEM, "skip_malformed: a bool is needed, not %s", type_name(skip_malformed));
        if (skip_malformed.ptr() == Py_True) this->skip_malformed(files_.tape().count);
    }

    uform_status_t submit(uform_executor_t *executor, uform_outcome_t **completion) noexcept override {
        arguments_type_ arguments {};
        this->fill(arguments, executor, completion);
        arguments.files = files_.tape();
        arguments.limits = limits_;
        arguments.faults = this->faults();
        return encode_(this->model_.get(), &arguments);
    }

  private:
    batch_input_t files_;
    uform_media_limits_t limits_;
};

using image_files_call_t = files_call_t<image_stats_t, uform_image_encode_t, uform_image_encode>;
using video_files_call_t = files_call_t<video_stats_t, uform_video_encode_t, uform_video_encode>;
using audio_files_call_t = files_call_t<audio_stats_t, uform_audio_encode_t, uform_audio_encode>;

class pixels_call_t final : public media_call_t<image_stats_t> {
  public:
    pixels_call_t(model_handle_t model, py::handle pixels, py::handle arena, py::handle outputs, py::handle scalar,
                  py::object stats, py::object handler)
        : media_call_t(std::move(model), arena, outputs, scalar, std::move(stats), std::move(handler)),
          pixels_(pixels) {}

    uform_status_t submit(uform_executor_t *executor, uform_outcome_t **completion) noexcept override {
        uform_image_encode_pixels_t arguments {};
        fill(arguments, executor, completion);
        arguments.pixels = pixels_.items().data();
        arguments.count = pixels_.items().size();
        return uform_image_encode_pixels(model_.get(), &arguments);
    }

  private:
    pixels_input_t pixels_;
};

class samples_call_t final : public media_call_t<audio_stats_t> {
  public:
    samples_call_t(model_handle_t model, py::handle samples, py::handle sample_rate, py::handle arena,
                   py::handle outputs, py::handle scalar, py::object stats, py::object handler)
        : media_call_t(std::move(model), arena, outputs, scalar, std::move(stats), std::move(handler)),
          samples_(samples), sample_rate_(size_argument(sample_rate, "sample_rate")) {
        if (sample_rate_ > UINT32_MAX)
            raise(uform_invalid_argument_k, UFORM_NO_ITEM, "sample_rate: %zu Hz is more than any recording has",
                  sample_rate_);
    }

    uform_status_t submit(uform_executor_t *executor, uform_outcome_t **completion) noexcept override {
        uform_audio_encode_samples_t arguments {};
        fill(arguments, executor, completion);
        arguments.samples = samples_.items().data();
        arguments.count = samples_.items().size();
        arguments.sample_rate = static_cast<uint32_t>(sample_rate_);
        return uform_audio_encode_samples(model_.get(), &arguments);
    }

  private:
    samples_input_t samples_;
    size_t sample_rate_;
};

template <typename call_type_, typename receiver_type_>
void bind_files_verb(py::class_<receiver_type_> &receiver, py::object const &default_outputs, char const *name,
                     char const *documentation) {
    receiver.def(
        name,
        [](receiver_type_ const &self, py::object const &files, py::object const &arena, py::object const &outputs,
           py::object const &outputs_scalar, py::object const &limits, py::object const &skip_malformed,
           py::object const &stats, py::object const &progress) {
            return self.run(std::make_unique<call_type_>(self.model, files, arena, outputs, outputs_scalar, limits,
                                                         skip_malformed, stats, progress));
        },
        py::arg("files"), py::arg("arena"), py::kw_only(), py::arg("outputs") = default_outputs,
        py::arg("outputs_scalar") = scalar_enumeration.member(uform_f32_k), py::arg("limits") = py::none(),
        py::arg("skip_malformed") = false, py::arg("stats") = py::none(), py::arg("progress") = py::none(),
        documentation);
}

template <typename receiver_type_>
void bind_media_verbs(py::class_<receiver_type_> &receiver, py::object const &default_outputs) {
    bind_files_verb<image_files_call_t>(
        receiver, default_outputs, "image_encode",
        "image_encode(self, files, arena, *, outputs=Outputs.EMBEDDINGS, outputs_scalar=Scalar.F32, limits=None, "
        "skip_malformed=False, stats=None, progress=None)\n--\n\n"
        "Decodes and encodes pictures: JPEG, PNG and WebP, told apart by their bytes.\n\n"
        "They are encoded as a viewer shows them: upright, over white, the first frame of an animation.\n\n"
        "files: a sequence of bytes-like objects, each a whole file, gathered with one copy; or a tuple\n"
        "    (data, offsets) of C-contiguous buffers, bytes and `count + 1` uint64, read where they lie.\n"
        "limits: a MediaLimits, what an item may take at the most; None: its defaults.\n"
        "skip_malformed: have an item that cannot be decoded get an embedding of zeros, no states and no token\n"
        "    vectors, and list it in the stats, which are then needed; otherwise the first one fails the call.\n"
        "stats: an ImageEncodeStats to overwrite when the call succeeds.\n"
        "arena, outputs, outputs_scalar, progress: as `text_encode` takes them.\n\n"
        "Answers an EncodedBatch, as `text_encode`: a token is a square of the picture, row by row.\n\n"
        "Raises MalformedError (broken, cut short, or over a limit) and UnsupportedLayoutError (another format; a\n"
        "buffer that is not contiguous), by item, UnsupportedError (a model that takes no pictures; a machine\n"
        "without the libraries that decode them), and what `text_encode` does.");
    receiver.def(
        "image_encode_pixels",
        [](receiver_type_ const &self, py::object const &pixels, py::object const &arena, py::object const &outputs,
           py::object const &outputs_scalar, py::object const &stats, py::object const &progress) {
            return self.run(
                std::make_unique<pixels_call_t>(self.model, pixels, arena, outputs, outputs_scalar, stats, progress));
        },
        py::arg("pixels"), py::arg("arena"), py::kw_only(), py::arg("outputs") = default_outputs,
        py::arg("outputs_scalar") = scalar_enumeration.member(uform_f32_k), py::arg("stats") = py::none(),
        py::arg("progress") = py::none(),
        "image_encode_pixels(self, pixels, arena, *, outputs=Outputs.EMBEDDINGS, outputs_scalar=Scalar.F32, "
        "stats=None, progress=None)\n--\n\n"
        "Encodes pictures that are in memory, sRGB.\n\n"
        "pixels: a sequence of C-contiguous [height, width, 3] uint8 buffers, each of its own size, or one\n"
        "    [count, height, width, 3]; read where they lie, without a copy.\n"
        "stats: an ImageEncodeStats to overwrite when the call succeeds.\n"
        "arena, outputs, outputs_scalar, progress: as `text_encode` takes them.\n\n"
        "Answers an EncodedBatch, as `image_encode`.\n\n"
        "Raises ShapeMismatchError (another rank, channels that are not the last axis or not three, no pixel) and\n"
        "UnsupportedLayoutError (another type of numbers, not C-contiguous), by item, ArgumentTypeError (no buffer),\n"
        "UnsupportedError (a model that takes no pictures), and what `text_encode` does.");
    bind_files_verb<video_files_call_t>(
        receiver, default_outputs, "video_encode",
        "video_encode(self, files, arena, *, outputs=Outputs.EMBEDDINGS, outputs_scalar=Scalar.F32, limits=None, "
        "skip_malformed=False, stats=None, progress=None)\n--\n\n"
        "Decodes and encodes videos: MP4 and WebM, told apart by their bytes.\n\n"
        "Frames are taken at the model's rate, by the time at which they are shown, upright. A video with more\n"
        "frames than the model takes is truncated, and counted in the stats.\n\n"
        "stats: a VideoEncodeStats to overwrite when the call succeeds.\n"
        "All else is as `image_encode` takes it. A token is a square of some frames on end.\n\n"
        "Raises what `image_encode` does, of a model that takes no videos.");
    bind_files_verb<audio_files_call_t>(
        receiver, default_outputs, "audio_encode",
        "audio_encode(self, files, arena, *, outputs=Outputs.EMBEDDINGS, outputs_scalar=Scalar.F32, limits=None, "
        "skip_malformed=False, stats=None, progress=None)\n--\n\n"
        "Decodes and encodes recordings: WAV, FLAC, MP3 and Opus, told apart by their bytes.\n\n"
        "What is encoded is the mean of the channels, resampled to the model's rate, without the encoder's delay\n"
        "and padding. A recording of more than `context` tokens is truncated, and counted in the stats; one without\n"
        "a sample has an embedding of zeros.\n\n"
        "stats: an AudioEncodeStats to overwrite when the call succeeds.\n"
        "All else is as `image_encode` takes it. A token is a fraction of a second.\n\n"
        "Raises what `image_encode` does, of a model that takes no recordings.");
    receiver.def(
        "audio_encode_samples",
        [](receiver_type_ const &self, py::object const &samples, py::object const &sample_rate,
           py::object const &arena, py::object const &outputs, py::object const &outputs_scalar,
           py::object const &stats, py::object const &progress) {
            return self.run(std::make_unique<samples_call_t>(self.model, samples, sample_rate, arena, outputs,
                                                             outputs_scalar, stats, progress));
        },
        py::arg("samples"), py::arg("sample_rate"), py::arg("arena"), py::kw_only(),
        py::arg("outputs") = default_outputs, py::arg("outputs_scalar") = scalar_enumeration.member(uform_f32_k),
        py::arg("stats") = py::none(), py::arg("progress") = py::none(),
        "audio_encode_samples(self, samples, sample_rate, arena, *, outputs=Outputs.EMBEDDINGS, "
        "outputs_scalar=Scalar.F32, stats=None, progress=None)\n--\n\n"
        "Encodes recordings that are in memory, mono, in [-1, 1].\n\n"
        "samples: a sequence of C-contiguous 1-D float32 buffers, each of its own length, or one [count, samples];\n"
        "    read where they lie, without a copy.\n"
        "sample_rate: of all of them, in Hz, from 1,000 to 768,000; they are resampled to the model's.\n"
        "stats: an AudioEncodeStats to overwrite when the call succeeds.\n"
        "arena, outputs, outputs_scalar, progress: as `text_encode` takes them.\n\n"
        "Answers an EncodedBatch, as `audio_encode`.\n\n"
        "Raises InvalidArgumentError (the rate), MalformedError (a sample that is infinite or not a number),\n"
        "ShapeMismatchError (another rank, as of stereo) and UnsupportedLayoutError (another type of numbers, not\n"
        "C-contiguous), by item, ArgumentTypeError (no buffer), UnsupportedError (a model that takes no recordings),\n"
        "and what `text_encode` does.");
}

/** A fresh list of `MalformedItem`, by item. */
template <typename stats_type_> py::list malformed_of(stats_type_ const &stats) {
    py::object const item_class = py::module_::import("uform.encode").attr("MalformedItem");
    py::list malformed;
    for (size_t index = 0; index != stats.faults.size(); ++index) {
        uform_item_fault_t const &fault = stats.faults[index];
        // A message that is cut may end in the middle of a character.
        auto const message = py::reinterpret_steal<py::object>(
            PyUnicode_DecodeUTF8(fault.message, static_cast<Py_ssize_t>(std::strlen(fault.message)), "replace"));
        if (!message) throw py::error_already_set();
        malformed.append(item_class(stats.items[index], status_enumeration.member(fault.status), message));
    }
    return malformed;
}

/** Adds a stats class; `truncated`, `skipped` and `decoded` document its fields. */
template <typename stats_type_>
py::class_<stats_type_> bind_stats(py::module_ &module, char const *verbs, char const *truncated, char const *skipped,
                                   char const *decoded) {
    return py::class_<stats_type_>(module, stats_name_k<stats_type_>, py::is_final(), verbs)
        .def(py::init([] { return stats_type_ {}; }))
        .def_property_readonly(
            "truncated_items", [](stats_type_ const &self) { return self.numbers.truncated_items; }, truncated)
        .def_property_readonly(
            "encoded_tokens", [](stats_type_ const &self) { return self.numbers.encoded_tokens; },
            "Tokens that went through the network.")
        .def_property_readonly(
            "malformed_items", [](stats_type_ const &self) { return self.numbers.malformed_items; }, skipped)
        .def_property_readonly(
            "decoded_bytes", [](stats_type_ const &self) { return self.numbers.decoded_bytes; }, decoded)
        .def_property_readonly("malformed", malformed_of<stats_type_>,
                               "The items that were skipped, and why: a list of MalformedItem, in order of the items.");
}

/** The shared start of the stats' `__repr__`. */
template <typename stats_type_> std::string start_of(stats_type_ const &self) {
    auto const &numbers = self.numbers;
    return std::string(stats_name_k<stats_type_>) + "(truncated_items=" + std::to_string(numbers.truncated_items) +
           ", encoded_tokens=" + std::to_string(numbers.encoded_tokens) +
           ", malformed_items=" + std::to_string(numbers.malformed_items) +
           ", decoded_bytes=" + std::to_string(numbers.decoded_bytes);
}

} // namespace

void bind_media(py::module_ &module, receivers_t &receivers, py::object const &default_outputs) {
    bind_stats<image_stats_t>(
        module, "What a call of `image_encode` or `image_encode_pixels` did; overwritten by each one that succeeds.",
        "Always 0: a picture is resized until it fits.", "Pictures that were skipped: see `malformed`.",
        "Bytes of the files, or of the pixels, that were encoded.")
        .def("__repr__", [](image_stats_t const &self) { return start_of(self) + ")"; });
    bind_stats<video_stats_t>(module, "What a call of `video_encode` did; overwritten by each one that succeeds.",
                              "Videos with more frames than the model takes, cut there.",
                              "Videos that were skipped: see `malformed`.", "Bytes of the files that were encoded.")
        .def_property_readonly(
            "encoded_frames", [](video_stats_t const &self) { return self.numbers.encoded_frames; },
            "Frames that were sampled.")
        .def("__repr__", [](video_stats_t const &self) {
            return start_of(self) + ", encoded_frames=" + std::to_string(self.numbers.encoded_frames) + ")";
        });
    bind_stats<audio_stats_t>(
        module, "What a call of `audio_encode` or `audio_encode_samples` did; overwritten by each one that succeeds.",
        "Recordings of more tokens than the model's `context`, cut at it.",
        "Recordings that were skipped: see `malformed`.", "Bytes of the files, or of the samples, that were encoded.")
        .def_property_readonly(
            "encoded_seconds", [](audio_stats_t const &self) { return self.numbers.encoded_seconds; },
            "Seconds of sound that were encoded.")
        .def("__repr__", [](audio_stats_t const &self) {
            return start_of(self) +
                   ", encoded_seconds=" + py::str(py::float_(self.numbers.encoded_seconds)).cast<std::string>() + ")";
        });

    bind_media_verbs(receivers.model, default_outputs);
    bind_media_verbs(receivers.on, default_outputs);
    bind_media_verbs(receivers.deferred_on, default_outputs);
}

} // namespace uform::python
