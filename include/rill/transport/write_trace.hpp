#pragma once

#include <rill/core/config.hpp>
#include <rill/core/time.hpp>
#include <rill/core/types.hpp>
#include <rill/transport/detail/trace_arrows.hpp>
#include <rill/transport/detail/trace_tracks.hpp>
#include <rill/transport/trace_log.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace rill { inline namespace RILL_ABI {

namespace detail {

inline void append_quoted(std::string& out, const char* text) {
    constexpr char digits[] = "0123456789abcdef";
    out += '"';
    for (; *text != '\0'; ++text) {
        const auto c = static_cast<unsigned char>(*text);
        if (c < 0x20) {
            out += "\\u00";
            out += digits[c >> 4];
            out += digits[c & 15];
            continue;
        }
        if (c == '"' || c == '\\') out += '\\';
        out += *text;
    }
    out += '"';
}

/// Appends the JSON objects of a trace, one per line.
class trace_writer {
  public:
    trace_writer(std::string& out, time_point zero) : out_(out), zero_(zero) {
        out_ += "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    }

    void rank(const trace_log& log) {
        open("M", log.rank(), 0);
        out_ += ",\"name\":\"process_name\",\"args\":{\"name\":\"rank " + std::to_string(log.rank());
        if (log.dropped() > 0) out_ += " (" + std::to_string(log.dropped()) + " events did not fit)";
        out_ += "\"}}";
        open("M", log.rank(), 0);
        out_ += ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":" + std::to_string(log.rank()) + "}}";
    }

    void event(rank_t rank, int track, const trace_event& e) {
        open("X", rank, track);
        time("ts", e.begin.ns - zero_.ns);
        time("dur", e.end.ns - e.begin.ns);
        out_ += ",\"name\":";
        append_quoted(out_, e.name);
        if (e.kind != trace_event::what::span) {
            out_ += ",\"args\":{\"peer\":" + std::to_string(e.peer) + ",\"bytes\":" + std::to_string(e.bytes);
            // The context is text because it has 64 bits, and a JSON number only 53.
            out_ += ",\"context\":\"" + std::to_string(e.on.context) + "\",\"tag\":" + std::to_string(e.on.tag) + "}";
        }
        out_ += '}';
    }

    void arrow(std::size_t id, const arrow_end& from, const arrow_end& to) {
        const std::int64_t sent = from.event->begin.ns;
        // The arrow ends inside the receive, so that the viewer finds it, but not before the post.
        const std::int64_t got = std::max({sent, to.event->begin.ns, to.event->end.ns - 1});
        open("s", from.source, from.track);
        arrow_body(id, sent);
        out_ += '}';
        open("f", to.receiver, to.track);
        arrow_body(id, got);
        out_ += ",\"bp\":\"e\"}";
    }

    void end() { out_ += "\n]}\n"; }

  private:
    void open(const char* phase, rank_t rank, int track) {
        out_ += first_ ? "\n" : ",\n";
        first_ = false;
        out_ += "{\"ph\":\"";
        out_ += phase;
        out_ += "\",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(track);
    }
    void arrow_body(std::size_t id, std::int64_t at) {
        time("ts", at - zero_.ns);
        out_ += ",\"name\":\"message\",\"cat\":\"message\",\"id\":" + std::to_string(id);
    }
    /// Writes nanoseconds as microseconds, the unit of the format.
    void time(const char* key, std::int64_t ns) {
        const std::string fraction = std::to_string(1000 + ns % 1000);
        out_ += ",\"";
        out_ += key;
        out_ += "\":" + std::to_string(ns / 1000) + "." + fraction.substr(1);
    }

    std::string& out_;
    time_point zero_;
    bool first_ = true;
};

}  // namespace detail

/// Appends the logs of all ranks as JSON for Perfetto (ui.perfetto.dev) and chrome://tracing: a process per rank, a
/// track per activity (more where its spans overlap without nesting), and arrows from posts to receives. Times start
/// at 0.
///
/// Arrows pair the posts and receives of a channel in order. A channel with a `receive_latest` has no arrows, because
/// that call skips messages.
inline void write_trace(std::string& out, std::span<const trace_log> logs) {
    time_point zero{std::numeric_limits<std::int64_t>::max()};
    for (const trace_log& log : logs)
        for (const trace_event& event : log.events()) zero = std::min(zero, event.begin);
    detail::trace_writer writer(out, zero);
    detail::arrow_ends posts, receives;
    for (const trace_log& log : logs) {
        writer.rank(log);
        const std::vector<int> tracks = detail::tracks_of(log.events());
        for (std::size_t i = 0; i < tracks.size(); ++i) {
            const trace_event& event = log.events()[i];
            writer.event(log.rank(), tracks[i], event);
            detail::note_arrow_end(posts, receives, log.rank(), tracks[i], event);
        }
    }
    std::size_t id = 0;
    detail::for_each_arrow(posts, receives, [&](const auto& from, const auto& to) { writer.arrow(++id, from, to); });
    writer.end();
}

/// Writes the logs of all ranks to a file as JSON, as the overload for strings does; throws `std::runtime_error` when
/// writing fails.
inline void write_trace(std::FILE* file, std::span<const trace_log> logs) {
    std::string text;
    write_trace(text, logs);
    if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0)
        throw std::runtime_error("rill: the trace cannot be written to its file");
}

}}  // namespace rill::RILL_ABI
