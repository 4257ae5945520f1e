/** One tensor of a checkpoint on its way from the file into the memory that kernels read. */
#pragma once
#include <string>

#include "model.h"
#include "safetensors.h"

namespace uform {

/** How a tensor lies in the model's memory. */
enum class placement_t {
    plain_k,  /**< F32, as it is. */
    packed_k, /**< Panels, see kernels/packed.h. */
    gated_k,  /**< The same, 16 of the first half's rows and 16 of the second half's by turns. */
    embeds_k, /**< F32, with the text modality's row added to each row. */
};

/** A tensor that a model needs, and where it goes to. */
struct piece_t {
    std::string name;
    char const *scalar = "BF16"; /**< Or "F32", for `plain_k` alone. */
    size_t rows = 1;
    size_t columns = 0;
    bool is_vector = false; /**< Its shape is [columns], not [rows, columns]. */
    placement_t placement = placement_t::plain_k;
    float *plain = nullptr;      /**< `plain_k`, `embeds_k`: [rows, columns]. */
    bf16_t *data = nullptr;      /**< Packed as BF16. */
    e4m3_t *data_e4m3 = nullptr; /**< Packed as E4M3, a scale of the largest magnitude / 448 a row. */
    float *scales = nullptr;     /**< E4M3: [padded rows]. */
};

/** Bytes of scratch that loading a piece takes. */
size_t piece_scratch(piece_t const &piece) noexcept;

/**
 *  Loads a piece whose shape and scalar are the tensor's, padding included; the memory may hold anything before.
 *  `scratch`: `piece_scratch` bytes aligned to 64. `modality`: the row that `embeds_k` adds, [columns].
 *  MALFORMED (a number that is not finite, a file that became shorter) or IO, noted as the thread's failure.
 */
uform_status_t load_piece(source_t const &source, tensor_t const &tensor, piece_t const &piece, float const *modality,
                          std::byte *scratch) noexcept;

} // namespace uform
