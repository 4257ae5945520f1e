/** Writes the corpus that `fuzz_safetensors` starts from: `fuzz_seeds DIRECTORY`. */
#include <cstdio>

#include "checkpoint.h"

static bool write_seed(std::string const &directory, char const *name, std::string const &bytes) {
    std::FILE *file = std::fopen((directory + "/" + name).c_str(), "wb");
    if (!file) return false;
    bool const is_whole = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
    return std::fclose(file) == 0 && is_whole;
}

int main(int argument_count, char **arguments) {
    if (argument_count != 2) return std::fputs("usage: fuzz_seeds DIRECTORY\n", stderr), 2;
    std::string const directory = arguments[1];
    sizes_t const least {.depth = 1, .hidden = 32, .dimensions = 1, .token_width = 0, .choice_temperature_groups = 0};
    checkpoint_t const plain(least);
    checkpoint_t full(sizes_t {.depth = 1, .hidden = 32, .dimensions = 33, .context = 2});
    full.add("embed.image", {32, 12});
    full.config.insert(full.config.size() - 1, R"(,"rotary_base":1e4,"norm_epsilon":1.5E-6,"local_window":4,)"
                                               R"("global_every":2,"image":{"a":[true,null,{"b":-1}]})");
    checkpoint_t header_only;
    header_only.tensors = {
        {"a", {"U8", {3}, "abc"}}, {"b\\u0062\\n", {"F32", {1, 1}, "wxyz"}}, {"c", {"I64", {0}, ""}}};
    bool const done = write_seed(directory, "plain", plain.file()) && write_seed(directory, "full", full.file()) &&
                      write_seed(directory, "odd", full.file() + "x") && write_seed(directory, "config", full.config) &&
                      write_seed(directory, "header", header_only.file());
    return done ? 0 : (std::perror(directory.c_str()), 1);
}
