# Of Conan's package: gives rill::compiled its source, which Conan's own description of a component has no word for.
target_sources(rill::compiled INTERFACE ${CMAKE_CURRENT_LIST_DIR}/../include/rill/compiled.cpp)
