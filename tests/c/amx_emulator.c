/**
 *  Emulates AMX on machines without it, so that the machine code of the SAPPHIRE kernels is tested everywhere, slowly:
 *  each tile instruction traps as an illegal one, and a signal handler does its work and steps over it.
 *
 *      cc -shared -fPIC -O2 tests/c/amx_emulator.c -o amx_emulator.so -lm
 *      LD_PRELOAD=./amx_emulator.so UFORM_ASSUME_CPU_CLASS=SAPPHIRE program
 *
 *  Tests in C++ include it. Where the processor has AMX, nothing traps, and this does nothing.
 *  What hardware would fault on (a configuration with reserved bits, a tile that is not configured) ends the process.
 *  Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, and its chapter on AMX in volume 1.
 *  Needs the rest of the class, AVX512-BF16 among it, in hardware.
 */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { tiles_k = 8, rows_k = 16, row_bytes_k = 64 };

/** A thread's tiles. `configured` is the palette: 0 after a release. */
typedef struct tiles_t {
    uint8_t configured;
    uint8_t rows[tiles_k];
    uint16_t row_bytes[tiles_k];
    uint8_t data[tiles_k][rows_k][row_bytes_k];
} tiles_t;

static __thread tiles_t tiles __attribute__((tls_model("initial-exec")));

/** One decoded instruction with a three-byte VEX prefix in map 0F38. */
typedef struct instruction_t {
    uint8_t opcode;
    uint8_t prefix;      /**< 0: none, 1: 66, 2: F3, 3: F2. */
    uint8_t is_register; /**< The last operand is a register, not memory. */
    uint8_t reg;
    uint8_t rm;
    uint8_t vvvv; /**< 0 where the encoding names no third register. */
    uint8_t has_sib;
    uint8_t *base;  /**< Memory operand, without the index. */
    int64_t stride; /**< Index register times scale: bytes from row to row. */
    size_t length;
} instruction_t;

static void refuse(char const *reason) {
    fprintf(stderr, "amx_emulator: hardware would fault: %s\n", reason);
    abort();
}

static int64_t general_register(ucontext_t const *context, unsigned number) {
    static int const order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return context->uc_mcontext.gregs[order[number]];
}

/** Answers 0 for what is no AMX instruction. */
static int decode(ucontext_t const *context, instruction_t *out) {
    uint8_t const *const code = (uint8_t const *)context->uc_mcontext.gregs[REG_RIP];
    if (code[0] != 0xc4 || (code[1] & 0x1f) != 2) return 0;
    unsigned const r = (~code[1] >> 7 & 1) << 3, x = (~code[1] >> 6 & 1) << 3, b = (~code[1] >> 5 & 1) << 3;
    if (code[2] & 0x84) return 0; // W and L are zero in all of them.
    out->prefix = code[2] & 3;
    out->vvvv = (uint8_t)(~code[2] >> 3 & 15);
    out->opcode = code[3];
    if (out->opcode != 0x49 && out->opcode != 0x4b && out->opcode != 0x5c) return 0;
    uint8_t const modrm = code[4];
    unsigned const mode = modrm >> 6, rm = modrm & 7;
    out->reg = (uint8_t)((modrm >> 3 & 7) | r);
    out->rm = (uint8_t)(rm | b);
    out->is_register = mode == 3;
    out->has_sib = mode != 3 && rm == 4;
    out->stride = 0;
    out->base = NULL;
    size_t length = 5;
    if (mode != 3) {
        int64_t address = 0;
        int has_displacement_of_4 = mode == 2;
        if (rm == 4) {
            uint8_t const sib = code[length++];
            unsigned const index = (sib >> 3 & 7) | x, base = sib & 7;
            if (index != 4) out->stride = general_register(context, index) * (1 << (sib >> 6));
            if (base == 5 && mode == 0) has_displacement_of_4 = 1;
            else address = general_register(context, base | b);
        }
        else if (rm == 5 && mode == 0) {
            address = (int64_t)(code + length + 4);
            has_displacement_of_4 = 1;
        }
        else address = general_register(context, rm | b);
        if (mode == 1) address += (int8_t)code[length++];
        if (has_displacement_of_4) {
            int32_t displacement;
            memcpy(&displacement, code + length, sizeof(displacement));
            address += displacement;
            length += 4;
        }
        out->base = (uint8_t *)address;
    }
    out->length = length;
    return 1;
}

static void configure(uint8_t const *memory) {
    memset(&tiles, 0, sizeof(tiles));
    if (memory[0] == 0) return;
    if (memory[0] != 1) refuse("LDTILECFG: the palette is not 1");
    for (int i = 1; i != 16; ++i)
        if (memory[i]) refuse("LDTILECFG: start_row or a reserved byte is not zero");
    for (int i = 0; i != 16; ++i) {
        uint16_t row_bytes;
        memcpy(&row_bytes, memory + 16 + 2 * i, sizeof(row_bytes));
        uint8_t const rows = memory[48 + i];
        if (i >= tiles_k) {
            if (rows || row_bytes) refuse("LDTILECFG: a tile above 7 is configured");
            continue;
        }
        if (rows > rows_k || row_bytes > row_bytes_k) refuse("LDTILECFG: a tile is too large");
        if (!rows != !row_bytes) refuse("LDTILECFG: a tile has rows or columns alone");
        tiles.rows[i] = rows;
        tiles.row_bytes[i] = row_bytes;
    }
    tiles.configured = 1;
}

