/**
 *  What a clip's bytes tell before a demuxer sees them: the container, and whether all of it is there. Demuxers play
 *  what they find of a truncated file, and ask for memory for the tables that a header claims; both are refused here.
 */
#pragma once
#include "media/codecs.h"

namespace uform {

enum class container_t { mov_k, matroska_k, wav_k, flac_k, mp3_k, ogg_k };

/**
 *  Tells the container by its first bytes, and checks its outermost structure.
 *  MALFORMED for less than the structure says and for tables that the file cannot hold; UNSUPPORTED_LAYOUT for bytes
 *  that start none of the containers.
 */
uform_status_t tell_container(file_t file, container_t &container, fault_t &fault) noexcept;

} // namespace uform
