import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { NestedSchema } from "../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { respondWith } from "../../testing/src/gateway/rest-server.ts";
import type { RestTransportOptions } from "../src/index.ts";
import { ask, asError } from "../../testing/src/gateway/ask-rest.ts";

const readErrorBody: NonNullable<RestTransportOptions["readErrorBody"]> = (body, httpStatus) =>
  typeof body === "object" && body !== null && "fault" in body
    ? new ConnectError(`${JSON.stringify(body["fault"])} ${httpStatus}`, Code.DataLoss)
    : undefined;

const nested = create(NestedSchema, { text: "t" });
const typeUrl = "type.googleapis.com/kitchensink.v1.Nested";
const detail = { type: "kitchensink.v1.Nested", value: toBinary(NestedSchema, nested) };

test.each(
  // oxfmt-ignore
  [
    { name: "google.rpc.Status", status: 404,
      body: { code: 5, message: "gone", details: [{ "@type": typeUrl, text: "t" }] },
      want: { code: Code.NotFound, rawMessage: "gone",
        details: [{ ...detail, debug: { "@type": typeUrl, text: "t" } }] } },
    { name: "the gateway's error record", status: 409,
      body: { code: 6, status: "ALREADY_EXISTS", message: "there", details: [] },
      want: { code: Code.AlreadyExists, rawMessage: "there" } },
    { name: "the error record of Google's APIs", status: 403,
      body: { error: { code: 403, message: "no", status: "PERMISSION_DENIED" } },
      want: { code: Code.PermissionDenied, rawMessage: "no" } },
    { name: "an error record in an array", status: 429,
      body: [{ error: { code: 429, message: "slowly", status: "RESOURCE_EXHAUSTED" } }],
      want: { code: Code.ResourceExhausted, rawMessage: "slowly" } },
    { name: "a number and a message", status: 400, body: { error: 5, message: "no order" },
      want: { code: Code.NotFound, rawMessage: "no order" } },
    { name: "a Connect error", status: 412,
      body: { code: "failed_precondition", message: "not yet",
        details: [{ type: "kitchensink.v1.Nested", value: "CgF0" }] },
      want: { code: Code.FailedPrecondition, rawMessage: "not yet", details: [detail] } },
    { name: "problem+json", status: 422, type: "application/problem+json",
      body: { type: "about:blank", title: "Bad", status: 422, detail: "too bad" },
      want: { code: Code.InvalidArgument, rawMessage: "too bad" } },
    { name: "problem+json with only a title", status: 422, type: "application/problem+json",
      body: { type: "about:blank", title: "Bad" }, want: { code: Code.InvalidArgument, rawMessage: "Bad" } },
    { name: "an HTTP status as code", status: 404, body: { code: 404, message: "gone" },
      want: { code: Code.NotFound, rawMessage: "gone" } },
    { name: "code 0 (OK)", status: 503, body: { code: 0, message: "later" },
      want: { code: Code.Unavailable, rawMessage: "later" } },
    { name: "a detail of an unknown type in bytes", status: 400,
      body: { code: 3, details: [{ "@type": "x/unknown.Type", value: "CgF0" }] },
      want: { code: Code.InvalidArgument, details: [{ type: "unknown.Type", value: detail.value }] } },
    { name: "a detail with a path in its type URL", status: 400,
      body: { code: 3, details: [{ "@type": "types.example/v1/kitchensink.v1.Nested", text: "t" }] },
      want: { code: Code.InvalidArgument, details: [detail] } },
    { name: "a detail from google/rpc/error_details.proto", status: 400,
      body: { code: 3, details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "STOP" }] },
      want: { code: Code.InvalidArgument,
        details: [{ type: "google.rpc.ErrorInfo", value: Uint8Array.from(Buffer.from("\n\x04STOP")) }] } },
    { name: "a detail from google/rpc/error_details.proto as bytes", status: 400,
      body: { code: 3, details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", value: "CgRTVE9Q" }] },
      want: { code: Code.InvalidArgument,
        details: [{ type: "google.rpc.ErrorInfo", value: Uint8Array.from(Buffer.from("\n\x04STOP")) }] } },
    { name: "a detail in JSON that looks like bytes", status: 400,
      body: { code: 3, details: [{ "@type": "x/google.protobuf.StringValue", value: "CgF0" }] },
      want: { code: Code.InvalidArgument, details: [] } },
    { name: "an unknown detail", status: 400,
      body: { code: 3, message: "m", details: [{ "@type": "x/unknown.Type", a: 1 }, null, 7] },
      want: { code: Code.InvalidArgument, rawMessage: "m", details: [] } },
    { name: "unrelated JSON", status: 500, body: [1], want: { code: Code.Unknown, rawMessage: "HTTP status 500" } },
    { name: "invalid JSON", status: 429, body: "{",
      want: { code: Code.ResourceExhausted, rawMessage: "HTTP status 429" } },
    { name: "HTML", status: 502, type: "text/html", body: "<h1>secret</h1>",
      want: { code: Code.Unavailable, rawMessage: "HTTP status 502" } },
    { name: "a text content type with JSON in a parameter", status: 502, type: "text/plain; of=a/json",
      body: { code: 5, message: "gone" }, want: { code: Code.Unavailable, rawMessage: "HTTP status 502" } },
    { name: "100 KB of JSON", status: 401, body: { message: "x".repeat(100_000) },
      want: { code: Code.Unauthenticated, rawMessage: "HTTP status 401" } },
  ],
)("an error response with $name becomes a ConnectError", async ({ status, body, type, want }) => {
  const error = await ask((response) => respondWith(response, status, body, type));
  expect(error).toBeInstanceOf(ConnectError);
  expect(error).toMatchObject(
    want.details === undefined ? want : { ...want, details: want.details.map((each) => expect.objectContaining(each)) },
  );
  if (want.details !== undefined) expect(asError(error).details).toHaveLength(want.details.length);
});

