# Part of the Conan package: adds the source of rill::compiled, because a Conan component cannot list sources.
target_sources(rill::compiled INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../include/rill/compiled.cpp)
