/**
 *  The libraries that hold the decoders, `libuform_images` and `libuform_clips`, which lie beside libuform.
 *  Text works on machines that have none of the system libraries behind them: each is loaded at its first use, and
 *  stays. Thread-safe.
 */
#pragma once
#include "codecs.h"

namespace uform {

/**
 *  The decoders of pictures.
 *  Fails with UNSUPPORTED, noted as the thread's failure, where they cannot be loaded: where a system library is
 *  missing, or where UForm was built without them. A later call tries again.
 */
uform_status_t images_codecs(images_codecs_t const *&codecs) noexcept;

/** The same for videos and recordings. */
uform_status_t clips_codecs(clips_codecs_t const *&codecs) noexcept;

} // namespace uform
