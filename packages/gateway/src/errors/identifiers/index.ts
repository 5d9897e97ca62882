/** The identifiers of errors, independent of RPC. */
export { type Failure, type RequestFailure, withCode } from "./failure.ts";
export { type NamedOption, type CodeName, type GatewayErrorCode, type ProblemName, problems } from "./problems.ts";
