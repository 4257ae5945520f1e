/**
 *  A strict reader of JSON (RFC 8259) from memory that is not trusted: a cursor that a caller moves over what it
 *  expects. The first error stays, with its position; every later step fails too. Nesting is bounded, numbers are read
 *  as what the caller asks for, and nothing is allocated but the strings that are asked for.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace uform {

class json_reader_t {
  public:
    explicit json_reader_t(std::string_view text) noexcept : text_(text) {}

    /** Enters an object; then `next_member` until it answers false, reading one value after each key. */
    bool enter_object() noexcept { return enter('{'); }
    bool next_member(std::string &key);
    /** Enters an array; then `next_element` until it answers false, reading one value after each. */
    bool enter_array() noexcept { return enter('['); }
    bool next_element() noexcept;

    bool read_string(std::string &value);
    /** A whole number that is not negative, without a fraction or exponent. */
    bool read_count(uint64_t &value) noexcept;
    bool read_number(double &value) noexcept;
    /** Passes over any value. */
    bool skip_value();
    /** Whether nothing but white space is left; an error otherwise. */
    bool finish() noexcept;

    /** Notes an error of the caller's own, unless there is one already. Answers false. */
    bool fail(char const *reason) noexcept;
    bool failed() const noexcept { return error_ != nullptr; }
    char const *error() const noexcept { return error_ ? error_ : ""; }
    size_t position() const noexcept { return position_; }

  private:
    static constexpr size_t most_depth_k = 32;

    bool enter(char bracket) noexcept;
    bool next(char closing) noexcept;
    void skip_space() noexcept;
    bool literal(std::string_view word) noexcept;
    bool read_escape(std::string &value);
    bool read_unit(uint32_t &unit) noexcept;
    std::string_view read_number_text() noexcept;

    std::string_view text_;
    size_t position_ = 0;
    char const *error_ = nullptr;
    size_t depth_ = 0;
    bool first_[most_depth_k] = {}; /**< Whether the innermost objects and arrays have had no entry yet. */
};

/** Whether bytes are well-formed UTF-8 (Unicode 16, table 3-7). */
bool is_utf8(std::string_view bytes) noexcept;

} // namespace uform
