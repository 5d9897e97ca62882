import { gunzipSync, gzipSync } from "node:zlib";
import { create, type DescService, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { RetryInfoSchema } from "../../src/protobuf/gen/google/rpc/error_details_pb.ts";
import { readDescriptorSet } from "../../src/protobuf/descriptors/index.ts";
import { createFetchGateway } from "../../src/fetch/entry.ts";
import type { RestOptions } from "../../src/index.ts";
import { type Address, exchangeHttp1, type Field, fieldValue } from "@protoport/testing/http";
import { setOfFiles } from "../../../testing/src/gateway/optional-files.ts";
import { shared, startKitchenSink, stringField, type TestGateway, throws } from "@protoport/testing";
import { EchoSchema, NestedSchema, SinkSchema } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";

const types = ["application/x-protobuf", "application/protobuf", "application/octet-stream"];
const [type = ""] = types;
type Sent = { readonly header?: readonly Field[]; readonly body?: string | Uint8Array };

interface Received {
  readonly httpStatus: number;
  readonly contentType: string | undefined;
  readonly vary: string | undefined;
  readonly body: Buffer;
}

async function exchange(address: Address, request: string, { header = [], body }: Sent = {}): Promise<Received> {
  const [httpMethod = "", path = ""] = request.split(" ");
  const sent = { httpMethod, path, header, ...(body !== undefined && { body: Buffer.from(body) }) };
  const response = await exchangeHttp1(address, sent);
  return {
    httpStatus: response.httpStatus,
    contentType: fieldValue(response.header, "content-type"),
    vary: fieldValue(response.header, "vary"),
    body: response.body,
  };
}

const sinkOf = (init: MessageInitShape<typeof SinkSchema>) => toBinary(SinkSchema, create(SinkSchema, init));

const startWith = (rest: RestOptions): Promise<TestGateway> => startKitchenSink({ nameOptions: false, rest });

/** Sends bytes as the body field, which is a message or a proto2 group of the same type. */
async function statusOfPart(field: string): Promise<number> {
  const typed = { typeName: ".groups.Whole.Group", label: FieldDescriptorProto_Label.OPTIONAL };
  const { MESSAGE, GROUP } = FieldDescriptorProto_Type;
  const nestedType = [{ name: "Group", field: [stringField("text", 1)] }];
  const fields = Object.entries({ part: MESSAGE, group: GROUP }).map(([name, kind], at) => {
    return { name, jsonName: name, number: at + 1, type: kind, ...typed };
  });
  const method = [{ name: "Add", inputType: ".groups.Whole", outputType: ".groups.Whole" }];
  const parts = { messageType: [{ name: "Whole", nestedType, field: fields }], service: [{ name: "Groups", method }] };
  const set = setOfFiles([{ name: "groups.proto", package: "groups", syntax: "proto2", ...parts }]);
  const [groups = expect.unreachable()] = readDescriptorSet(set).services;
  const none: Partial<ServiceImpl<DescService>> = {};
  const handlers = Object.assign(none, { add: (request: unknown) => request });
  const rules = [{ selector: "groups.Groups.Add", pattern: { case: "post", value: "/groups" }, body: field }] as const;
  const rest = { service: () => ({ protobufBodies: true }), rules };
  const { fetch } = createFetchGateway({ routes: (router) => void router.service(groups, handlers), rest });
  const headers = { "content-type": type };
  const body = new Uint8Array([0x0a, 1, 0x61]);
  return (await fetch(new Request("http://gateway/groups", { method: "POST", headers, body }))).status;
}

describe("protobufBodies", () => {
  const gateway = shared(() => startWith({ service: () => ({ protobufBodies: true }) }));
  const send = (request: string, sent?: Sent): Promise<Received> => exchange(gateway.address, request, sent);

  test.each(types)("accepts %s and responds with the same type", async (contentType) => {
    const body = sinkOf({ fString: "a", fInt64: 2n ** 60n, nested: { text: "n" } });
    const received = await send("POST /v1/sinks", { header: [["content-type", contentType]], body });
    expect(received).toMatchObject({ httpStatus: 200, contentType });
    const want = { rpc: "Create", sink: { fString: "a", fInt64: 2n ** 60n, nested: { text: "n" } } };
    expect(fromBinary(EchoSchema, received.body)).toMatchObject(want);
  });

  test.each([
    { accept: "application/json", sent: type, want: "application/json" },
    { accept: type, sent: "application/json", want: type },
    { accept: "application/protobuf;q=0.5, application/octet-stream", sent: type, want: "application/octet-stream" },
    { accept: "*/*", sent: type, want: type },
    { accept: "*/*", sent: "application/json", want: "application/json" },
    { accept: "text/html, */*;q=0.1", sent: "application/json", want: "application/json" },
    { accept: "text/html", sent: type, want: type },
    { accept: undefined, sent: `${type}; messageType="kitchensink.v1.Sink"`, want: type },
    { accept: undefined, sent: "Application/X-Protobuf", want: type },
  ])("with Accept $accept and Content-Type $sent, responds in the $want format", async ({ accept, sent, want }) => {
    const header: Field[] = [["content-type", sent], ...(accept === undefined ? [] : [["accept", accept] as const])];
    const body = sent === "application/json" ? "{}" : sinkOf({ fBool: true });
    const { httpStatus, contentType, vary } = await send("POST /v1/sinks", { header, body });
    expect([httpStatus, contentType, vary]).toEqual([200, want, expect.stringContaining("accept")]);
  });

  test("a GET request without a body gets a binary message", async () => {
    const { contentType, body } = await send("GET /v1/query?f_string=a", { header: [["accept", type]] });
    expect([contentType, fromBinary(EchoSchema, body)]).toMatchObject([type, { rpc: "Query", sink: { fString: "a" } }]);
  });

  test("the path overrides a field of the body", async () => {
    const body = sinkOf({ fInt64: 8n, fString: "a" });
    const received = await send("PUT /v1/sinks/7", { header: [["content-type", type]], body });
    expect(fromBinary(EchoSchema, received.body).sink).toMatchObject({ fInt64: 7n, fString: "a" });
  });

  test("a body is refused if path and body set different oneof members", async () => {
    const body = sinkOf({ choice: { case: "choiceNumber", value: 1n } });
    const received = await send("PUT /v1/choices/a", { header: [["content-type", type]], body });
    expect(received).toMatchObject({ httpStatus: 400, contentType: type });
  });

  test("decodes the body as the message in the rule's body field", async () => {
    const nested = toBinary(NestedSchema, create(NestedSchema, { text: "b", number: 3n }));
    const header: Field[] = [["content-type", type]];
    const received = await send("PATCH /v1/nested/a?f_string=q", { header, body: nested });
    const { sink } = fromBinary(EchoSchema, received.body);
    expect(sink).toMatchObject({ fString: "q", nested: { text: "a", number: 3n } });
  });

  test("decodes an empty body to the default message", async () => {
    const received = await send("POST /v1/sinks", { header: [["content-type", type]], body: "" });
    expect(fromBinary(EchoSchema, received.body)).toMatchObject({ rpc: "Create" });
  });

  test("responds in JSON if the response_body field is not a message", async () => {
    const header: Field[] = [["accept", type]];
    const nested = await send("GET /v1/response/nested", { header });
    const tags = await send("GET /v1/response/tags", { header });
    expect([nested.contentType, nested.httpStatus]).toEqual([type, 200]);
    fromBinary(NestedSchema, nested.body);
    expect([tags.contentType, Array.isArray(JSON.parse(String(tags.body)))]).toEqual(["application/json", true]);
  });

  test("google.protobuf.Empty is encoded as an empty body", async () => {
    const received = await send("DELETE /v1/sinks/7", { header: [["accept", type]] });
    expect(received).toMatchObject({ httpStatus: 200, contentType: type, body: Buffer.alloc(0) });
  });

  test("decompresses requests and compresses large responses", async () => {
    const text = "a".repeat(10_000);
    const response = await exchangeHttp1(gateway.address, {
      httpMethod: "POST",
      path: "/v1/sinks",
      header: Object.entries({ "content-type": type, "content-encoding": "gzip", "accept-encoding": "gzip" }),
      body: gzipSync(sinkOf({ fString: text })),
    });
    expect(fieldValue(response.header, "content-encoding")).toBe("gzip");
    expect(fromBinary(EchoSchema, gunzipSync(response.body)).sink?.fString).toBe(text);
  });

  test.each([
    { name: "a truncated message", body: Buffer.from([0x0a, 0x05, 0x01]) },
    { name: "JSON", body: Buffer.from("{}") },
    { name: "a group that is not closed", body: Buffer.from([0x0b]) },
  ])("refuses $name with a binary INVALID_ARGUMENT error", async ({ body }) => {
    const received = await send("POST /v1/sinks", { header: [["content-type", type]], body });
    expect([received.httpStatus, received.contentType, received.body[1]]).toEqual([400, type, Code.InvalidArgument]);
  });

  test.each(["PATCH /v1/body/tags", "PATCH /v1/body/labels", "PATCH /v1/body/int64"])(
    "%s accepts only JSON, because its body is not a message",
    async (request) => {
      const { httpStatus } = await send(request, { header: [["content-type", type]], body: new Uint8Array([1]) });
      expect(httpStatus).toBe(415);
    },
  );

  test.each([
    { name: "a message", field: "part", status: 200 },
    { name: "a proto2 group", field: "group", status: 415 },
  ])("returns status $status if the rule's body field is $name, sent in binary", async ({ field, status }) => {
    expect(await statusOfPart(field)).toBe(status);
  });

  test("an unsupported content type is refused with the accepted types", async () => {
    const { httpStatus, body } = await send("POST /v1/sinks", { header: [["content-type", "text/plain"]], body: "a" });
    const { message }: { message?: unknown } = JSON.parse(String(body));
    const want = [415, `the content type must be ${types.join(", ")} or application/json in UTF-8, got "text/plain"`];
    expect([httpStatus, message]).toEqual(want);
  });

  test("is off by default", async () => {
    await using strict = await startWith({});
    const header: Field[] = [["content-type", type]];
    const refused = await exchange(strict.address, "POST /v1/sinks", { header, body: sinkOf({ fBool: true }) });
    const answered = await exchange(strict.address, "GET /v1/query", { header: [["accept", type]] });
    expect([refused.httpStatus, answered.contentType, answered.vary]).toEqual([415, "application/json", undefined]);
  });
});

describe("an RPC error for a client that accepts protobuf", () => {
  const details = [{ desc: RetryInfoSchema, value: { retryDelay: { seconds: 3n } } }];
  const fail = throws(new ConnectError("no sink", Code.NotFound, undefined, details));
  test.each([
    { from: "an interceptor", options: { interceptors: [() => fail] }, rest: {}, want: type },
    { from: "admit", options: { admit: fail }, rest: {}, want: type },
    { from: "admit", options: { admit: fail }, rest: { errors: "google" as const }, want: "application/json" },
    {
      from: "an interceptor",
      options: { interceptors: [() => fail] },
      rest: { errorRecord: () => ({ httpStatus: 418, body: {} }) },
      want: "application/json",
    },
  ])("from $from has Content-Type $want with the options $rest", async ({ options, rest, want }) => {
    await using gateway = await startKitchenSink({
      rest: { ...rest, service: () => ({ protobufBodies: true }) },
      ...options,
    });
    const received = await exchange(gateway.address, "GET /v1/query", { header: [["accept", type]] });
    expect([received.contentType, received.vary]).toEqual([want, expect.stringContaining("accept")]);
    if (want !== type) return;
    // Code 5, the message, and an Any whose RetryInfo has three seconds (google.rpc.Status).
    const typeUrl = "type.googleapis.com/google.rpc.RetryInfo";
    const any = [0x0a, typeUrl.length, ...Buffer.from(typeUrl), 0x12, 4, 0x0a, 2, 0x08, 3];
    const status = [0x08, 5, 0x12, 7, ...Buffer.from("no sink"), 0x1a, any.length, ...any];
    expect([received.httpStatus, [...received.body]]).toEqual([404, status]);
  });
});

describe("prettyJson", () => {
  const gateway = shared(() => startWith({ service: () => ({ prettyJson: true }) }));
  const pretty = `{
  "rpc": "Query",
  "sink": {
    "fDouble": -0,
    "fString": "a\\"{[,:]}\\\\",
    "tags": [
      "x",
      "y"
    ],
    "nested": {}
  }
}`;
  const query = "f_double=-0&f_string=a%22%7B%5B,:%5D%7D%5C&tags=x&tags=y&nested.text=";

  test.each([
    ["Accept: application/json+pretty", [["accept", "application/json+pretty"] as const], ""],
    ["?pretty", [], "&pretty"],
    ["?pretty=", [], "&pretty="],
    ["?pretty=true with Accept: application/json", [["accept", "application/json"] as const], "&pretty=true"],
  ])("%s indents the JSON response", async (_by, header, suffix) => {
    const received = await exchange(gateway.address, `GET /v1/query?${query}${suffix}`, { header });
    expect(received).toMatchObject({ httpStatus: 200, contentType: "application/json" });
    expect(String(received.body)).toBe(pretty);
  });

  test("?pretty indents errors", async () => {
    const { body } = await exchange(gateway.address, "GET /v1/query?pretty&f_int32=x");
    expect(String(body)).toMatch(/^\{\n {2}"code": 3,\n {2}"status": "INVALID_ARGUMENT",\n/);
    expect(String(body)).toMatch(/"details": \[\]\n\}$/);
  });

  test("accepts application/json+pretty as the Content-Type of a request", async () => {
    const header: Field[] = [["content-type", "application/json+pretty"]];
    const received = await exchange(gateway.address, "POST /v1/sinks", { header, body: '{\n  "fString": "a"\n}' });
    expect(String(received.body)).toBe('{"rpc":"Create","sink":{"fString":"a"}}');
  });

  test("is off by default", async () => {
    await using strict = await startWith({});
    const { httpStatus } = await exchange(strict.address, "GET /v1/query?pretty");
    const { body } = await exchange(strict.address, "GET /v1/query", {
      header: [["accept", "application/json+pretty"]],
    });
    expect([httpStatus, String(body)]).toEqual([400, '{"rpc":"Query","sink":{}}']);
  });
});
