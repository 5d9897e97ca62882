import type { EventEmitter } from "node:events";
import {
  type sendUnaryData,
  status,
  type StatusObject,
  type UntypedHandleCall,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";

/** The error that Nest's filter creates for an exception without a status, such as an `RpcException` with a string. */
interface NestError {
  readonly status: "error";
  readonly message: string;
}

/** Nest's message for a call that a guard refuses (`FORBIDDEN_MESSAGE`). */
const forbidden = "Forbidden resource";

/** Returns handlers that convert errors from Nest's filter to gRPC statuses. */
export function withStatuses(handlers: UntypedServiceImplementation): UntypedServiceImplementation {
  return Object.fromEntries(Object.entries(handlers).map(([name, handler]) => [name, withStatus(handler)]));
}

function withStatus(handler: UntypedHandleCall): UntypedHandleCall {
  return (call: EventEmitter, callback?: sendUnaryData<unknown>): unknown => {
    const emit = call.emit.bind(call);
    call.emit = (event, ...args: unknown[]) => emit(event, ...(event === "error" ? args.map(toStatus) : args));
    const respond: typeof callback = callback && ((error, ...rest) => callback(error && toStatus(error), ...rest));
    return Reflect.apply(handler, undefined, [call, respond]);
  };
}

// Converts errors from Nest's filter, which has logged unexpected errors and hidden their messages.
function toStatus<E>(error: E): E | Pick<StatusObject, "code" | "details"> {
  if (!isNestError(error)) return error;
  const { message } = error;
  return { code: message === forbidden ? status.PERMISSION_DENIED : status.UNKNOWN, details: message };
}

function isNestError(error: unknown): error is NestError {
  return (
    typeof error === "object" && error !== null && "status" in error && error.status === "error" && "message" in error
  );
}
