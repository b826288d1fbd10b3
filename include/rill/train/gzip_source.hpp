#pragma once

#include <rill/core/bytes.hpp>
#include <rill/train/data_error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <zlib.h>

namespace rill { inline namespace RILL_ABI { namespace train {

/// Reads a file from its beginning, and unpacks it if its first two bytes are those of gzip.
///
/// Bytes after the compressed stream and a truncated stream are a `data_error` with the offset in the file. (zlib's own
/// gzread ignores the former and reports the latter late.)
class gzip_source {
  public:
    explicit gzip_source(std::string path) : path_(std::move(path)), file_(std::fopen(path_.c_str(), "rb")) {
        if (!file_) throw data_error(path_, "cannot be opened: " + std::generic_category().message(errno));
        is_packed_ = fill() && stream_.avail_in >= 2 && input_[0] == 0x1F && input_[1] == 0x8B;
        if (is_packed_ && inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
    }
    gzip_source(const gzip_source&) = delete;
    gzip_source& operator=(const gzip_source&) = delete;
    ~gzip_source() {
        if (is_packed_) inflateEnd(&stream_);
    }

    const std::string& path() const { return path_; }
    bool is_packed() const { return is_packed_; }
    /// Unpacked bytes read or skipped so far.
    std::uint64_t offset() const { return offset_; }

    /// An upper bound of the unpacked size of the file: deflate packs at most 1032 to 1.
    std::uint64_t capacity() {
        const long here = std::ftell(file_.get());
        std::fseek(file_.get(), 0, SEEK_END);
        const auto size = static_cast<std::uint64_t>(std::max(std::ftell(file_.get()), 0L));
        std::fseek(file_.get(), here, SEEK_SET);
        return is_packed_ ? size * 1032 : size;
    }

    /// Fills `out`; returns fewer bytes only at the end of the file.
    std::size_t read(byte_span out) {
        std::size_t done = 0;
        while (done < out.size() && !ended_) done += is_packed_ ? unpack(out.subspan(done)) : copy(out.subspan(done));
        offset_ += done;
        return done;
    }

    /// Goes on `count` bytes later, or at the end of the file: at no cost in a plain file; a packed one must be
    /// unpacked up to there.
    void skip(std::uint64_t count) {
        if (!is_packed_) count -= skip_plain(count);
        std::vector<std::byte> scratch(static_cast<std::size_t>(std::min(count, std::uint64_t{1} << 16)));
        while (count > 0 && !ended_)
            count -= read(
                byte_span(scratch).first(static_cast<std::size_t>(std::min<std::uint64_t>(count, scratch.size()))));
    }

  private:
    struct closer {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };

    bool fill() {
        stream_.next_in = input_.data();
        stream_.avail_in = static_cast<uInt>(std::fread(input_.data(), 1, input_.size(), file_.get()));
        consumed_ += stream_.avail_in;
        if (std::ferror(file_.get()) != 0)
            throw data_error(path_, "cannot be read: " + std::generic_category().message(errno));
        return stream_.avail_in > 0;
    }
    std::uint64_t position() const { return consumed_ - stream_.avail_in; }

    std::size_t copy(byte_span out) {
        if (stream_.avail_in == 0 && !fill()) ended_ = true;
        const std::size_t count = std::min(out.size(), std::size_t{stream_.avail_in});
        if (count > 0) std::memcpy(out.data(), stream_.next_in, count);
        stream_.next_in += count;
        stream_.avail_in -= static_cast<uInt>(count);
        return count;
    }

    /// Skips what is read already, then seeks; returns how many bytes, fewer than `count` where the file cannot seek.
    std::uint64_t skip_plain(std::uint64_t count) {
        const std::uint64_t held = std::min<std::uint64_t>(count, stream_.avail_in);
        const std::uint64_t beyond = std::min(count - held, std::max(capacity(), consumed_) - consumed_);
        if (beyond > 0 && std::fseek(file_.get(), static_cast<long>(beyond), SEEK_CUR) != 0) return 0;
        stream_.next_in += held;
        stream_.avail_in -= static_cast<uInt>(held);
        consumed_ += beyond;
        offset_ += held + beyond;
        return held + beyond;
    }

    std::size_t unpack(byte_span out) {
        if (stream_.avail_in == 0 && !fill())
            throw data_error(path_, position(), "the rest of the gzip stream", "the end of the file");
        const std::size_t room = std::min(out.size(), std::size_t{1} << 30);
        stream_.next_out = reinterpret_cast<Bytef*>(out.data());
        stream_.avail_out = static_cast<uInt>(room);
        const int status = inflate(&stream_, Z_NO_FLUSH);
        if (status == Z_MEM_ERROR) throw std::bad_alloc();
        if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END)
            throw data_error(path_, position(), "a valid gzip stream",
                             stream_.msg != nullptr ? stream_.msg : "damaged bytes");
        if (status == Z_STREAM_END) next_member();
        return room - stream_.avail_out;
    }

    // A gzip file may be several streams, one after the other.
    void next_member() {
        if (stream_.avail_in == 0 && !fill())
            ended_ = true;
        else
            inflateReset(&stream_);
    }

    std::string path_;
    std::unique_ptr<std::FILE, closer> file_;
    std::vector<Bytef> input_ = std::vector<Bytef>(std::size_t{1} << 16);
    z_stream stream_{};
    std::uint64_t consumed_ = 0;
    std::uint64_t offset_ = 0;
    bool is_packed_ = false;
    bool ended_ = false;
};

}}}  // namespace rill::RILL_ABI::train
