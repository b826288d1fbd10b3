# The compiler parses units and instantiates their templates, but generates no code. That takes a third of the time and
# finds missing includes. Objects and programs are empty files, by which Ninja knows what need not be compiled again.

set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only <SOURCE>"
                             "${CMAKE_COMMAND} -E touch <OBJECT>")
set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_COMMAND} -E touch <TARGET>")
