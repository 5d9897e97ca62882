import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { gzip } from "../../../gateway/src/protocols/compression/index.ts";
import { errorCodeOf } from "../../../gateway/src/index.ts";
import { codeOfHttpStatus, readStatus, resetError, responseError } from "../../src/client/call-status.ts";
import { readResponseHead } from "../../src/client/client-method.ts";
import { malformedResponseError, transportError } from "../../src/forward/upstream-errors.ts";
import { GreenhouseService, grpcHead, outcomeOf, startScriptedServer } from "@protoport/testing/proxy";
import { createGrpcTransport } from "../../src/client/index.ts";
import { dataFrame, frameFlag, headersFrame } from "@protoport/testing/http";

const internal = Code.Internal;
const notNumber = "the grpc-status of the response is not a number";
const details = "grpc-status-details-bin";

test.each<{ trailer: readonly string[]; code: Code | undefined; message?: string }>([
  { trailer: ["grpc-status", "0"], code: undefined },
  { trailer: [], code: internal, message: "the response has no grpc-status" },
  { trailer: ["grpc-status", "5", "grpc-message", "a%20b%"], code: Code.NotFound, message: "a%20b%" },
  { trailer: ["grpc-status", "5", "grpc-message", "a%20b"], code: Code.NotFound, message: "a b" },
  { trailer: ["grpc-status", "17"], code: Code.Unknown, message: "" },
  { trailer: ["grpc-status", "1"], code: Code.Canceled, message: "" },
  { trailer: ["grpc-status", "00"], code: Code.Unknown, message: "" },
  { trailer: ["grpc-status", "-1"], code: internal, message: notNumber },
  { trailer: ["grpc-status", "5.0"], code: internal, message: notNumber },
  { trailer: ["grpc-status", ""], code: internal, message: notNumber },
  { trailer: ["grpc-status", "0", "grpc-status", "0"], code: internal, message: notNumber },
  { trailer: ["grpc-status", "5", "grpc-message", "none", details, "?"], code: Code.NotFound, message: "none" },
  // The details have the code 0.
  { trailer: ["grpc-status", "5", "grpc-message", "none", details, "CAA"], code: Code.NotFound, message: "none" },
])("the trailer $trailer leads to code $code for callers", ({ trailer, code, message }) => {
  const error = readStatus(trailer, []);
  expect([error?.code, error?.rawMessage]).toEqual([code, message]);
});

test("a failed call's error has the header's and the trailer's metadata", () => {
  const trailer = ["grpc-status", "5", "x-a", "1"];
  const error = readStatus(trailer, ["x-b", "2", "x-a", "3"]);
  expect(["x-a", "x-b"].map((name) => error?.metadata.get(name))).toEqual(["1, 3", "2"]);
  const undecoded = readStatus([...trailer, details, "?"], ["x-b", "2"]);
  expect([undecoded?.metadata.get("x-b"), undecoded]).toMatchObject(["2", { isWireError: true }]);
});

test.each([
  [200, Code.Unknown],
  [301, Code.Unknown],
  [400, Code.Internal],
  [401, Code.Unauthenticated],
  [403, Code.PermissionDenied],
  [404, Code.Unimplemented],
  [429, Code.Unavailable],
  [500, Code.Unknown],
  [502, Code.Unavailable],
  [503, Code.Unavailable],
  [504, Code.Unavailable],
  [666, Code.Unknown],
])("HTTP %i leads to code %i without a grpc-status", (httpStatus, code) => {
  expect(codeOfHttpStatus(httpStatus)).toBe(code);
});

test.each([
  [7, Code.Unavailable],
  [8, Code.Canceled],
  [11, Code.ResourceExhausted],
  [12, Code.PermissionDenied],
  [0, Code.Internal],
  [1, Code.Internal],
  [2, Code.Internal],
  [99, Code.Internal],
])("HTTP/2 error %i leads to code %i when a stream is reset", (reset, code) => {
  expect(resetError(reset).code).toBe(code);
});

const type = (value: string): readonly string[] => ["content-type", value];