static void store_configuration(uint8_t *memory) {
    memset(memory, 0, row_bytes_k);
    if (!tiles.configured) return;
    memory[0] = tiles.configured;
    memcpy(memory + 16, tiles.row_bytes, sizeof(tiles.row_bytes));
    memcpy(memory + 48, tiles.rows, sizeof(tiles.rows));
}

static void need(unsigned tile) {
    if (!tiles.configured) refuse("a tile is used, but none is configured");
    if (tile >= tiles_k || !tiles.rows[tile]) refuse("a tile is used that is not configured");
}

static float flush(float value) { return fpclassify(value) == FP_SUBNORMAL ? copysignf(0.f, value) : value; }

static float widen(uint8_t const *bf16) {
    uint32_t const bits = (uint32_t)bf16[1] << 24 | (uint32_t)bf16[0] << 16;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return flush(value);
}

/** Even and odd columns have sums of their own, of multiply-adds rounded once, which flush subnormal numbers. */
static void multiply(unsigned out, unsigned left, unsigned right) {
    need(out), need(left), need(right);
    unsigned const rows = tiles.rows[out], columns = tiles.row_bytes[out] / 4, pairs = tiles.row_bytes[left] / 4;
    if (tiles.row_bytes[out] % 4 || tiles.row_bytes[left] % 4) refuse("TDPBF16PS: columns are no pairs");
    if (tiles.rows[left] != rows || tiles.row_bytes[right] != tiles.row_bytes[out] || tiles.rows[right] != pairs)
        refuse("TDPBF16PS: shapes do not fit");
    if (out == left || out == right || left == right) refuse("TDPBF16PS: a tile stands twice");
    for (unsigned m = 0; m != rows; ++m)
        for (unsigned n = 0; n != columns; ++n) {
            float sums[2] = {0, 0}, total;
            for (unsigned k = 0; k != pairs; ++k)
                for (unsigned half = 0; half != 2; ++half)
                    sums[half] = flush(fmaf(widen(tiles.data[left][m] + 4 * k + 2 * half),
                                            widen(tiles.data[right][k] + 4 * n + 2 * half), sums[half]));
            memcpy(&total, tiles.data[out][m] + 4 * n, sizeof(total));
            total = flush(flush(total) + flush(sums[0] + sums[1]));
            memcpy(tiles.data[out][m] + 4 * n, &total, sizeof(total));
        }
}

static void move(instruction_t const *it, int store) {
    if (!it->has_sib) refuse("a tile is moved without an index register's byte");
    need(it->reg);
    for (unsigned row = 0; row != rows_k; ++row) {
        uint8_t *const memory = it->base + it->stride * row;
        if (row < tiles.rows[it->reg]) {
            if (store) memcpy(memory, tiles.data[it->reg][row], tiles.row_bytes[it->reg]);
            else memcpy(tiles.data[it->reg][row], memory, tiles.row_bytes[it->reg]);
        }
        else if (!store) memset(tiles.data[it->reg][row], 0, row_bytes_k);
    }
}

/** Answers 0 for what is no instruction of AMX. */
static int execute(instruction_t const *it) {
    if (it->opcode == 0x5c && it->is_register && it->prefix == 2) multiply(it->reg, it->rm, it->vvvv);
    else if (it->vvvv) return 0;
    else if (it->opcode == 0x49 && !it->is_register && !it->reg && it->prefix == 0) configure(it->base);
    else if (it->opcode == 0x49 && !it->is_register && !it->reg && it->prefix == 1) store_configuration(it->base);
    else if (it->opcode == 0x49 && it->is_register && !it->reg && !it->rm && it->prefix == 0)
        memset(&tiles, 0, sizeof(tiles));
    else if (it->opcode == 0x49 && it->is_register && !it->rm && it->prefix == 3) {
        need(it->reg);
        memset(tiles.data[it->reg], 0, sizeof(tiles.data[it->reg]));
    }
    else if (it->opcode == 0x4b && !it->is_register && (it->prefix == 3 || it->prefix == 1)) move(it, 0);
    else if (it->opcode == 0x4b && !it->is_register && it->prefix == 2) move(it, 1);
    else return 0;
    return 1;
}

static void emulate(int number, siginfo_t *information, void *pointer) {
    (void)information;
    ucontext_t *const context = (ucontext_t *)pointer;
    instruction_t it;
    int const known = decode(context, &it) && execute(&it);
    if (!known) {
        // Somebody else's illegal instruction: let it end the process as it would have.
        signal(number, SIG_DFL);
        return;
    }
    context->uc_mcontext.gregs[REG_RIP] += (greg_t)it.length;
}

__attribute__((constructor)) static void install(void) {
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_sigaction = emulate;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGILL, &action, NULL);
}
