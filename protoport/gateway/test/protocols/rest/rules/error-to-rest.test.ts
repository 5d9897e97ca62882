import { create, createFileRegistry, createRegistry, toBinary } from "@bufbuild/protobuf";
// oxfmt-ignore
import { anyPack, DurationSchema, FieldDescriptorProto_Type, FieldMaskSchema, FileDescriptorProtoSchema, StructSchema
} from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { createErrorRecordWriter, type ErrorRecordPolicy, type ErrorRecordWriter
} from "../../../../src/protocols/rest/rules/index.ts";
import { NestedSchema, SinkSchema } from "../../../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { throws } from "../../../../../testing/src/callback-forms.ts";
import { errorFormats } from "../../../../src/protocols/rest/rules/error-forms.ts";

const failure = { httpStatus: 404, procedure: "/a.B/C" };

const bodyOf = (error: ConnectError, write: ErrorRecordWriter = createErrorRecordWriter()): unknown =>
  JSON.parse(new TextDecoder().decode(write(error, failure).body));

const problemDetails: ErrorRecordPolicy = (error, { httpStatus }) => ({
  httpStatus,
  contentType: "application/problem+json",
  body: { type: "about:blank", status: httpStatus, title: error.rawMessage },
});

describe("createErrorRecordWriter()", () => {
  test("writes google.rpc.Status with the name of the code", () => {
    const error = new ConnectError("no such order", Code.NotFound);
    const want = { httpStatus: 404, contentType: "application/json" };
    expect(createErrorRecordWriter()(error, failure)).toMatchObject(want);
    expect(bodyOf(error)).toEqual({ code: 5, status: "NOT_FOUND", message: "no such order", details: [] });
  });

  test("writes details as Any, including types with special JSON", () => {
    const details = [
      { desc: NestedSchema, value: { text: "a", number: 7n } },
      { desc: DurationSchema, value: { seconds: 1n } },
      { desc: StructSchema, value: { fields: { a: { kind: { case: "boolValue" as const, value: true } } } } },
      { desc: FieldMaskSchema, value: { paths: ["foo_bar", "a.b_c"] } },
    ];
    expect(bodyOf(new ConnectError("x", Code.Aborted, undefined, details))).toMatchObject({
      details: [
        { "@type": "type.googleapis.com/kitchensink.v1.Nested", text: "a", number: "7" },
        { "@type": "type.googleapis.com/google.protobuf.Duration", value: "1s" },
        { "@type": "type.googleapis.com/google.protobuf.Struct", value: { a: true } },
        { "@type": "type.googleapis.com/google.protobuf.FieldMask", value: "fooBar,a.bC" },
      ],
    });
  });

  test("expands an Any in a detail with the registry", () => {
    const any = anyPack(NestedSchema, create(NestedSchema, { text: "a" }));
    const error = new ConnectError("x", Code.Aborted, undefined, [{ desc: SinkSchema, value: { any } }]);
    expect(bodyOf(error, createErrorRecordWriter(undefined, createRegistry(NestedSchema)))).toMatchObject({
      details: [{ any: { "@type": "type.googleapis.com/kitchensink.v1.Nested", text: "a" } }],
    });
  });

  const incoming = new ConnectError("x", Code.Aborted);
  incoming.details = [
    { type: "kitchensink.v1.Nested", value: toBinary(NestedSchema, create(NestedSchema, { text: "a" })) },
    { type: "google.protobuf.Duration", value: new Uint8Array([0xff]) },
    { type: "not.Known", value: new Uint8Array([1, 2]) },
  ];

  test("expands only details of known types in an upstream error", () => {
    const write = createErrorRecordWriter(undefined, createRegistry(NestedSchema, DurationSchema));
    expect(bodyOf(incoming, write)).toMatchObject({
      details: [
        { "@type": "type.googleapis.com/kitchensink.v1.Nested", text: "a" },
        { "@type": "type.googleapis.com/google.protobuf.Duration", value: "/w==" },
        { "@type": "type.googleapis.com/not.Known", value: "AQI=" },
      ],
    });
  });

  test("expands the types of google/rpc/error_details.proto with any registry", () => {
    const error = new ConnectError("x", Code.Unavailable);
    const reason = new TextEncoder().encode("STOCKOUT");
    error.details = [
      { type: "google.rpc.ErrorInfo", value: new Uint8Array([0x0a, reason.length, ...reason]) },
      { type: "google.rpc.RetryInfo", value: new Uint8Array([0x0a, 2, 8, 3]) },
    ];
    const details = [
      { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "STOCKOUT" },
      { "@type": "type.googleapis.com/google.rpc.RetryInfo", retryDelay: "3s" },
    ];
    expect(bodyOf(error)).toMatchObject({ details });
    expect(bodyOf(error, createErrorRecordWriter(undefined, createRegistry(NestedSchema)))).toMatchObject({ details });
  });

  test("prefers a registry type to the built-in type of the same name", () => {
    const error = new ConnectError("x", Code.Unavailable);
    error.details = [{ type: "google.rpc.ErrorInfo", value: new Uint8Array([0x08, 7]) }];
    const number = { name: "number", jsonName: "number", number: 1, type: FieldDescriptorProto_Type.INT32 };
    const file = { name: "own.proto", package: "google.rpc", messageType: [{ name: "ErrorInfo", field: [number] }] };
    const own = createFileRegistry(create(FileDescriptorProtoSchema, file), () => undefined);
    expect(bodyOf(error, createErrorRecordWriter(undefined, own))).toMatchObject({ details: [{ number: 7 }] });
  });

  test("passes on every detail without a registry", () =>
    expect(bodyOf(incoming)).toMatchObject({ details: [{ value: "CgFh" }, { value: "/w==" }, { value: "AQI=" }] }));

  test("writes the result of a custom errorRecord", () => {
    const error = new ConnectError("no such order", Code.NotFound);
    const record = { httpStatus: 404, contentType: "application/problem+json" };
    expect(createErrorRecordWriter(problemDetails)(error, failure)).toMatchObject(record);
    const want = { type: "about:blank", status: 404, title: "no such order" };
    expect(bodyOf(error, createErrorRecordWriter(problemDetails))).toEqual(want);
  });

  test.each<[name: string, policy: () => unknown, problem: string]>([
    ["throws", throws(new Error("no template")), "no template"],
    ["returns a promise", async () => ({ httpStatus: 404, body: {} }), "synchronous"],
    ["returns nothing", () => undefined, "between 200 and 599, got undefined"],
    ["returns status 199", () => ({ httpStatus: 199, body: {} }), "got 199"],
    ["returns status 600", () => ({ httpStatus: 600, body: {} }), "got 600"],
    ["returns status 404.5", () => ({ httpStatus: 404.5, body: {} }), "got 404.5"],
    ["returns no body", () => ({ httpStatus: 404 }), "body must be JSON"],
    [
      "returns a content type with a line break",
      () => ({ httpStatus: 404, body: {}, contentType: "text/html\r\nx: y" }),
      "content-type",
    ],
  ])("an errorRecord that %s causes an internal error", (_name, policy, problem) => {
    const faults: unknown[] = [];
    // A function in JavaScript may return any value. The type of Object(…) is any.
    const write = createErrorRecordWriter(
      () => Object(policy()),
      undefined,
      undefined,
      (fault) => faults.push(fault),
    );
    const { httpStatus, contentType, body } = write(new ConnectError("no such order", Code.NotFound), failure);
    expect([httpStatus, contentType]).toEqual([500, "application/json"]);
    expect(JSON.parse(new TextDecoder().decode(body))).toMatchObject({ code: 13, message: "internal error" });
    expect(faults).toEqual([expect.objectContaining({ message: expect.stringContaining(problem) })]);
  });

  test.each([200, 599])("errorRecord may return status %i", (httpStatus) => {
    const write = createErrorRecordWriter(() => ({ httpStatus, body: {} }));
    expect(write(new ConnectError("x", Code.NotFound), failure)).toMatchObject({ httpStatus });
  });
});

test.each([
  [402, "Payment Required"],
  [406, "Not Acceptable"],
  [412, "Precondition Failed"],
  [422, "Unprocessable Content"],
  [428, "Precondition Required"],
  [505, "HTTP Version Not Supported"],
  [499, undefined],
])("status %i has the title %j in problem details", (httpStatus, title) => {
  const parts = { code: "ABORTED", number: Code.Aborted, httpStatus, message: "m", details: [] };
  expect(errorFormats.problem.toJson(parts)["title"]).toBe(title);
});
