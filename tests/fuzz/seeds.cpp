// Writes the inputs from which the fuzzer starts, made by the library's own encoders: `fuzz_seeds FOLDER` makes
// FOLDER/TARGET/NAME. Those that add coverage are committed (`./dev fuzz --seeds`).
#include <rill/collective/join_frames.hpp>
#include <rill/core/checksum.hpp>
#include <rill/core/random.hpp>
#include <rill/protocol/detail/agreement_frame.hpp>
#include <rill/protocol/detail/agreement_message.hpp>
#include <rill/protocol/detail/round_machine.hpp>
#include <rill/protocol/detail/state_note.hpp>
#include <rill/session/detail/contributor_list.hpp>
#include <rill/stream/frame.hpp>
#include <rill/topology/halving_doubling.hpp>
#include <rill/topology/recursive_doubling.hpp>
#include <rill/topology/ring.hpp>
#include <rill/topology/split_allgather.hpp>
#include <rill/topology/tree.hpp>
#include <rill/train/checkpoint.hpp>
#include <rill/train/sampler.hpp>
#include <rill/transport/detail/mail_envelope.hpp>
#include <rill/transport/detail/tcp_framing.hpp>
#include <rill/transport/detail/tcp_handshake.hpp>
#include <rill/transport/detail/tcp_meeting_words.hpp>
#include <rill/transport/detail/tcp_roster.hpp>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <zlib.h>

namespace {

using namespace rill;

constexpr value_coding value_codings[] = {value_coding::raw, value_coding::bf16, value_coding::qsgd2,
                                          value_coding::qsgd4, value_coding::qsgd8};
constexpr const char* value_names[] = {"raw", "bf16", "qsgd2", "qsgd4", "qsgd8"};

/// An input under construction.
class seed {
  public:
    template <class N>
    seed& number(N value) {
        return bytes(std::as_bytes(std::span(&value, 1)));
    }
    seed& byte(unsigned value) { return number(static_cast<std::uint8_t>(value)); }
    seed& bytes(byte_view more) {
        bytes_.append(more.begin(), more.end());
        return *this;
    }
    seed& noise(std::size_t count, std::uint64_t key) {
        random_sequence random(random_key{key});
        for (std::size_t i = 0; i < count; ++i) byte(static_cast<unsigned>(random.below(256)));
        return *this;
    }
    byte_view view() const { return bytes_; }

  private:
    buffer bytes_;
};

class folder {
  public:
    folder(const std::filesystem::path& root, const char* target) : path_(root / target) {
        std::filesystem::remove_all(path_);
        std::filesystem::create_directories(path_);
    }
    void write(const std::string& name, const seed& made) const {
        std::ofstream file(path_ / name, std::ios::binary);
        file.write(reinterpret_cast<const char*>(made.view().data()), static_cast<std::streamsize>(made.view().size()));
        if (!file) throw std::runtime_error("cannot write " + (path_ / name).string());
    }

