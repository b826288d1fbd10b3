#undef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_FAST
#include "contract_cases.hpp"
