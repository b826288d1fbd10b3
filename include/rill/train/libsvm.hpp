// The text format of LIBSVM and svmlight: a sample per line, its label and its features that are not 0, such as
// "+1 3:0.5 17:1".
#pragma once

#include <rill/core/bytes.hpp>
#include <rill/core/contract.hpp>
#include <rill/core/segment.hpp>
#include <rill/core/types.hpp>
#include <rill/train/data_error.hpp>
#include <rill/train/gzip_source.hpp>
#include <rill/train/sparse_dataset.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace rill { inline namespace RILL_ABI { namespace train {

/// The options of `read_libsvm`.
struct libsvm_options {
    std::size_t columns = 0;        ///< of all ranks' lines together; 0: as many as this rank's lines need
    std::uint32_t first_index = 1;  ///< how the file numbers the first column
};

namespace detail {

/// Reads a file, plain or gzip, line by line. Memory: twice the longest line, at least 128 KiB.
class line_source {
  public:
    explicit line_source(const std::string& path) : source_(path), buffer_(std::size_t{1} << 16) {}

    /// Starts at the first line that begins at `offset` or later; to be called first.
    void start_at(std::uint64_t offset) {
        if (offset == 0) return;
        source_.skip(offset - 1);
        next_ = source_.offset();
        std::string_view rest;
        next(rest);
    }

    /// The next line without its newline; valid until the next call. False at the end of the file.
    bool next(std::string_view& line) {
        begin_ = next_;
        for (std::size_t searched = 0;;) {
            const char* const from = buffer_.data() + at_;
            const void* const found = std::memchr(from + searched, '\n', end_ - at_ - searched);
            if (found != nullptr)
                return take(line, static_cast<std::size_t>(static_cast<const char*>(found) - from), 1);
            searched = end_ - at_;
            if (!fill()) return searched > 0 && take(line, searched, 0);
        }
    }

    /// Where the line that `next` has given begins, and where the next one does, in unpacked bytes.
    std::uint64_t begin() const { return begin_; }
    std::uint64_t next_begin() const { return next_; }

  private:
    bool take(std::string_view& line, std::size_t size, std::size_t newline) {
        line = {buffer_.data() + at_, size};
        at_ += size + newline;
        next_ += size + newline;
        return true;
    }

    bool fill() {
        std::memmove(buffer_.data(), buffer_.data() + at_, end_ - at_);
        end_ -= std::exchange(at_, 0);
        if (2 * end_ > buffer_.size()) buffer_.resize(2 * buffer_.size());
        const std::size_t got = source_.read(std::as_writable_bytes(std::span(buffer_).subspan(end_)));
        end_ += got;
        return got > 0;
    }

    gzip_source source_;
    std::vector<char> buffer_;
    std::size_t at_ = 0, end_ = 0;
    std::uint64_t begin_ = 0, next_ = 0;
};

/// Where the lines begin that belong to `rank`.
inline segment libsvm_range(const std::string& path, rank_t rank, int size) {
    if (size == 1) return {0, std::numeric_limits<std::size_t>::max()};
    gzip_source whole(path);
    whole.skip(std::numeric_limits<std::uint64_t>::max());
    return split(static_cast<std::size_t>(whole.offset()), static_cast<std::size_t>(size),
                 static_cast<std::size_t>(rank));
}

/// The number of the line that begins at `offset`, from 1.
inline std::uint64_t line_number(const std::string& path, std::uint64_t offset) {
    line_source lines(path);
    std::uint64_t number = 1;
    for (std::string_view line; lines.next_begin() < offset && lines.next(line);) ++number;
    return number;
}

/// Reads one line.
class libsvm_line {
  public:
    /// What is wrong with a line, and where.
    struct problem {
        std::size_t column;
        std::string expected, found;
    };

    libsvm_line(std::string_view text, const libsvm_options& options) : text_(text), options_(&options) {}

    /// Whether there is a sample on the line.
    bool has_sample() {
        skip_blanks();
        return !at_end();
    }

    /// Appends the sample. Throws `problem`.
    void read(sparse_dataset& to) {
        to.labels.push_back(number("a label"));
        require_blank("a blank behind the label");
        std::uint64_t least = 0;
        for (skip_blanks(); !at_end(); skip_blanks()) {
            const std::uint32_t column = read_column(least);
            least = std::uint64_t{column} + 1;
            to.columns = std::max(to.columns, static_cast<std::size_t>(least));
            to.indices.push_back(column);
            read_value(to);
        }
        to.starts.push_back(to.indices.size());
        ++to.rows;
    }

  private:
    static constexpr std::string_view blanks = " \t\r";

    bool at_end() const { return at_ == text_.size() || text_[at_] == '#'; }
    bool at_blank() const { return at_end() || blanks.find(text_[at_]) != blanks.npos; }
    void skip_blanks() {
        while (!at_end() && at_blank()) ++at_;
    }

    [[noreturn]] void fail(std::size_t at, std::string expected) const {
        std::string found;
        for (std::size_t i = at; i < text_.size() && blanks.find(text_[i]) == blanks.npos && found.size() < 40; ++i)
            found += text_[i] < ' ' || text_[i] > '~' ? '?' : text_[i];
        throw problem{at + 1, std::move(expected), found.empty() ? "the end of the line" : "\"" + found + "\""};
    }
    void require_blank(const char* expected) const {
        if (!at_blank()) fail(at_, expected);
    }

