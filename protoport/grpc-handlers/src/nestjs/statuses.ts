import type { EventEmitter } from "node:events";
import { status, type UntypedHandleCall, type UntypedServiceImplementation } from "@grpc/grpc-js";
import { fromHttpException } from "@protoport/frameworks/nest-mount";

/** An object that an application passes to `RpcException`, or that Nest's filter creates for an exception. */
interface NestError {
  readonly message: string;
  readonly status?: unknown;
  readonly code?: status;
}

/** Nest's message for a call that a guard refuses (`FORBIDDEN_MESSAGE`). */
const forbidden = "Forbidden resource";

/** Returns handlers that convert errors from Nest's filter to gRPC statuses. */
export function withStatuses(handlers: UntypedServiceImplementation): UntypedServiceImplementation {
  return Object.fromEntries(Object.entries(handlers).map(([name, handler]) => [name, withStatus(handler)]));
}

function withStatus(handler: UntypedHandleCall): UntypedHandleCall {
  return (call: EventEmitter, callback?: (...result: unknown[]) => void): unknown => {
    const emit = call.emit.bind(call);
    call.emit = (event, ...args: unknown[]) => emit(event, ...(event === "error" ? args.map(toStatus) : args));
    const respond = callback && ((error: unknown, ...rest: unknown[]) => callback(error && toStatus(error), ...rest));
    const returned: unknown = Reflect.apply(handler, undefined, [call, respond]);
    // Rejects with the error of Nest's filter if the method has `@GrpcStreamCall`.
    return returned instanceof Promise ? returned.catch((error: unknown) => call.emit("error", error)) : returned;
  };
}

/** Converts errors from Nest's exceptions and from its filter, which has logged unexpected errors. */
function toStatus(error: unknown): unknown {
  // `RpcException` has the object or the string that its constructor got.
  const thrown: unknown = error instanceof Error && "getError" in error ? Reflect.get(error, "error") : error;
  const { code = status.UNKNOWN, rawMessage } = fromHttpException(thrown) ?? {};
  if (rawMessage !== undefined) return { code, details: rawMessage };
  if (typeof thrown === "string") return { code, details: thrown };
  if (!isNestError(thrown)) return thrown;
  const { message } = thrown;
  const isRefused = thrown.status === "error" && message === forbidden;
  return { ...thrown, code: isRefused ? status.PERMISSION_DENIED : code, details: message };
}

/** Returns whether an error has a message for clients, but no status. */
function isNestError(thrown: unknown): thrown is NestError {
  if (typeof thrown !== "object" || thrown === null || thrown instanceof Error) return false;
  const { message, code }: Partial<NestError> = thrown;
  return typeof message === "string" && !(typeof code === "number" && code !== status.OK && code in status);
}
