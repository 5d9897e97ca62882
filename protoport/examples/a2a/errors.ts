// The errors of A2A: an ErrorInfo names the reason, over gRPC and REST (§10.6, §11.6).
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../gen/google/rpc/error_details_pb.ts";

/** The errors of A2A that this agent has. */
export type A2aReason =
  | "TASK_NOT_FOUND"
  | "TASK_NOT_CANCELABLE"
  | "PUSH_NOTIFICATION_NOT_SUPPORTED"
  | "UNSUPPORTED_OPERATION"
  | "CONTENT_TYPE_NOT_SUPPORTED"
  | "VERSION_NOT_SUPPORTED";

// A2A §5.4
const codes: Readonly<Record<A2aReason, Code>> = {
  TASK_NOT_FOUND: Code.NotFound,
  TASK_NOT_CANCELABLE: Code.FailedPrecondition,
  PUSH_NOTIFICATION_NOT_SUPPORTED: Code.FailedPrecondition,
  UNSUPPORTED_OPERATION: Code.FailedPrecondition,
  CONTENT_TYPE_NOT_SUPPORTED: Code.InvalidArgument,
  VERSION_NOT_SUPPORTED: Code.FailedPrecondition,
};

/** Returns an error that A2A defines. */
export function a2aError(reason: A2aReason, message: string): ConnectError {
  return new ConnectError(message, codes[reason], undefined, [errorInfo(reason)]);
}

/** Returns the error for a field with an invalid value. Clients in Python show its text because of the ErrorInfo. */
export function invalidField(field: string, description: string): ConnectError {
  const violation = { desc: BadRequestSchema, value: { fieldViolations: [{ field, description }] } };
  const details = [errorInfo("INVALID_PARAMS"), violation];
  return new ConnectError(`${field} ${description}`, Code.InvalidArgument, undefined, details);
}

function errorInfo(reason: string): { desc: typeof ErrorInfoSchema; value: MessageInitShape<typeof ErrorInfoSchema> } {
  return { desc: ErrorInfoSchema, value: { reason, domain: "a2a-protocol.org" } };
}
