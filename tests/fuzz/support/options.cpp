// Sanitizer options of the fuzz targets.

// The check for use after return takes half of the time where most inputs end in an exception.
extern "C" const char* __asan_default_options() {  // NOLINT(bugprone-reserved-identifier): the sanitizer's name
    return "detect_stack_use_after_return=0:detect_odr_violation=0";
}