test.each<{ httpStatus?: number; fields: readonly string[]; want: string | undefined }>([
  { fields: type("application/grpc"), want: undefined },
  { fields: type("application/GRPC+proto ; charset=utf-8"), want: undefined },
  { fields: [...type("application/grpc"), "grpc-encoding", "Identity"], want: undefined },
  { fields: [...type("application/grpc"), "grpc-encoding", "GZIP"], want: "gzip" },
  {
    fields: [...type("application/grpc"), "grpc-encoding", "br"],
    want: "[internal] the grpc-encoding of the response is not supported",
  },
  { fields: type("application/grpc+json"), want: "[internal] the content type is not application/grpc" },
  { fields: type("application/grpc-web+proto"), want: "[internal] the content type is not application/grpc" },
  { fields: type("x/application/grpc"), want: "[unknown] the content type is not application/grpc" },
  { fields: type("application/grpcx"), want: "[unknown] the content type is not application/grpc" },
  { fields: [], want: "[unknown] the content type is not application/grpc" },
  { httpStatus: 503, fields: type("application/grpc"), want: "[unavailable] HTTP 503" },
  { httpStatus: 503, fields: [...type("text/html"), "grpc-status", "5"], want: "[unavailable] HTTP 503" },
  { httpStatus: 503, fields: [...type("application/grpc"), "grpc-status", "5"], want: undefined },
])("the header $httpStatus $fields leads to $want in a response", ({ httpStatus = 200, fields, want }) => {
  const head = readResponseHead({ fields: [...fields], httpStatus }, [gzip]);
  expect(head instanceof ConnectError ? head.message : head?.name).toBe(want);
});

test.each([
  { error: new ConnectError("a", Code.InvalidArgument), code: internal, message: "the response is not valid: a" },
  { error: new ConnectError("a", Code.ResourceExhausted), code: Code.ResourceExhausted, message: "a" },
  { error: new TypeError("a"), code: internal, message: "a" },
])("a parser's error leads to code $code for the caller", ({ error, code, message }) => {
  expect(responseError(error)).toMatchObject({ code, rawMessage: message });
});

test.each([
  { code: Code.Unavailable, reported: Code.Unavailable, id: "ERR_UPSTREAM_UNAVAILABLE", retryAfter: "1" },
  { code: Code.DeadlineExceeded, reported: Code.DeadlineExceeded, id: "ERR_DEADLINE_EXCEEDED", retryAfter: null },
  { code: Code.Canceled, reported: Code.Canceled, id: undefined, retryAfter: null },
  { code: Code.Internal, reported: Code.Internal, id: "ERR_UPSTREAM_RESPONSE", retryAfter: null },
  { code: Code.ResourceExhausted, reported: Code.ResourceExhausted, id: "ERR_UPSTREAM_RESPONSE", retryAfter: null },
])("code $code becomes $id if the upstream sent no status", ({ code, reported, id, retryAfter }) => {
  const error = transportError(new ConnectError("a", code));
  expect([error.code, errorCodeOf(error), error.metadata.get("retry-after")]).toEqual([reported, id, retryAfter]);
  // The gateway's own errors are reported unchanged.
  if (id !== undefined) expect(transportError(error)).toBe(error);
});

test.each([
  { code: Code.ResourceExhausted, reported: Code.ResourceExhausted },
  { code: Code.Unknown, reported: Code.Internal },
])("a malformed response's code $code becomes $reported for the caller", ({ code, reported }) => {
  const error = malformedResponseError(new ConnectError("a", code));
  expect(error).toMatchObject({ code: reported, rawMessage: "the response of the service is malformed: a" });
});

/** A message of 1,000 bytes, with an unknown field, in an envelope. */
const largest = Buffer.concat([Buffer.of(0, 0, 0, 0x03, 0xe8, 0x7a, 0xe5, 0x07), Buffer.alloc(997)]);

const tooLarge = "ResourceExhausted: the response is larger than 1000 bytes";

test.each([
  { name: "with as many bytes as the limit", more: Buffer.alloc(0), isEnded: true, want: "ok" },
  { name: "with one byte more than the limit", more: Buffer.alloc(1), isEnded: false, want: tooLarge },
])("a response $name in two pieces gets $want", async ({ more, isEnded, want }) => {
  const pieces = [largest.subarray(0, 600), Buffer.concat([largest.subarray(600), more])];
  await using server = await startScriptedServer({
    request: (connection, id) => {
      connection.send(headersFrame(id, grpcHead), ...pieces.map((piece) => dataFrame(id, piece)));
      if (isEnded) connection.send(headersFrame(id, [["grpc-status", "0"]], frameFlag.endStream));
    },
  });
  await using transport = createGrpcTransport({ baseUrl: server.baseUrl, readMaxBytes: 1_000 });
  expect(await outcomeOf(createClient(GreenhouseService, transport).waterBed({}))).toBe(want);
});
