/** Names and sizes of the public enumerations' members, and the version. */
#include "uform/types.h"

#define UFORM_TEXT_OF(number) #number
#define UFORM_VERSION_TEXT(major, minor, patch) UFORM_TEXT_OF(major) "." UFORM_TEXT_OF(minor) "." UFORM_TEXT_OF(patch)

char const *uform_version(void) {
    return UFORM_VERSION_TEXT(UFORM_VERSION_MAJOR, UFORM_VERSION_MINOR, UFORM_VERSION_PATCH);
}

char const *uform_status_name(int status) {
    switch (status) {
    case uform_success_k: return "SUCCESS";
    case uform_deferred_k: return "DEFERRED";
    case uform_out_of_memory_k: return "OUT_OF_MEMORY";
    case uform_shape_mismatch_k: return "SHAPE_MISMATCH";
    case uform_unsupported_layout_k: return "UNSUPPORTED_LAYOUT";
    case uform_unknown_kind_k: return "UNKNOWN_KIND";
    case uform_io_k: return "IO";
    case uform_device_k: return "DEVICE";
    case uform_malformed_k: return "MALFORMED";
    case uform_internal_k: return "INTERNAL";
    case uform_config_mismatch_k: return "CONFIG_MISMATCH";
    case uform_contended_k: return "CONTENDED";
    case uform_cancelled_k: return "CANCELLED";
    case uform_unsupported_k: return "UNSUPPORTED";
    case uform_invalid_argument_k: return "INVALID_ARGUMENT";
    default: return nullptr;
    }
}

char const *uform_scalar_name(int scalar) {
    switch (scalar) {
    case uform_f32_k: return "F32";
    case uform_bf16_k: return "BF16";
    case uform_e4m3_k: return "E4M3";
    default: return nullptr;
    }
}

size_t uform_scalar_size(int scalar) {
    switch (scalar) {
    case uform_f32_k: return 4;
    case uform_bf16_k: return 2;
    case uform_e4m3_k: return 1;
    default: return 0;
    }
}

char const *uform_mood_name(int mood) {
    switch (mood) {
    case uform_mood_grinding_k: return "GRINDING";
    case uform_mood_chilling_k: return "CHILLING";
    case uform_mood_parked_k: return "PARKED";
    default: return nullptr;
    }
}

char const *uform_cpu_class_name(int cpu_class) {
    switch (cpu_class) {
    case uform_cpu_class_serial_k: return "SERIAL";
    case uform_cpu_class_haswell_k: return "HASWELL";
    case uform_cpu_class_skylake_k: return "SKYLAKE";
    case uform_cpu_class_genoa_k: return "GENOA";
    case uform_cpu_class_sapphire_k: return "SAPPHIRE";
    case uform_cpu_class_neon_k: return "NEON";
    default: return nullptr;
    }
}

char const *uform_gpu_class_name(int gpu_class) {
    switch (gpu_class) {
    case uform_gpu_class_volta_k: return "VOLTA";
    case uform_gpu_class_ampere_k: return "AMPERE";
    case uform_gpu_class_hopper_k: return "HOPPER";
    case uform_gpu_class_blackwell_k: return "BLACKWELL";
    case uform_gpu_class_cdna2_k: return "CDNA2";
    case uform_gpu_class_cdna3_k: return "CDNA3";
    default: return nullptr;
    }
}

char const *uform_modality_name(int modality) {
    switch (modality) {
    case uform_text_k: return "TEXT";
    case uform_image_k: return "IMAGE";
    case uform_video_k: return "VIDEO";
    case uform_audio_k: return "AUDIO";
    default: return nullptr;
    }
}