  private:
    std::filesystem::path path_;
};

/// Every third coordinate or so of `range`, or all of them.
template <class T, class Index>
stream<T, Index> sample(segment range, bool is_dense, std::uint64_t key = 1) {
    random_sequence random(random_key{key});
    stream<T, Index> made;
    const auto value = [&] { return static_cast<T>(static_cast<int>(random.below(200)) - 100); };
    if (is_dense) {
        for (T& x : made.make_dense(range)) x = value();
        return made;
    }
    made.clear(range);
    for (std::size_t i = range.begin; i < range.end; ++i)
        if (random.below(3) == 0) made.push_back(i, value());
    return made;
}

wire::header frame_header_of(std::size_t dimension) {
    return {.kind = operation::all_reduce, .dimension = dimension, .weight = 1, .contributors = 1};
}

template <class T, class Index>
buffer coded(const stream<T, Index>& content, const coding& codes, std::size_t dimension) {
    arena memory;
    const byte_view bytes = coded_frame(frame_header_of(dimension), content.view(), codes, random_key{2}, memory);
    return {bytes.begin(), bytes.end()};
}

template <class T, class Index>
void frame_seeds(const folder& to, unsigned type, const std::string& name) {
    constexpr unsigned pieces = 16, shifted = 32;
    for (const bool is_dense : {false, true}) {
        const auto content = sample<T, Index>({100, 140}, is_dense);
        for (std::size_t v = 0; v < (std::is_floating_point_v<T> ? 5U : 1U); ++v)
            for (std::size_t i = 0; i < (is_dense ? 1U : std::size(index_codings)); ++i) {
                const coding codes{.values = value_codings[v], .indices = index_codings[i], .bucket = 16};
                const buffer bytes = coded(content, codes, 1000);
                const std::string form = std::string(is_dense ? "dense" : name_of(index_codings[i]));
                to.write(name + "-" + value_names[v] + "-" + form,
                         seed().byte(type).number(std::uint16_t{0}).bytes(bytes));
            }
        const std::size_t first = content.count() * std::max(sizeof(T), sizeof(Index));
        const auto cut = static_cast<std::uint16_t>(is_dense ? 0 : first);
        const buffer bytes = coded(content, {}, 1000);
        to.write(name + (is_dense ? "-dense" : "-sparse") + "-in-pieces",
                 seed().byte(type | pieces).number(cut).bytes(bytes));
        to.write(name + (is_dense ? "-dense" : "-sparse") + "-shifted",
                 seed().byte(type | shifted).number(std::uint16_t{3}).bytes(bytes));
    }
    arena memory;
    const buffer one = coded(sample<T, Index>({0, 20}, false), {.indices = index_coding::smallest}, 60);
    const buffer two = coded(sample<T, Index>({20, 20}, false), {}, 60);
    const buffer three = coded(sample<T, Index>({20, 60}, true), {}, 60);
    const byte_pieces frames[] = {byte_view(one), byte_view(two), byte_view(three)};
    to.write(name + "-several", seed().byte(type).number(std::uint16_t{0}).bytes(join_frames(frames, memory)));
}

void frame_seeds(const folder& to) {
    frame_seeds<float, std::uint32_t>(to, 0, "float32-u32");
    frame_seeds<double, std::uint32_t>(to, 1, "float64-u32");
    frame_seeds<std::int32_t, std::uint32_t>(to, 2, "int32-u32");
    frame_seeds<std::int64_t, std::uint32_t>(to, 3, "int64-u32");
    frame_seeds<float, std::uint64_t>(to, 4, "float32-u64");
    frame_seeds<double, std::uint64_t>(to, 5, "float64-u64");
    frame_seeds<std::int32_t, std::uint64_t>(to, 6, "int32-u64");
    frame_seeds<std::int64_t, std::uint64_t>(to, 7, "int64-u64");
}

template <class Index>
void index_seeds(const folder& to, const std::string& name) {
    for (const std::size_t size : {0U, 1U, 9U, 64U, 700U})
        for (std::size_t i = 0; i < std::size(index_codings); ++i) {
            const segment universe{77, 77 + size};
            const auto content = sample<std::int32_t, Index>(universe, false);
            buffer bytes(kernel::encoded_index_bytes(index_codings[i], content.indices(), universe));
            kernel::encode_indices(index_codings[i], content.indices(), universe, bytes);
            seed made;
            made.byte(static_cast<unsigned>(index_codings[i])).byte(sizeof(Index) == 4 ? 1 : 0);
            made.byte(0).number(static_cast<std::uint16_t>(size)).byte(0).number(static_cast<Index>(universe.begin));
            made.byte(0).number(static_cast<std::uint16_t>(content.count())).bytes(bytes);
            if (made.view().size() < 1024)
                to.write(name + "-" + std::string(name_of(index_codings[i])) + "-" + std::to_string(size), made);
        }
}

template <class T>
void value_seeds(const folder& to, const std::string& name) {
    constexpr std::uint32_t buckets[] = {1,  2,  3,   7,
                                         16, 64, 100, 1024};  // in the order in which the target numbers them
    for (std::size_t v = 0; v < 5; ++v)
        for (const unsigned b : {2U, 4U, 7U}) {
            const coding codes{.values = value_codings[v], .bucket = buckets[b]};
            const auto content = sample<T, std::uint32_t>({0, 90}, true);
            buffer bytes(detail::value_length<T>(codes, 90));
            detail::encode_values(content.view().values(), codes, random_key{3}, 0, byte_span(bytes), serial{});
            const auto head = [&](bool decodes) {
                return seed()
                    .byte(decodes ? 1 : 0)
                    .byte(sizeof(T) == 8 ? 1 : 0)
                    .byte(static_cast<unsigned>(v))
                    .byte(0)
                    .byte(b);
            };
            const std::string suffix = std::string(value_names[v]) + "-buckets-of-" + std::to_string(buckets[b]);
            to.write(name + "-read-" + suffix, head(true).number(std::uint16_t{90}).bytes(bytes));
            to.write(name + "-write-" + suffix,
                     head(false).number(std::uint64_t{5}).byte(0).byte(7).bytes(std::as_bytes(content.values())));
        }
}

void stream_seeds(const folder& to) {
    for (unsigned type = 0; type < 6; ++type)
        for (unsigned v = 0; v < 5; ++v)
            for (unsigned i = 0; i <= index_codings.size(); ++i) {
                seed made;
                made.byte(type).byte(0).byte(v).byte(i).byte(15);  // one frame, and its codings
                if (i == 6) made.byte(4);                          // entries of a row
                made.number(std::uint16_t{300}).byte(0).byte(9);   // the range
                made.byte(i == 3 && v % 2 == 0 ? 1 : 0);           // dense or sparse
                to.write(
                    "type-" + std::to_string(type) + "-values-" + std::to_string(v) + "-indices-" + std::to_string(i),
                    made.noise(200, 10 * v + i));
            }
}

/// What a correct peer sends in each transfer of a schedule.
template <class Plan, class Make>
void add_receives(seed& made, const Plan& plan, std::size_t dimension, Make make) {
    for (int round = 0; round < plan.rounds(); ++round)
        for (int i = 0; i < plan.receives(round); ++i) {
            const part_range parts = plan.receive(round, i).parts;
            const buffer message =
                make(split(dimension, static_cast<std::size_t>(plan.parts()), static_cast<std::size_t>(parts.first),
                           static_cast<std::size_t>(parts.last)),
                     parts.count());
            made.byte(0).number(static_cast<std::uint16_t>(message.size())).bytes(message);
        }
}

template <class Shape>
void collective_seeds(const folder& to, unsigned collective, const Shape& shape, bool is_dense) {
    constexpr std::size_t dimension = 24;
    for (const int ranks : {2, 3, 4})
        for (const unsigned chosen : {0U, 6U, 15U}) {
            const rank_t rank = ranks - 2;
            if (is_dense && chosen != 0) continue;
            seed made;
            made.byte(collective)
                .byte(static_cast<unsigned>(ranks - 2))
                .byte(static_cast<unsigned>(rank))
                .byte(dimension)
                .byte(chosen);
            const coding codes{.values = chosen == 6 ? value_coding::qsgd4 : value_coding::raw,
                               .indices = chosen == 0 ? index_coding::raw : index_coding::smallest,
                               .bucket = 16};
            add_receives(made, shape.all_reduce(ranks, rank), dimension, [&](segment range, int) {
                return coded(sample<float, std::uint32_t>(range, is_dense), codes, dimension);
            });
            to.write(std::string(Shape::name) + (is_dense ? "-dense-" : "-sparse-") + std::to_string(ranks) +
                         "-ranks-" + std::to_string(chosen),
                     made);
        }
}

void gather_seeds(const folder& to) {
    constexpr std::size_t dimension = 24;
    for (const int ranks : {2, 3, 4}) {
        seed made;
        made.byte(5).byte(static_cast<unsigned>(ranks - 2)).byte(0).byte(dimension).byte(4);
        std::size_t next = 4;
        add_receives(made, topology::split_allgather{}.all_gather(ranks, 0), dimension, [&](segment, int parts) {
            arena memory;
            std::vector<buffer> kept;
            std::vector<byte_pieces> frames;
            for (int p = 0; p < parts; ++p) {
                stream<float> own(dimension);
                own.push_back(next++, 1.0F);
                kept.push_back(coded(own, {.indices = index_coding::packed_gaps}, dimension));
            }
            for (const buffer& one : kept) frames.emplace_back(byte_view(one));
            const byte_view joined = join_frames(frames, memory);
            return buffer(joined.begin(), joined.end());
        });
        to.write("gather-" + std::to_string(ranks) + "-ranks", made);
    }
}

void rooted_seeds(const folder& to) {
    constexpr std::size_t dimension = 12;
    for (const int ranks : {2, 3, 5})
        for (const rank_t root : {0, 1}) {
            seed made;
            made.byte(6)
                .byte(static_cast<unsigned>(ranks - 2))
                .byte(0)
                .byte(dimension)
                .byte(static_cast<unsigned>(root));
            const auto dense = [&](segment range, int) {
                return coded(sample<double, std::uint32_t>(range, true), {}, dimension);
            };
            add_receives(made, topology::tree{}.reduce(ranks, 0, root), dimension, dense);
            add_receives(made, topology::tree{}.broadcast(ranks, 0, root), dimension, dense);
            to.write("root-" + std::to_string(root) + "-of-" + std::to_string(ranks), made);
        }
}

void collective_seeds(const folder& to) {
    collective_seeds(to, 0, topology::ring{}, true);
    collective_seeds(to, 1, topology::halving_doubling{}, true);
    collective_seeds(to, 2, topology::recursive_doubling{}, false);
    collective_seeds(to, 3, topology::split_allgather{}, false);
    collective_seeds(to, 4, topology::tree{}, false);
    gather_seeds(to);
    rooted_seeds(to);
}

seed idx(const std::vector<std::uint32_t>& dimensions, unsigned most = 256) {
    seed made;
    made.byte(0).byte(0).byte(8).byte(static_cast<unsigned>(dimensions.size()));
    std::size_t count = 1;
    for (const std::uint32_t d : dimensions) {
        for (int shift = 24; shift >= 0; shift -= 8) made.byte(d >> shift & 0xFFU);
        count *= d;
    }
    for (std::size_t i = 0; i < count; ++i) made.byte(static_cast<unsigned>(i % most));
    return made;
}

seed packed(byte_view plain) {
    buffer out(plain.size() + 256);
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(plain.data()));
    stream.avail_in = static_cast<uInt>(plain.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return seed().bytes(out);
}

void idx_seeds(const folder& to) {
    const std::vector<std::vector<std::uint32_t>> shapes{{}, {7}, {5, 7}, {2, 3, 4}};
    for (unsigned rank = 0; rank < 4; ++rank) {
        const seed plain = idx(shapes[rank]);
        const std::string name = "rank-" + std::to_string(rank);
        to.write(name + "-plain", seed().byte(rank).byte(0).bytes(plain.view()));
        to.write(name + "-to-be-packed", seed().byte(rank).byte(2).bytes(plain.view()));
        to.write(name + "-gzip", seed().byte(rank).byte(0).bytes(packed(plain.view()).view()));
        const byte_view half = plain.view().first(plain.view().size() / 2), rest = plain.view().subspan(half.size());
        to.write(name + "-gzip-members",
                 seed().byte(rank).byte(0).bytes(packed(half).view()).bytes(packed(rest).view()));
    }
    const seed zeros = idx({50'000}, 1);
    to.write("packs-well", seed().byte(1).byte(0).bytes(packed(zeros.view()).view()));
    const seed labels = idx({3}), images = idx({3, 2, 2});
    for (const unsigned classes : {2U, 5U}) {
        const auto head = [&](std::size_t size) {
            return seed().byte(4).byte(0).byte(classes - 1).byte(static_cast<unsigned>(size));
        };
        const std::string name = "dataset-" + std::to_string(classes) + "-classes";
        to.write(name, head(labels.view().size()).bytes(labels.view()).bytes(images.view()));
        const seed small = packed(labels.view());
        to.write(name + "-gzip", head(small.view().size()).bytes(small.view()).bytes(packed(images.view()).view()));
    }
}

void libsvm_seeds(const folder& to) {
    const auto write = [&](const std::string& name, std::string_view text, unsigned columns = 0, unsigned first = 1) {
        const auto head = [&](unsigned compared) {
            return seed().byte(compared).number(static_cast<std::uint16_t>(columns)).byte(first);
        };
        const byte_view bytes = std::as_bytes(std::span(text));
        to.write(name, head(1).bytes(bytes));
        to.write(name + "-gzip", head(0).bytes(packed(bytes).view()));
    };
    write("rows", "+1 1:0.5 3:-2e-1\n-1 2:1 7:1e3\n0 5:.25\n");
    write("ones", "1 1 4 9\r\n-1 2:1 4\n\n2\t3:1.0 12\n", 12);
    write("from-0", "1 0:2 5:3\n-1 5:1 # the last\n# nothing\n3", 6, 0);
    write("label", "1 1:1\none 2:1\n");
    write("descending", "1 2:1\n1 5:1 4:1\n");
    write("beyond", "1 3:1 4:1\n", 3);
    write("no-value", "1 3:\n");
    write("infinite", "1 3:1e39 4:1e999\n");
    write("tiny", "1e-60 1:1e-5000 2:-1e-99999999999 3:0.0001e-45\n1 1:1e99999999999\n");
    write("other", "1 qid:2 3;4\n");
    write("blank", " \n\n#\n");
}

void checkpoint_seeds(const folder& to, const std::filesystem::path& scratch) {
    const auto saved = [&](const auto& fill) {
        train::checkpoint::writer out;
        fill(out);
        out.save(scratch.string());
        const std::vector<std::byte> image = train::read_file(scratch.string());
        std::filesystem::remove(scratch);
        return image;
    };
    const auto write = [&](const std::string& name, const std::vector<std::byte>& image) {
        to.write(name, seed().byte(0).bytes(image));
        const byte_view body = byte_view(image).subspan(24, image.size() - 32);
        to.write(name + "-unsealed", seed().byte(1).byte(std::to_integer<unsigned>(image[12])).bytes(body));
    };
    write("empty", saved([](auto&) {}));
    write("arrays", saved([](auto& out) {
              out.add("parameters", std::vector<float>{1.5F, -2.0F, 3.25F});
              out.add("step", std::uint64_t{42});
              out.add("", std::vector<std::int8_t>{1, 2, 3});
              out.add("none", std::span<const double>{});
              out.add("raw", std::vector<std::byte>(5));
          }));
    write("sampler", saved([](auto& out) {
              train::sampler rows({.rows = 40, .batch = 3, .ranks = 2});
              rows.next();
              rows.save(out, "");
          }));
    to.write("sampler-state", seed().byte(2).byte(0).byte(0).byte(0).number(std::uint64_t{3}).number(std::uint64_t{2}));
    to.write("sampler-of-other-rows", seed().byte(2).byte(1).number(std::uint64_t{41}).byte(0).byte(0).noise(16, 1));
    for (const std::uint64_t key : {1U, 2U, 3U})
        to.write("round-trip-" + std::to_string(key), seed().byte(3).noise(120, key));
}

seed note_head(mail::note kind, unsigned pieces = 0, std::uint64_t context = 0, std::uint32_t tag = 0) {
    return seed().number(std::uint16_t{64}).number(context).number(tag).byte(static_cast<unsigned>(kind)).byte(pieces);
}

void note_seeds(const folder& to) {
    using mail::note;
    to.write("lent", note_head(note::lent).noise(5, 1));
    to.write("ask", note_head(note::ask, 0, 3, 17));
    to.write("ask-for-nothing", note_head(note::ask));
    to.write("credit", note_head(note::credit));
    to.write("begin", note_head(note::begin, 2).number(std::uint64_t{13}).number(std::uint64_t{70}).noise(36, 5));
    to.write("begin-nothing", note_head(note::begin, 1).noise(32, 6));
    to.write("go-on", note_head(note::go_on).noise(9, 7));
    to.write("unknown", note_head(static_cast<note>(19)));
    to.write("answer", note_head(note::answer).noise(sizeof(call_signature), 2));
    for (const std::uint64_t second : {std::uint64_t{65}, std::uint64_t{1} << 31, ~std::uint64_t{0}}) {
        const auto announced = note_head(note::announce_lent, 2).number(std::uint64_t{13}).number(second);
        to.write("announced-" + std::to_string(second), seed(announced).noise(32, 3));
    }
    for (const failure kind : {failure::exception, failure::deadlock}) {
        mail::packed_notice::fixed_part fixed;
        std::memset(&fixed, 0, sizeof fixed);  // clears the padding between its members, too
        fixed.culprit = 2;
        fixed.other = no_rank;
        fixed.length = 10;
        fixed.kind = kind;
        to.write(std::string("verdict-") + std::to_string(static_cast<int>(kind)),
                 note_head(note::verdict).bytes(std::as_bytes(std::span(&fixed, 1))).noise(10, 4));
    }
}

/// What children send: a dense sum, a sparse contribution, nothing; and contributor lists by themselves.
void round_seeds(const folder& to) {
    const rill::detail::contributor_list nobody, two{{{1, 0, 1.0}, {3, 2, 0.5}}, {{4, 3, milliseconds(7)}}, 0.25};
    const std::vector<float> dense{1, 2, 3};
    stream<std::int64_t, std::uint32_t> sparse(40);
    sparse.push_back(5, 7);
    sparse.push_back(39, -1);
    const auto write = [&]<class T>(const char* name, unsigned chosen, const stream_view<T, std::uint32_t>& content,
                                    const rill::detail::contributor_list& contributors) {
        const std::size_t dimension = content.range().size();
        const wire::header head{.kind = rill::detail::round_kind::contribute,
                                .element = element_type_of<T>,
                                .number = 3,
                                .dimension = dimension};
        wire::header_block block;
        to.write(name, seed()
                           .byte(chosen)
                           .number(static_cast<std::uint16_t>(dimension))
                           .bytes(with_contributors(view_frame(head, content, block.data()), head, contributors)));
    };
    write("dense", 0, stream_view<float, std::uint32_t>({0, 3}, std::span<const float>(dense)), two);
    write("sparse", 1, sparse.view(), two);
    write("nothing", 1, stream<std::int64_t, std::uint32_t>(40).view(), nobody);
    const std::vector<std::int64_t> numbers = two.numbers();
    to.write("contributors", seed().byte(2).bytes(std::as_bytes(std::span(numbers))));
}

seed& add_frame(seed& to, const tcp::detail::frame_head& head) {
    std::byte bytes[tcp::detail::frame_head::size_bytes];
    head.write(bytes);
    return to.bytes(bytes).noise(head.size, 1);
}

void conversation_seeds(const folder& to) {
    using tcp::detail::frame_kind;
    const auto write = [&](const std::string& name, std::initializer_list<tcp::detail::frame_head> frames) {
        for (const unsigned piece : {0U, 12U, 59U}) {
            seed made;
            made.byte(1).byte(2).byte(piece).byte(39);  // a peer's bytes; two notes went before, pieces
            for (const auto& head : frames) add_frame(made, head);
            to.write(name + "-" + std::to_string(piece + 1), made);
        }
    };
    write("note", {{.size = 5, .kind = frame_kind::note}, {.kind = frame_kind::note}});
    write("part", {{.size = 24, .kind = frame_kind::part, .tag = 7, .value = 60},
                   {.size = 24, .kind = frame_kind::part_more, .tag = 7},
                   {.size = 3, .kind = frame_kind::note},
                   {.value = 16},
                   {.size = 12, .kind = frame_kind::part_more, .tag = 7},
                   {.kind = frame_kind::part, .tag = 8},
                   {.value = 33},
                   {.kind = frame_kind::goodbye},
                   {.value = 33}});
    write("early-goodbye", {{.size = 4, .kind = frame_kind::part, .value = 8}, {.kind = frame_kind::goodbye}});
    write("late-note", {{.kind = frame_kind::goodbye}, {.kind = frame_kind::note}});
    write("other-part", {{.size = 4, .kind = frame_kind::part, .tag = 1, .value = 8},
                         {.size = 4, .kind = frame_kind::part_more, .tag = 2}});
    write("ack-of-nothing", {{.value = 1000}});
    seed lines;  // two stretches, the second one first and on the other line, and an acknowledgement
    lines.byte(2).byte(2).byte(39);
    add_frame(lines.byte(2 * 28 + 1), {.size = 12, .kind = frame_kind::stretch, .value = 4});
    lines.byte(2 * 36);
    std::byte note[tcp::detail::frame_head::size_bytes];
    tcp::detail::frame_head{.kind = frame_kind::note}.write(note);
    std::byte head[tcp::detail::frame_head::size_bytes];
    tcp::detail::frame_head{.size = 16, .kind = frame_kind::stretch}.write(head);
    lines.bytes(head).bytes(note).byte(0).byte(0).byte(0).byte(0);
    add_frame(lines.byte(2 * 16), {.tag = 1, .value = 16});
    to.write("lines", lines);
    for (const std::uint64_t key : {1U, 2U, 3U, 4U, 5U, 6U})
        to.write("talk-" + std::to_string(key), seed().byte(0).noise(50 * key, key));
}

/// What the other end says, in whole or in part; its proof is mended by the target where `chosen` has 4.
void handshake_seeds(const folder& to) {
    using tcp::detail::handshake;
    for (unsigned chosen = 0; chosen < 8; ++chosen) {
        const bool dials = chosen % 2 != 0, has_key = (chosen & 2) != 0;
        seed hello;
        hello.byte(chosen).byte(79).bytes(std::as_bytes(std::span("rill", 4))).number(handshake::version);
        hello.byte(has_key ? 1 : 0).byte(static_cast<unsigned>(handshake::purpose::mail));
        hello.number(std::uint64_t{11}).number(std::uint64_t{12}).number(std::uint32_t{4}).number(std::uint32_t{2});
        hello.number(std::uint64_t{102}).number(std::uint64_t{3}).noise(16, 3);
        const std::string name = std::string(dials ? "to-dialer-" : "to-acceptor-") + std::to_string(chosen);
        to.write(name + "-hello", hello);
        for (const std::size_t wrong : {0U, 4U, 6U, 7U, 8U, 16U, 24U, 28U, 32U}) {  // each field of it
            buffer bytes(hello.view().begin(), hello.view().end());
            bytes[2 + wrong] ^= std::byte{4};
            to.write(name + "-wrong-" + std::to_string(wrong), seed().bytes(bytes));
        }
        for (const unsigned reason : {0U, 11U, 99U, 256U}) {
            seed made = hello;
            if (dials) made.number(std::uint64_t{reason});
            made.number(std::uint64_t{16}).bytes(std::vector<std::byte>(32));
            to.write(name + "-" + std::to_string(reason), made);
        }
    }
}

/// Bytes of a stranger, and changes of what the other end of a connection says: a place in two bytes, and the change.
void tls_seeds(const folder& to) {
    for (const unsigned dials : {0U, 1U}) {
        const std::string name = dials != 0 ? "to-dialer-" : "to-acceptor-";
        const auto head = [&](unsigned chosen, unsigned piece) { return seed().byte(dials).byte(chosen).byte(piece); };
        to.write(name + "clear", head(0, 255).bytes(std::as_bytes(std::span("rill, not TLS", 13))));
        to.write(name + "record", head(0, 40).byte(22).byte(3).byte(3).byte(0).byte(60).noise(60, 1));
        to.write(name + "alert", head(0, 255).byte(21).byte(3).byte(3).byte(0).byte(2).byte(2).byte(40));
        to.write(name + "endless", head(0, 255).byte(22).byte(3).byte(1).byte(60).byte(0).byte(1).noise(3000, 2));
        for (const unsigned chosen : {1U, 2U}) {
            to.write(name + std::to_string(chosen) + "-whole", head(chosen, 6));
            for (const unsigned place : {0U, 1U, 3U, 5U, 11U, 50U, 90U, 200U})
                to.write(name + std::to_string(chosen) + "-" + std::to_string(place),
                         head(chosen, 255).number(static_cast<std::uint16_t>(place)).byte(1));
        }
    }
}

void variable_seeds(const folder& to) {
    const auto write = [&](const std::string& name, std::string_view text) {
        to.write(name, seed().bytes(std::as_bytes(std::span(text))));
    };
    const std::string key = "RILL_KEY=0123456789abcdefghijklmn\n", two = "RILL_RANK=1\nRILL_RANKS=2\n";
    write("nothing", "");
    write("own", two + "RILL_MEETING=[::1]:5\nRILL_JOB=j\n" + key);
    write("torchrun", "RANK=3\nWORLD_SIZE=4\nMASTER_ADDR=fe80::1\nMASTER_PORT=29400\n");
    write("torchrun-without-port", "RANK=3\nWORLD_SIZE=4\nMASTER_ADDR=h\n");
    write("slurm", "SLURM_PROCID=0\nSLURM_NTASKS=65535\nSLURM_JOB_ID=77\nHOME=h\n");
    write("pmi", "PMI_RANK=0\nPMI_SIZE=1\n");
    write("openmpi", "OMPI_COMM_WORLD_RANK=9\nOMPI_COMM_WORLD_SIZE=9\n");
    write("join", two + "RILL_SEATS=3\nRILL_JOINS=1\n");
    write("join-without-seats", two + "RILL_JOINS=1\n");
    write("half", "RILL_RANK=0\n");
    write("no-number", "RILL_RANK=0x\nRILL_RANKS=-1\n");
    for (const char* const security : {"open", "keyed", "encrypted", "none"}) {
        write(std::string("security-") + security, two + "RILL_SECURITY=" + security + "\n");
        write(std::string("security-key-") + security, two + key + "RILL_SECURITY=" + security + "\n");
    }
    write("short-key", two + "RILL_KEY=short\n");
    write("spaces", two + "RILL_KEY=                        \n");
    write("file", two + "RILL_KEY_FILE=k\n");
    write("both", two + key + "RILL_KEY_FILE=k\n");
}

void roster_seeds(const folder& to) {
    using namespace tcp::detail;
    const roster_entry one{.rank = 0, .incarnation = 3, .host = "a", .addresses = {{.port = 4}}};
    const roster_entry two{.rank = 5,
                           .incarnation = 4,
                           .host = "another-host",
                           .addresses = {{.is_v6 = true, .scope = 2, .port = 5}, {.port = 6}}};
    const auto write = [&](const std::string& name, const std::vector<roster_entry>& roster, unsigned ranks = 8) {
        to.write(name, seed().byte(1).byte(ranks - 1).bytes(encode_roster(roster)));
    };
    write("nobody", {});
    write("one", {one});
    write("two", {one, two});
    write("two-of-three", {one, two}, 3);
    for (const std::uint64_t key : {1U, 2U, 3U})
        to.write("written-" + std::to_string(key), seed().byte(0).byte(20).noise(100 * key, key));
}

void meeting_seeds(const folder& to) {
    using namespace tcp::detail;
    using options = std::array<meeting_word::option, 2>;
    const roster_entry zero{.rank = 0, .incarnation = 5, .host = "a", .addresses = {{.port = 4}}};
    const roster_entry one{.rank = 1, .incarnation = 3, .host = "b", .addresses = {{.is_v6 = true, .port = 4}}};
    const auto write = [&](const std::string& name, bool to_first, const std::vector<std::byte>& word) {
        to.write(name, seed().byte(to_first ? 1 : 0).byte(0).byte(20).bytes(word));
    };
    write("entry", true, meeting_word::of_entry(options{{{"", 1}, {"", 2}}}, one));
    write("entry-of-other-options", true, meeting_word::of_entry(options{{{"", 1}, {"", 3}}}, one));
    write("entry-of-another", true, meeting_word::of_entry(options{{{"", 1}, {"", 2}}}, zero));
    write("roster", false, meeting_word::of_roster(std::array{zero, one}));
    write("roster-of-one", false, meeting_word::of_roster(std::array{zero}));
    write(
        "refusal", false,
        meeting_word::of_refusal({.kind = failure::mismatch, .culprit = 1, .reason = "rank 1 belongs to another job"}));
    write("refusal-to-first", true, meeting_word::of_refusal({.kind = failure::timeout, .reason = {}}));
}

void agreement_seeds(const folder& to) {
    using message = rill::detail::agreement_message;
    using is = message::what;
    const auto write = [&](const std::string& name, message of) {
        of.epoch = of.kind == is::decide ? 2 : 1;
        const view ended{.epoch = 1, .members = {0, 1, 2}, .incarnations = {5, 6, 7}};
        const bool has_value = of.value.next.epoch == 2;
        to.write(name, seed().bytes(
                           to_message(rill::detail::agreement_frame{6, std::move(of)}, has_value ? &ended : nullptr)));
    };
    const rill::detail::agreement_ballot at{.attempt = 2, .rank = 1};
    const rill::detail::agreement_decision next{
        .next = {.epoch = 2, .members = {0, 1, 3}, .incarnations = {5, 6, 8}}, .step = 3, .unheard = {0}, .left = {2}};
    write("call", {.kind = is::call});
    write("collect", {.kind = is::collect, .at = at, .others = {2}});
    write("answer", {.kind = is::answer,
                     .at = at,
                     .accepted_at = {.attempt = 1, .rank = 0},
                     .value = next,
                     .prepared = 3,
                     .committed = 2,
                     .others = {2},
                     .ended = {2},
                     .joins = {{3, 8}}});
    write("refuse", {.kind = is::refuse, .at = at});
    write("propose", {.kind = is::propose, .at = at, .value = next});
    write("accepted", {.kind = is::accepted, .at = at});
    write("decide", {.kind = is::decide, .value = next});
    write("decide-whole", {.kind = is::decide, .view_is = message::form::whole, .value = next});
    write("no-quorum", {.kind = is::no_quorum, .others = {2}});
    write("join", {.kind = is::join, .joins = {{3, 8}, {0, 5}}});
    write("hello", {.kind = is::hello, .build = 1, .lives = 9, .joins = {{3, 8}, {0, 5}, {2, 7}}});
    write("finished", {.kind = is::finished});
}

void state_seeds(const folder& to) {
    using note = rill::detail::state_note;
    const auto write = [&](const std::string& name, note of, byte_view bytes = {}) {
        of.epoch = 1, of.incarnation = 1, of.build = 1;
        to.write(name, seed().bytes(to_message(of, bytes)));
    };
    const buffer eight(8);
    const note piece{
        .kind = note::what::piece, .step = 2, .checksum = checksum(eight), .size = 8, .length = 8, .latest = 4};
    note update = piece, first_half = piece;
    update.of = note::item::update, update.step = 3;
    first_half.length = 4;
    write("snapshot", piece, eight);
    write("first-half", first_half, byte_view(eight).first(4));
    write("update", update, eight);
    write("want-snapshot", {.length = 32});
    write("want-update", {.of = note::item::update, .step = 2, .length = 40});
    write("want-later-update", {.of = note::item::update, .step = 3, .length = 40});
    for (unsigned reason = 1; reason <= 6; ++reason)
        write("refusal-" + std::to_string(reason), {.kind = note::what::refusal,
                                                    .of = note::item::update,
                                                    .reason = static_cast<note::why>(reason),
                                                    .step = 3});
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2) {
        std::fprintf(stderr, "usage: fuzz_seeds FOLDER\n");
        return 2;
    }
    const std::filesystem::path root = arguments[1];
    frame_seeds({root, "frame"});
    const folder indices(root, "indices"), values(root, "values");
    index_seeds<std::uint32_t>(indices, "u32");
    index_seeds<std::uint64_t>(indices, "u64");
    value_seeds<float>(values, "float32");
    value_seeds<double>(values, "float64");
    stream_seeds({root, "streams"});
    collective_seeds(folder(root, "collective"));
    round_seeds({root, "round"});
    note_seeds({root, "notes"});
    conversation_seeds({root, "tcp_conversation"});
    handshake_seeds({root, "tcp_handshake"});
    roster_seeds({root, "tcp_roster"});
    tls_seeds({root, "tcp_tls"});
    variable_seeds({root, "tcp_variables"});
    meeting_seeds({root, "tcp_meeting"});
    state_seeds({root, "state_note"});
    agreement_seeds({root, "agreement"});
    idx_seeds({root, "idx"});
    libsvm_seeds({root, "libsvm"});
    checkpoint_seeds({root, "checkpoint"}, root / "scratch");
    return 0;
}
