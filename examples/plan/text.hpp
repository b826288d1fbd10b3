#pragma once

#include <string>

namespace plan {

std::string time_text(double seconds);
std::string percent(double share);

}  // namespace plan
