#undef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_DEBUG
#include "contract_cases.hpp"