    template <class N>
    std::errc parse(N& value) {
        const char* const end = text_.data() + text_.size();
        const auto [stop, error] = std::from_chars(text_.data() + at_, end, value);
        at_ = static_cast<std::size_t>(stop - text_.data());
        return error;
    }

    /// Whether a number that no float holds is too large, not too small.
    static bool is_large(std::string_view number) {
        const std::size_t exponent_at = std::min(number.find_first_of("eE"), number.size());
        const std::string_view digits = number.substr(0, exponent_at);
        const auto point = static_cast<std::ptrdiff_t>(std::min(digits.find('.'), digits.size()));
        const auto first = static_cast<std::ptrdiff_t>(digits.find_first_of("123456789"));
        std::int32_t exponent = 0;
        std::string_view rest = number.substr(std::min(exponent_at + 1, number.size()));
        if (rest.starts_with('+')) rest.remove_prefix(1);
        if (std::from_chars(rest.data(), rest.data() + rest.size(), exponent).ec == std::errc::result_out_of_range)
            return !rest.starts_with('-');
        return point - first + exponent > 0;
    }

    /// `what`: "a label" or "a value".
    float number(const std::string& what) {
        const std::size_t begin = at_;
        if (!at_end() && text_[at_] == '+' && (at_ + 1 == text_.size() || text_[at_ + 1] != '-')) ++at_;
        const std::size_t first = at_;
        float value = 0;
        const std::errc error = parse(value);
        if (error == std::errc::result_out_of_range) {
            if (is_large(text_.substr(first, at_ - first)))
                fail(begin, what + " that a float holds (this one is too large)");
            return text_[first] == '-' ? -0.0F : 0.0F;
        }
        if (error != std::errc() || !std::isfinite(value)) fail(begin, what + " (a finite number)");
        return value;
    }

    std::uint32_t read_column(std::uint64_t least) {
        const std::size_t begin = at_;
        const std::uint64_t first = options_->first_index;
        const std::uint64_t most =
            options_->columns != 0 ? options_->columns : std::numeric_limits<std::uint32_t>::max();
        std::uint64_t index = 0;
        if (parse(index) != std::errc()) fail(begin, "the number of a column");
        if (index < first + least || index - first >= most)
            fail(begin, "a column from " + std::to_string(first + least) + " to " + std::to_string(first + most - 1) +
                            (least > 0 ? " (columns ascend)" : ""));
        return static_cast<std::uint32_t>(index - first);
    }

    void read_value(sparse_dataset& to) {
        float value = 1;
        if (at_ < text_.size() && text_[at_] == ':') {
            ++at_;
            value = number("a value");
        }
        require_blank("\":\" and a value, or a blank, behind the column");
        if (value != 1 && to.values.empty()) to.values.assign(to.indices.size() - 1, 1.0F);
        if (value != 1 || !to.values.empty()) to.values.push_back(value);
    }

    std::string_view text_;
    const libsvm_options* options_;
    std::size_t at_ = 0;
};

}  // namespace detail

/// Reads the share of `rank` of a text file in LIBSVM's format, plain or gzip.
///
/// A line holds a label and pairs `column:value` whose columns ascend; `column` alone stands for `column:1`. What
/// follows a `#` is a comment. A number too small for a float is 0; one that is too large is an error. A line belongs
/// to the rank in whose part `split(bytes, size, rank)` of the unpacked file it begins, so each line belongs to one
/// rank, and a packed file is divided as the plain one. If all values are 1, the dataset holds none. Where
/// `options.columns` is 0, ranks may find different numbers of columns: give all of them the largest (`all_reduce` with
/// `aggregate::max`).
///
/// Cost: a rank reads its own part of a plain file. A gzip file has no places to begin at: with several ranks, each of
/// them unpacks all of it to learn its size, and then again from the beginning to the end of its own part. Memory: the
/// dataset, while it grows up to three times as much, and the longest line.
/// Errors: `data_error`, which names the file, the line and the column; nothing is known of the lines of other ranks.
inline sparse_dataset read_libsvm(const std::string& path, rank_t rank = 0, int size = 1,
                                  const libsvm_options& options = {}) {
    RILL_EXPECTS(size > 0 && rank >= 0 && rank < size, "read_libsvm: a rank of the group");
    RILL_EXPECTS(options.columns <= std::numeric_limits<std::uint32_t>::max(), "read_libsvm: columns of 32 bits");
    const segment own = detail::libsvm_range(path, rank, size);
    detail::line_source lines(path);
    lines.start_at(own.begin);
    sparse_dataset data;
    for (std::string_view text; lines.next_begin() < own.end && lines.next(text);) {
        detail::libsvm_line line(text, options);
        if (!line.has_sample()) continue;
        try {
            line.read(data);
        } catch (const detail::libsvm_line::problem& wrong) {
            throw data_error(path,
                             "line " + std::to_string(detail::line_number(path, lines.begin())) + ", column " +
                                 std::to_string(wrong.column),
                             wrong.expected, wrong.found);
        }
    }
    if (options.columns != 0) data.columns = options.columns;
    return data;
}

}}}  // namespace rill::RILL_ABI::train