test.each<{ name: string; details: unknown }>([
  { name: "invalid base64", details: [{ type: "kitchensink.v1.Nested", value: "!" }] },
  { name: "invalid base64 for an unknown type", details: [{ "@type": "x/unknown.Type", value: "!" }] },
  { name: "invalid base64 for a known type", details: [{ "@type": typeUrl, value: "!" }] },
  { name: "a field with a wrong JSON type", details: [{ "@type": typeUrl, text: 7 }] },
  { name: "invalid JSON for a Duration", details: [{ "@type": "x/google.protobuf.Duration", value: 7 }] },
  { name: "a type URL without a type", details: [{ "@type": "type.googleapis.com/" }] },
  { name: "a type URL that is not a string", details: [{ "@type": 7 }] },
  { name: "values without a type", details: [{}, [], null, true, "text", 7] },
  { name: "a string instead of an array", details: "text" },
  { name: "an object instead of an array", details: { "@type": typeUrl, text: "t" } },
])("an error response keeps its code and message despite $name in details", async ({ details }) => {
  const readable = { "@type": typeUrl, text: "t" };
  const allDetails = Array.isArray(details) ? [...details, readable] : details;
  const header = { "content-type": "application/json", "x-why": "drought" };
  const error = asError(
    await ask((response) => {
      response.writeHead(404, header).end(JSON.stringify({ code: 9, message: "not yet", details: allDetails }));
    }),
  );
  expect(error).toMatchObject({ code: Code.FailedPrecondition, rawMessage: "not yet" });
  expect(error.metadata.get("x-why")).toBe("drought");
  expect(error.findDetails(NestedSchema)).toMatchObject(Array.isArray(details) ? [{ text: "t" }] : []);
});

test.each(
  // oxfmt-ignore
  [
    [400, Code.InvalidArgument], [401, Code.Unauthenticated], [403, Code.PermissionDenied], [404, Code.NotFound],
    [405, Code.Unimplemented], [409, Code.Aborted], [418, Code.FailedPrecondition], [429, Code.ResourceExhausted],
    [499, Code.Canceled], [500, Code.Unknown], [501, Code.Unimplemented], [502, Code.Unavailable],
    [503, Code.Unavailable], [504, Code.DeadlineExceeded], [599, Code.Internal],
  ] as const,
)("an error response without a body, HTTP status %i becomes code %i in the error", async (status, code) => {
  expect(await ask((response) => response.writeHead(status).end())).toMatchObject({ code });
});

test("an error response with a custom error record is read by readErrorBody", async () => {
  const own = await ask((response) => respondWith(response, 418, { fault: "tea" }), { readErrorBody });
  expect(own).toMatchObject({ code: Code.DataLoss, rawMessage: '"tea" 418' });
  const other = await ask((response) => respondWith(response, 404, { code: 5, message: "gone" }), { readErrorBody });
  expect(other).toMatchObject({ code: Code.NotFound, rawMessage: "gone" });
});

test("an error response passes its header fields on as metadata", async () => {
  const error = await ask((response) => response.writeHead(503, { "retry-after": "7" }).end());
  expect(asError(error).metadata.get("retry-after")).toBe("7");
  expect(error).toMatchObject({ isWireError: true });
});
