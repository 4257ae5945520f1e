#include "media/clips/audio.h"
#include "media/clips/resampler.h"
#include "media/clips/video.h"

extern "C" uform::clips_codecs_t const *uform_clips_codecs(void) noexcept {
    static constexpr uform::clips_codecs_t codecs = {uform::probe_video, uform::decode_video, uform::probe_audio,
                                                     uform::decode_audio, uform::resample};
    return &codecs;
}
