#undef RILL_CONTRACTS
#define RILL_CONTRACTS RILL_CONTRACTS_OFF
#include "contract_cases.hpp"
