/** The tensors of a checkpoint, by name, and how each is brought into the memory that kernels read. */
#pragma once
#include <string>
#include <vector>

#include "model.h"
#include "safetensors.h"

namespace uform {

/** Reads a range of rows of a tensor as F32, refusing numbers that are not finite. */
class rows_reader_t {
  public:
    rows_reader_t(source_t const &source, std::string const &name, tensor_t const &tensor) noexcept
        : source_(source), name_(name), tensor_(tensor) {}

    /** `raw`: room for the rows as stored. Failures are noted on the calling thread. */
    uform_status_t read(size_t row, size_t count, size_t columns, std::byte *raw, float *out) const noexcept;

  private:
    source_t const &source_;
    std::string const &name_;
    tensor_t const &tensor_;
};

/** Where a tensor goes to. */
enum class layout_t {
    plain_k,   /**< F32 as it is. */
    packed_k,  /**< BF16 panels, see kernels/packed.h. */
    gated_k,   /**< The same with gate and up rows interleaved by 16. */
    embeds_k,  /**< F32 with the text modality's row added to each. */
};

/** One tensor to load. */
struct piece_t {
    std::string name;
    char const *scalar = "BF16";
    size_t rows = 1;
    size_t columns = 0;
    bool is_vector = false;     /**< Its shape is [columns], not [rows, columns]. */
    layout_t layout = layout_t::plain_k;
    float *plain = nullptr;     /**< `plain_k`, `embeds_k`: [rows, columns]. */
    bf16_t *data = nullptr;     /**< Packed BF16. */
    e4m3_t *data_e4m3 = nullptr; /**< Packed E4M3. */
    float *scales = nullptr;    /**< E4M3: [padded rows]. */
};

/** Bytes of scratch that a piece needs while it is loaded. */
size_t piece_scratch(piece_t const &piece) noexcept;

/**
 *  Loads one piece. `scratch` has `piece_scratch` bytes, aligned to 64. `embeds_k` needs the modality's row in
 *  `modality`. MALFORMED, IO: noted as the calling thread's failure.
 */
uform_status_t load_piece(source_t const &source, safetensors_t const &header, piece_t const &piece,
                          float const *modality, std::byte *scratch) noexcept;

} // namespace uform
