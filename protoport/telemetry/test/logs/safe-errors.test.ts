import { Code, ConnectError, createContextValues, createHandlerContext } from "@connectrpc/connect";
import type { HandlerContext } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { OrderService } from "../../../testing/src/gen/orders/v1/orders_pb.ts";
import { errorCodeOf } from "../../../gateway/src/index.ts";
import { requestIdOf } from "../../src/logs/request-id.ts";
import { createSafeErrors } from "../../src/logs/safe-errors.ts";
import { openLogLines } from "@protoport/testing/process";

const contextWith = (requestSignal: AbortSignal): HandlerContext =>
  createHandlerContext({
    service: OrderService,
    method: OrderService.method.deleteOrder,
    protocolName: "grpc",
    requestMethod: "POST",
    url: "http://localhost/orders.v1.OrderService/DeleteOrder",
    requestSignal,
    contextValues: createContextValues(),
  });

type Outcome = { readonly error: ConnectError; readonly requestId: string; readonly lines: Record<string, unknown>[] };

function outcomeOf(thrown: unknown, signal: AbortSignal = new AbortController().signal): Outcome {
  const { log, lines } = openLogLines("info");
  const context = contextWith(signal);
  return { error: createSafeErrors({ log })(thrown, context), requestId: requestIdOf(context.values), lines: lines() };
}

test.each([
  { name: "a ConnectError for the client", code: Code.NotFound, message: "order 7 not found" },
  { name: "a refusal", code: Code.Unauthenticated, message: "a bearer token is required" },
  { name: "an unavailable database", code: Code.Unavailable, message: "the database is unavailable" },
])("$name is returned unchanged and not logged", ({ code, message }) => {
  const reason = new ConnectError(message, code);
  expect(outcomeOf(reason)).toMatchObject({ error: reason, lines: [] });
});

test.each([
  { name: "an Error", reason: new Error("SQLITE_CORRUPT at /var/lib/orders.db") },
  { name: "a string", reason: "SQLITE_CORRUPT" },
  { name: "undefined", reason: undefined },
  { name: "a ConnectError with the code Internal", reason: new ConnectError("SQLITE_CORRUPT", Code.Internal) },
  { name: "a ConnectError with the code Unknown", reason: new ConnectError("SQLITE_CORRUPT", Code.Unknown) },
  { name: "a ConnectError with the code DataLoss", reason: new ConnectError("SQLITE_CORRUPT", Code.DataLoss) },
])("$name is converted to Internal, and logged with the request id", ({ reason }) => {
  const { error, requestId, lines } = outcomeOf(reason);
  expect({ code: error.code, message: error.rawMessage }).toEqual({ code: Code.Internal, message: "internal error" });
  expect(errorCodeOf(error)).toBe("ERR_HANDLER_FAILED");
  expect(error.cause).toBe(reason);
  expect(lines).toMatchObject([
    { level: "error", errorCode: "ERR_HANDLER_FAILED", requestId, procedure: "/orders.v1.OrderService/DeleteOrder" },
  ]);
});

// The error interceptor and the gateway's toError get the same error, even after the call was aborted.
test("an already converted error is returned unchanged and not logged again", () => {
  const { log, lines } = openLogLines("info");
  const controller = new AbortController();
  const context = contextWith(controller.signal);
  const toError = createSafeErrors({ log });
  const error = toError(new Error("SQLITE_CORRUPT"), context);
  controller.abort();
  expect(toError(error, context)).toBe(error);
  expect(toError(error, contextWith(new AbortController().signal))).toBe(error);
  expect(lines()).toHaveLength(1);
});

test.each(
  // oxfmt-ignore
  [
    ["an exceeded deadline", new ConnectError("the deadline was exceeded", Code.DeadlineExceeded),
      Code.DeadlineExceeded, undefined],
    ["a disconnected client", new ConnectError("the client disconnected", Code.Canceled), Code.Canceled, undefined],
    ["an abort without a reason", undefined, Code.Canceled, "ERR_CALL_CANCELLED"],
    ["an abort with an Internal error", new ConnectError("SQLITE_CORRUPT", Code.Internal), Code.Canceled,
      "ERR_CALL_CANCELLED"],
  ],
)("%s determines the code instead of the handler's error", (_name, abort, want, errorCode) => {
  const controller = new AbortController();
  controller.abort(abort);
  const { error, lines } = outcomeOf(new Error("socket hang up"), controller.signal);
  expect({ code: error.code, errorCode: errorCodeOf(error), lines }).toEqual({ code: want, errorCode, lines: [] });
});
