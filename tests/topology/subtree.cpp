#include <rill/topology/subtree.hpp>

#include <doctest/doctest.h>

#include <initializer_list>

using namespace rill::topology;

namespace {

/// The deepest level below `node`. Checks that children divide its ranks.
int explore(const subtree& node, int arity) {
    int next = node.first, deepest = 0;
    for (int i = 0; i < node.children(arity); ++i) {
        if (next == node.root) ++next;
        const subtree child = node.child(arity, i);
        CHECK(child.first == next);
        CHECK(child.root == child.first);
        for (int rank = child.first; rank < child.last; ++rank) CHECK(node.child_with(arity, rank) == child);
        next = child.last;
        const int below = 1 + explore(child, arity);
        deepest = below > deepest ? below : deepest;
    }
    if (next == node.root) ++next;
    CHECK(next == node.last);
    return deepest;
}

}  // namespace

TEST_CASE("subtree: children divide the ranks around the root, and the depth is that of the deepest child") {
    for (int arity : {1, 2, 3, 5})
        for (int size = 1; size <= 24; ++size)
            for (int root = 0; root < size; ++root) {
                const subtree all{root, 0, size};
                CHECK(explore(all, arity) == all.depth(arity));
                CHECK(all.children(arity) <= (arity > 1 ? arity : 2));
            }
}

TEST_CASE("subtree: chunks of one rank make a star") {
    for (int size = 2; size <= 20; ++size)
        for (int root = 0; root < size; ++root) {
            CHECK(subtree{root, 0, size}.children(size - 1) == size - 1);
            CHECK(subtree{root, 0, size}.depth(size - 1) == 1);
        }
}
