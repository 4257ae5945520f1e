/** Any bytes as a video and as a recording. Seeds: the files of tests/clip_files.py. */
#include <cstdlib>
#include <vector>

#include "media/codecs.h"

using namespace uform;

extern "C" int LLVMFuzzerTestOneInput(uint8_t const *data, size_t length) {
    clips_codecs_t const &codecs = *uform_clips_codecs();
    file_t const file {data, length};
    limits_t limits;
    limits.pixels = 1 << 20, limits.seconds = 600, limits.bytes = 1 << 28;
    sampling_t const sampling {4, 8};
    picture_t const size {17, 9};
    fault_t fault;

    video_t video;
    uform_status_t status = codecs.probe_video(file, limits, sampling, video, fault);
    if (status && (fault.status != status || !fault.message[0])) std::abort();
    if (!status) {
        if (video.frames > sampling.most_frames || !video.picture.width || !video.picture.height) std::abort();
        std::vector<uint8_t> rgb(video.frames * size.width * size.height * 3);
        size_t frames = 0;
        status = codecs.decode_video(file, limits, sampling, size, rgb.data(), frames, fault);
        if (!status && frames > video.frames) std::abort();
    }

    fault = {};
    audio_t audio;
    size_t const most_samples = 1 << 20;
    status = codecs.probe_audio(file, limits, 16000, most_samples, audio, fault);
    if (status && (fault.status != status || !fault.message[0])) std::abort();
    if (!status) {
        if (audio.samples > most_samples) std::abort();
        std::vector<float> samples(audio.samples);
        size_t count = 0;
        status = codecs.decode_audio(file, limits, 16000, most_samples, samples.data(), count, fault);
        if (!status && count > audio.samples) std::abort();
    }
    return 0;
}
