/** The entry `@protoport/gateway/errors`, which exports the identifiers of errors, and faults of programs that extend the gateway. */
export { ErrorCode, errorName, messageOf, toOneLine, toShortLine, withCode } from "./http/index.ts";
export { errorCodeOf, problem } from "./protobuf/index.ts";
export { messageTooLargeError } from "./protocols/index.ts";
export { createFaultReporter, type FaultReporter, guardCallback, toFault } from "./serve/index.ts";
