import { Code, ConnectError, createContextValues } from "@connectrpc/connect";
import { expect, test } from "vitest";
import type { CompletedRequest } from "../../../gateway/src/index.ts";
import {
  httpAttributes,
  httpSeriesKey,
  rpcAttributes,
  rpcSeriesKey,
} from "../../src/conventions/request-attributes.ts";

// oxfmt-ignore
const baseRequest: CompletedRequest = { procedure: undefined, protocol: "rest", httpMethod: "GET", path: "/",
  httpRoute: undefined, httpVersion: "1.1", scheme: "http", httpStatus: 200, error: undefined, durationMs: 1,
  contextValues: createContextValues(), peer: { address: "127.0.0.1", port: 1 } };

type Outcome = { name: string; httpStatus: number; httpRoute?: string; code?: Code; procedure?: string; want?: string };
const procedure = "/garden.Service/Water";

// A service may respond to all RPC errors with status 400.
// oxfmt-ignore
const outcomes: readonly Outcome[] = [
  { name: "a success", httpStatus: 200 },
  { name: "a request whose client disconnected", httpStatus: 0 },
  { name: "a call that the client cancelled", httpStatus: 0, code: Code.Canceled },
  { name: "a response that could not be written", httpStatus: 0, code: Code.Internal, want: "internal" },
  { name: "a call whose deadline was exceeded", httpStatus: 0, code: Code.DeadlineExceeded, want: "deadline_exceeded" },
  { name: "a failed probe", httpStatus: 503, want: "503" },
  { name: "an HTTP method that no server implements", httpStatus: 501 },
  { name: "an unknown path", httpStatus: 404, code: Code.NotFound },
  { name: "an HTTP method that the path does not accept", httpStatus: 405, code: Code.Unimplemented },
  { name: "an RPC without a handler", httpStatus: 400, procedure, code: Code.Unimplemented, want: "unimplemented" },
  { name: "an RPC that failed with UNKNOWN", httpStatus: 400, procedure, code: Code.Unknown, want: "unknown" },
  { name: "an RPC that exceeded its deadline", httpStatus: 400, procedure, code: Code.DeadlineExceeded,
    want: "deadline_exceeded" },
  { name: "an RPC that failed with INTERNAL", httpStatus: 500, procedure, code: Code.Internal, want: "internal" },
  { name: "an RPC that failed with UNAVAILABLE", httpStatus: 400, procedure, code: Code.Unavailable,
    want: "unavailable" },
  { name: "an RPC that failed with DATA_LOSS", httpStatus: 400, procedure, code: Code.DataLoss, want: "data_loss" },
  ...[
    Code.Canceled,
    Code.InvalidArgument,
    Code.NotFound,
    Code.AlreadyExists,
    Code.PermissionDenied,
    Code.ResourceExhausted,
    Code.FailedPrecondition,
    Code.Aborted,
    Code.OutOfRange,
    Code.Unauthenticated,
  ].map((code) => ({ name: `an RPC that failed with ${Code[code]}`, httpStatus: 400, procedure, code })),
];

function outcomeOf({ code, ...rest }: Outcome): CompletedRequest {
  return { ...baseRequest, ...rest, error: code === undefined ? undefined : new ConnectError("", code) };
}

const missing = { name: "an endpoint that is not implemented", httpStatus: 501, httpRoute: "/livez", want: "501" };

test.each([...outcomes, missing])("$name has the error.type $want in httpAttributes", (outcome) => {
  expect(httpAttributes(outcomeOf(outcome))["error.type"]).toBe(outcome.want);
});

test.each([
  { protocol: "grpc", code: Code.Canceled, want: "CANCELLED" },
  { protocol: "grpc-web", code: Code.NotFound, want: "NOT_FOUND" },
  { protocol: "grpc", code: undefined, want: "OK" },
  { protocol: "mcp", code: Code.NotFound, want: "NOT_FOUND" },
  { protocol: "mcp", code: undefined, want: "OK" },
  { protocol: "connect", code: Code.Canceled, want: "canceled" },
  { protocol: "connect", code: undefined, want: undefined },
] as const)("a call over $protocol has the status $want in the protocol's spelling", ({ protocol, code, want }) => {
  const error = code === undefined ? undefined : new ConnectError("", code);
  expect(rpcAttributes({ ...baseRequest, protocol, error })["rpc.response.status_code"]).toBe(want);
});

test.each([
  { protocol: "grpc", system: "grpc", code: Code.DataLoss, want: "DATA_LOSS" },
  { protocol: "grpc-web", system: "grpc", code: Code.Unimplemented, want: "UNIMPLEMENTED" },
  { protocol: "mcp", system: "jsonrpc", code: Code.Internal, want: "INTERNAL" },
  { protocol: "connect", system: "connectrpc", code: Code.Unavailable, want: "unavailable" },
  { protocol: "connect", system: "connectrpc", code: Code.NotFound, want: undefined },
] as const)("a call over $protocol has the system $system and the error.type $want in its attributes", (row) => {
  const { protocol, system, code, want } = row;
  const attributes = rpcAttributes({ ...baseRequest, procedure, protocol, error: new ConnectError("", code) });
  const recorded = ["rpc.system.name", "rpc.method", "error.type"].map((key) => attributes[key]);
  expect(recorded).toEqual([system, "garden.Service/Water", want]);
  expect(rpcAttributes({ ...baseRequest, protocol, error: undefined })["rpc.method"]).toBe("_OTHER");
});

test("httpAttributes names the methods of RFC 9110 and PATCH, and no others", () => {
  const methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
  const nameOf = (httpMethod: string): unknown => httpAttributes({ ...baseRequest, httpMethod })["http.request.method"];
  expect([methods.map(nameOf), ["get", "QUERY", ""].map(nameOf)]).toEqual([methods, ["_OTHER", "_OTHER", "_OTHER"]]);
});

test("a request without a response has no status attribute", () => {
  const statuses = outcomes.map((outcome) => httpAttributes(outcomeOf(outcome))["http.response.status_code"]);
  expect(statuses).toEqual(outcomes.map(({ httpStatus }) => (httpStatus === 0 ? undefined : httpStatus)));
});

test("httpSeriesKey is equal exactly for requests with equal attributes", () => {
  const requests = outcomes.flatMap((outcome) =>
    ["GET", "HEAD", "PATCH", "MINE", "YOURS"].flatMap((httpMethod) =>
      (["2.0", "1.1", "1.0", undefined] as const).flatMap((httpVersion) =>
        (["http", "https"] as const).map((scheme) => ({ ...outcomeOf(outcome), httpMethod, httpVersion, scheme })),
      ),
    ),
  );
  expectOneKeyPerAttributes(requests.map((each) => [httpSeriesKey(each), JSON.stringify(httpAttributes(each))]));
});

test("rpcSeriesKey is equal exactly for calls with equal attributes", () => {
  const calls = outcomes
    .map((outcome) => ({ ...outcomeOf(outcome), procedure }))
    .flatMap((call) => (["grpc", "grpc-web", "connect", "mcp"] as const).map((protocol) => ({ ...call, protocol })));
  expectOneKeyPerAttributes(calls.map((call) => [rpcSeriesKey(call), JSON.stringify(rpcAttributes(call))]));
});

function expectOneKeyPerAttributes(series: readonly (readonly [key: number, attributes: string])[]): void {
  const pairs = new Set(series.map(([key, attributes]) => `${key} ${attributes}`));
  const counts = [new Set(series.map(([key]) => key)).size, new Set(series.map(([, attributes]) => attributes)).size];
  expect(counts).toEqual([pairs.size, pairs.size]);
}
