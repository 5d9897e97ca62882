/** The entry `@protoport/gateway/errors`, which exports the identifiers and messages of errors. */
export { ErrorCode, errorName, messageOf, toOneLine, toShortLine, withCode } from "./http/index.ts";
export { errorCodeOf, problem } from "./protobuf/index.ts";
export { messageTooLargeError } from "./protocols/index.ts";
