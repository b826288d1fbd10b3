// The text of a document in docs/, and those of its blocks that a test generates.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

inline std::string read_document(const std::string& name) {
    const std::string path = std::string(RILL_SOURCE_DIR) + "/docs/" + name;
    std::ifstream file(path);
    REQUIRE_MESSAGE(file.is_open(), path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

/// Fails unless the document has `content` between the comments `<!-- made: name -->` and `<!-- end -->`, and shows
/// what should stand there.
inline void require_block(const std::string& document, const std::string& name, const std::string& content) {
    const std::string text = read_document(document);
    const std::string begin = "<!-- made: " + name + " -->\n", end = "<!-- end -->\n";
    const std::size_t at = text.find(begin);
    REQUIRE_MESSAGE(at != std::string::npos, document << " has no block " << name << "; it should be\n" << content);
    const std::size_t first = at + begin.size();
    CHECK_MESSAGE(text.substr(first, text.find(end, first) - first) == content, document << ", block " << name
                                                                                         << ", should be\n"
                                                                                         << content);
}
