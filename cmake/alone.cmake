# Units are parsed, and their templates instantiated, but no code is made of them: that takes a third of the time and finds
# what a unit or a header forgets to include. Objects and programs are empty files, so that only what has changed is
# compiled again.

set(CMAKE_CXX_COMPILE_OBJECT "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only <SOURCE>"
                             "${CMAKE_COMMAND} -E touch <OBJECT>")
set(CMAKE_CXX_LINK_EXECUTABLE "${CMAKE_COMMAND} -E touch <TARGET>")
