import type { RestServiceOptions } from "../../src/index.ts";
import type { Field } from "../../../testing/src/http/exchange.ts";

// The requests in grpc-gateway's integration tests, reworded from examples/internal/integration at commit 9648db43
// (August 2026). Excludes its eight tests about an OpenAPI document (TestABESpec), which send no requests.

/** One request, and the expected response. */
export interface Case {
  /** The grpc-gateway tests that send the request, with the variant in parentheses if a test has several. */
  readonly of: readonly string[];
  readonly request: string;
  readonly header?: readonly Field[];
  readonly body?: string;
  /** The response that the tests expect, as status and body. A JSON body is parsed. */
  readonly response: readonly [httpStatus: number, body?: unknown];
  /** The response header fields that the tests check. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly trailer?: readonly Field[];
  /** Whether the client disconnects as soon as the handler runs, which must abort the handler's signal. */
  readonly leaves?: true;
  /** The options that are all required to get grpc-gateway's response. */
  readonly by?: readonly (keyof RestServiceOptions)[];
  /** The gateway's response if no option leads to grpc-gateway's, and the sentence that contradicts grpc-gateway. */
  readonly refused?: Otherwise;
  /** The gateway's response if no option leads to grpc-gateway's, although no sentence contradicts grpc-gateway. */
  readonly missing?: Otherwise;
}

type Otherwise = { readonly response: readonly [httpStatus: number, body?: unknown]; readonly because: string };

/** Returns a case from one or several grpc-gateway tests. */
const sent = (
  of: string | readonly string[],
  request: string,
  response: Case["response"],
  more: Omit<Case, "of" | "request" | "response"> = {},
): Case => ({ of: typeof of === "string" ? [of] : of, request, response, ...more });

const json: readonly Field[] = [["content-type", "application/json"]];
const inJson = (body: string): Pick<Case, "header" | "body"> => ({ header: json, body });
const form: readonly Field[] = [["content-type", "application/x-www-form-urlencoded"]];
const te: Field = ["te", "trailers"];
const trailer: readonly Field[] = Object.entries({ "grpc-trailer-bar": "bar2", "grpc-trailer-foo": "foo2" });
const early = { "grpc-metadata-foo": "foo1", "grpc-metadata-bar": "bar1" };

// oxfmt-ignore
const prefixes: readonly Case[] = ["v1", "v2"].flatMap((prefix): readonly Case[] => [
  sent(`TestEcho/${prefix} testEcho`, `POST /${prefix}/letters/a`, [200, { id: "a" }],
    { ...inJson("{}"), by: ["ignoreBodies"] }),
  sent(prefix === "v1" ? "TestEchoClient" : "TestUnannotatedEchoClient", `POST /${prefix}/letters/a`,
    [200, { id: "a" }]),
  sent(`TestEcho/${prefix} testEchoOneof`, `GET /${prefix}/letters/a/10/go`,
    [200, { id: "a", number: "10", language: "go" }]),
  sent(`TestEcho/${prefix} testEchoOneof1`, `GET /${prefix}/letters1/a/10/go`,
    [200, { id: "a", line: "10", status: { text: "go" } }]),
  sent(`TestEcho/${prefix} testEchoOneof2`, `GET /${prefix}/letters2/go`, [200, { mark: { text: "go" } }]),
  sent(["over gRPC", "in process"].map((way) => `TestEcho/${prefix} testEchoBody (with trailers, ${way})`),
    `POST /${prefix}/letter_body`, [200, { id: "a" }],
    { header: [te], body: '{"id":"a"}', fields: early, trailer, by: ["grpcMetadata"] }),
  sent(["over gRPC", "in process"].map((way) => `TestEcho/${prefix} testEchoBody (without trailers, ${way})`),
    `POST /${prefix}/letter_body`, [200, { id: "a" }], { body: '{"id":"a"}', fields: early, by: ["grpcMetadata"] }),
  sent(prefix === "v1" ? "TestEchoBodyClient" : "TestUnannotatedEchoBodyClient", `POST /${prefix}/letter_body`,
    [200, { id: "a" }], inJson('{"id":"a"}')),
  sent(`TestEcho/${prefix} testEchoWithNonASCIIHeaderValues`, `POST /${prefix}/letters/a`, [200, { id: "a" }],
    { header: [...json, ["grpc-metadata-location", "Gjøvik"]], body: "{}", by: ["ignoreBodies"] }),
  sent(`TestEcho/${prefix} testEchoWithInvalidHeaderKey`, `POST /${prefix}/letters/a`, [200, { id: "a" }],
    { header: [...json, ["grpc-metadata-foo+bar", "Hello"]], body: "{}", by: ["ignoreBodies"] }),
]);

/** Tests that send the same request with both prefixes. */
const twice = (name: string): readonly string[] => [`TestEcho/v1 ${name}`, `TestEcho/v2 ${name}`];

// oxfmt-ignore
const letters: readonly Case[] = [
  sent(twice("testEchoPathParamOverwrite"), "GET /v1/letters/place/here?place=there", [200, { place: "here" }],
    { by: ["lenient"] }),
  sent(twice("testEchoNested"), "GET /v1/letters/label/a?label.value=b", [200, { label: { name: "a", value: "b" } }]),
  sent(twice("testEchoNestedOverride"), "GET /v1/letters/label/a?label.name=b", [200, { label: { name: "a" } }],
    { by: ["lenient"] }),
  sent("TestEchoBody2Client", "PUT /v1/letter_body/a", [200, { id: "a", mark: { text: "b" } }], inJson('{"text":"b"}')),
  sent("TestEchoUnauthorized", "GET /v1/refused",
    [401, { code: 16, status: "UNAUTHENTICATED", message: "no", details: [] }],
    { fields: { "www-authenticate": "Bearer" } }),
  sent("TestEchoPatch", "PATCH /v1/free_form",
    [200, { body: { struct: { a: { b: "c" } }, value: { d: "e" } }, updateMask: "struct.a.b,value.d" }],
    { body: '{"struct":{"a":{"b":"c"}},"value":{"d":"e"}}',
      refused: { response: [200,
          { body: { struct: { a: { b: "c" } }, value: { d: "e" } }, updateMask: "struct,value" }],
        because: "field_mask.proto: a repeated field, as the map in a Struct is, stands at the end of a path only" } }),
  sent("TestForwardResponseOption", "GET /v1/greetings/Alice", [200, { name: "Alice" }],
    { fields: { "content-type": "application/vnd.docker.plugins.v1.1+json" },
      missing: { response: [200, { name: "Alice" }],
        because: "JSON is application/json, as the OpenAPI document says; a google.api.HttpBody has any type" } }),
  sent("TestForwardResponseOptionHTTPPathPattern", "GET /v1/greetings/Alice", [200, { name: "Alice" }],
    { fields: { "content-type": "/v1/greetings/{name}" },
      refused: { response: [200, { name: "Alice" }],
        because: "RFC 9110 §8.3.1: a content type is a media type, type/subtype; this one is a path" } }),
  sent("TestNotImplemented", "GET /v1/letters/a", [501],
    { refused: { response: [405,
          { code: 12, status: "UNIMPLEMENTED", message: "GET is not allowed for this path", details: [] }],
        because: "RFC 9110 §15.5.6: 405 is for a method that is known, and not supported by this resource" } }),
  sent("TestInvalidArgument", "GET /v1/letters/a/no", [400]),
  sent("TestUnknownPath", "POST /", [404], inJson("{}")),
  sent("TestRequestParseForm", "POST /v1/letters/a", [200, { id: "a", number: "1" }],
    { header: form, body: "number=1",
      refused: { response: [200, { id: "a" }],
        because: "http.proto, body: a rule that omits it has no HTTP request body" } }),
  sent("TestOracle_SayHello", "GET /v1/greetings/Alice", [200, { name: "Alice" }]),
  sent("TestOracle_SayHello_Int32ValBinding", "GET /v1/greetings/number/42", [200, { number: 42 }]),
];

const odd = { id: "a", Count: "1", lineNumber: "42", mixedCase: "x", LOUD: "y", aBC: "1", thing: { subValue: "z" } };
const ownNames = { ID: "a", Count: "1", LineNumber: "42", quiet: "y", Thingy: { sub_Value: "z" } };

// oxfmt-ignore
const names: readonly Case[] = [
  sent("TestNonStandardNames (proto names)", "PATCH /v1/odd_names",
    [200, { body: { id: "a", Count: "1", lineNumber: "42", mixedCase: "x", LOUD: "y", aBC: "1" } }],
    { fields: { "x-update-mask": "Count,LOUD,a_BC,id,line_number,mixedCase" },
      body: JSON.stringify({ id: "a", Count: "1", line_number: "42", mixedCase: "x", LOUD: "y", a_BC: "1" }),
      by: ["updateMaskFromBody"] }),
  sent("TestNonStandardNames (JSON names)", "PATCH /v1/odd_names", [200, { body: odd }],
    { fields: { "x-update-mask": "Count,LOUD,a_BC,id,line_number,mixedCase,thing.sub_value" },
      body: JSON.stringify(odd), by: ["updateMaskFromBody"] }),
  sent("TestNonStandardNames (proto names, where there are JSON names)", "PATCH /v1/own_json_names",
    [200, { body: ownNames }],
    { fields: { "x-update-mask": "Count,LOUD,id,line_number,thing.sub_value" },
      body: '{"id":"a","Count":"1","line_number":"42","LOUD":"y","thing":{"sub_value":"z"}}',
      by: ["updateMaskFromBody"] }),
  sent("TestNonStandardNames (JSON names of its own)", "PATCH /v1/own_json_names", [200, { body: ownNames }],
    { fields: { "x-update-mask": "Count,LOUD,id,line_number,thing.sub_value" }, body: JSON.stringify(ownNames),
      by: ["updateMaskFromBody"] }),
];

/** A message with every scalar type, as a path and as JSON. */
const scalars =
  "1.500000/2.500000/4294967296/apart/9223372036854775807/-2147483648/9223372036854775807/4294967295/true/prefix/a/" +
  "4294967295/2147483647/-4611686018427387904/2147483647/4611686018427387903/camelCase/COLOR_RED";
// oxfmt-ignore
const scalarSample = {
  fFloat: 1.5, fDouble: 2.5, fInt64: "4294967296", fUint64: "9223372036854775807", fInt32: -2147483648,
  fFixed64: "9223372036854775807", fFixed32: 4294967295, fBool: true, fString: "prefix/a", fUint32: 4294967295,
  fSfixed32: 2147483647, fSfixed64: "-4611686018427387904", fSint32: 2147483647, fSint64: "4611686018427387903",
  customName: "camelCase", fEnum: "COLOR_RED",
};
// oxfmt-ignore
const sample = {
  ...scalarSample, nesteds: [{ text: "b", number: "10" }], tags: ["a", "b"], choiceText: "x",
  palette: { a: "COLOR_RED", b: "COLOR_UNSPECIFIED" }, labels: { a: "x" }, nestedById: { 1: { text: "x" } },
  maybeString: "o",
};
const lines = `${JSON.stringify(sample)}\n`.repeat(5);
const notFound = { code: 5, status: "NOT_FOUND", message: "not found", details: [] };

// oxfmt-ignore
const samples: readonly Case[] = [
  sent(["TestABE testABECreate", "TestAbitOfEverythingClient"], `POST /v1/samples/${scalars}`, [200, scalarSample],
    { ...inJson("{}"), by: ["ignoreBodies"] }),
  sent(["TestABE testABECreateBody", "TestABEOracle_CreateLookupDelete (create)"], "POST /v1/samples", [200, sample],
    inJson(JSON.stringify(sample))),
  sent("TestABE testABEBulkCreate (with trailers)", "POST /v1/samples/bulk", [200, {}],
    { header: [...json, te], body: lines, fields: { "grpc-metadata-count": "5" }, trailer,
      by: ["jsonClientStreams", "grpcMetadata"] }),
  sent("TestABE testABEBulkCreate (without trailers)", "POST /v1/samples/bulk", [200, {}],
    { ...inJson(lines), fields: { "grpc-metadata-count": "5" }, by: ["jsonClientStreams", "grpcMetadata"] }),
  sent("TestABE testABEBulkCreateWithError", "POST /v1/samples/bulk",
    [400, { code: 3, status: "INVALID_ARGUMENT", message: "error metadata: some error", details: [] }],
    { header: [["grpc-metadata-error", "some error"]], body: lines, by: ["grpcMetadata"] }),
  sent("TestABE testABELookup", "GET /v1/samples/some", [200, { fString: "prefix/some", fBool: true }],
    { fields: { "grpc-metadata-uuid": "some" }, by: ["grpcMetadata"] }),
  sent("TestABEOracle_CreateLookupDelete (look up)", "GET /v1/samples/some",
    [200, { fString: "prefix/some", fBool: true }]),
  sent("TestABEOracle_CreateLookupDelete (delete)", "DELETE /v1/samples/some", [200, {}]),
  sent("TestABE testABELookupNotFound (with trailers)", "GET /v1/samples/none", [404, notFound],
    { header: [te], fields: { "grpc-metadata-uuid": "none" }, trailer, by: ["grpcMetadata"] }),
  sent("TestABE testABELookupNotFound (without trailers)", "GET /v1/samples/none", [404, notFound],
    { fields: { "grpc-metadata-uuid": "none" }, by: ["grpcMetadata"] }),
  sent("TestABE testABEList", "GET /v1/samples", [200, '{"result":{"fString":"a"}}\n{"result":{"fString":"b"}}\n'],
    { fields: { "grpc-metadata-count": "2" }, by: ["streamInResults", "grpcMetadata"] }),
  sent(["TestABE testABEDownload", "TestResponseBodyStreamHttpBody"], "GET /v1/download", [200, "Hello 1\nHello 2\n"],
    { refused: { response: [200, "Hello 1Hello 2"],
        because: "httpbody.proto, data: the body as raw binary; a line break between two pieces changes the file" } }),
  sent("TestResponseBodyStreamHttpBodyError", "GET /v1/download?fails=true",
    [200, 'Hello 1\nHello 2\n{"error":{"code":3,"message":"error","details":[]}}\n'],
    { refused: { response: [400, { code: 3, status: "INVALID_ARGUMENT", message: "error", details: [] }],
        because: "httpbody.proto, data: an error record is no part of the file" } }),
  sent("TestABE testABEBulkEcho", "POST /v1/texts/relay", [200, '{"result":{"value":"a"}}\n{"result":{"value":"b"}}\n'],
    { ...inJson('{"value":"a"}{"value":"b"}'), by: ["jsonClientStreams", "streamInResults"] }),
  sent("TestABE testABEBulkEchoZeroLength", "POST /v1/texts/relay", [200, ""], inJson("")),
  sent(["TestABE testAdditionalBindings (path)", "TestABEOracle_Echo"], "GET /v1/texts/hello",
    [200, { value: "hello" }]),
  sent(["TestABE testAdditionalBindings (body)", "TestABE testAdditionalBindings (body in chunks)"], "POST /v2/texts",
    [200, { value: "hello" }], inJson('"hello"')),
  sent("TestABE testAdditionalBindings (query)", "GET /v2/texts?value=hello", [200, { value: "hello" }]),
  sent("TestABE testABERepeated", "GET /v1/many/1,2", [200, { numbers: ["1", "2"] }],
    { refused: { response: [404], because: "http.proto: a path variable must not refer to a repeated field" } }),
  sent("TestABE testABEExists", "HEAD /v1/samples/some", [200]),
  sent("TestABE testABEExistsNotFound", "HEAD /v1/samples/none", [404]),
  sent("TestABE testABEOptions", "OPTIONS /v1/samples/some", [200, {}],
    { ...inJson('{"f_bool":true}'), fields: { "grpc-metadata-allow": "OPTIONS, GET, HEAD, POST, PUT, TRACE" },
      by: ["ignoreBodies", "grpcMetadata"] }),
  sent("TestABE testABETrace", "TRACE /v1/samples/some", [200, { fBool: true }],
    { ...inJson('{"f_bool":true}'), by: ["ignoreBodies"] }),
  sent("TestABEPatch", "PATCH /v2/samples/7", [200, { sample: { fInt64: "7", fString: "a" }, updateMask: "fString" }],
    { body: '{"f_string":"a"}', by: ["updateMaskFromBody"] }),
  sent("TestABEPatchBody/with fieldmask provided", "PATCH /v2a/samples/7",
    [200, { sample: { fInt64: "7", fString: "x", nested: { number: "456" } }, updateMask: "nested" }],
    { body: '{"sample":{"fString":"x","nested":{"number":"456"}},"updateMask":"nested"}' }),
  sent("TestABEPatchBody/with empty fieldmask", "PATCH /v2a/samples/7",
    [200, { sample: { fInt64: "7", fString: "x" }, updateMask: "" }],
    { body: '{"sample":{"fString":"x"},"updateMask":""}' }),
  sent("TestABEPatchBody/with nil fieldmask", "PATCH /v2a/samples/7", [200, { sample: { fInt64: "7", fString: "x" } }],
    { body: '{"sample":{"fString":"x"},"updateMask":null}' }),
  sent("TestABEOracle_DeepPathEcho", "POST /v1/deep/a", [200, { nested: { text: "a", number: "42" } }],
    inJson('{"nested":{"number":"42"}}')),
  sent("TestABEOracle_CheckStatus", "GET /v1/samples/some", [200, { fBool: true, fString: "prefix/some" }]),
  sent("TestPostWithEmptyBody", "POST /v1/samples", [200, {}], inJson("")),
];

// oxfmt-ignore
const answers: readonly Case[] = [
  sent("TestResponseBody testResponseBody", "GET /answers/a", [200, { name: "a" }]),
  sent(["TestResponseBody testResponseBodies", "TestResponseBody testResponseStrings/Response bodies"],
    "GET /answers/labels/a", [200, [{ name: "a" }]]),
  sent("TestResponseBody testResponseStrings/Response strings", "GET /answers/words/a", [200, ["hello", "a"]]),
  sent("TestResponseBody testResponseStrings/Empty response strings", "GET /answers/words/empty", [200, []]),
  sent(["TestResponseBodySameName", "TestResponseBodyImportedType"], "GET /answers/same/a", [200, "a"]),
  sent("TestResponseBodyStream", "GET /answers/stream/a",
    [200, '{"result":{"name":"first a"}}\n{"result":{"name":"second a"}}\n'], { by: ["streamInResults"] }),
];

/** Tests that send the same request to a gateway in front of gRPC, and to one in process. */
const bothWays = (name: string): readonly string[] => [
  `TestRequestQueryParams/${name}`,
  `TestRequestQueryParamsInProcessGateway/${name}`,
];

// oxfmt-ignore
const queries: readonly Case[] = [
  sent(bothWays("get url query values"), "GET /v1/params/get/a?f_double=1234.56&f_bool=true&labels[map_key]=map_value",
    [200, { fDouble: 1234.56, fBool: true, labels: { map_key: "map_value" }, nested: { text: "a" } }],
    { by: ["mapsInQuery"] }),
  sent(bothWays("get nested enum url parameter"), "GET /v1/params/enum/COLOR_RED", [200, { fEnum: "COLOR_RED" }]),
  sent("TestNestedEnumGetQueryParams", "GET /v1/params/enum/1", [200, { fEnum: "COLOR_RED" }]),
  sent(bothWays("post url query values"), "POST /v1/params/post/a?f_double=1234.56&f_bool=true",
    [200, { fDouble: 1234.56, fBool: true, fString: "a", nested: { text: "foo", number: "100" } }],
    inJson('{"text":"foo","number":"100"}')),
  sent(bothWays("post form and url query values"), "POST /v1/params/get/a?f_double=1234.56&f_bool=true",
    [200, { fDouble: 1234.56, fBool: true, fString: "b", tags: ["c", "d"], maybeString: "e", nested: { text: "a" } }],
    { header: form, body: "f_string=b&tags=c&tags=d&maybe_string=e",
      refused: { response: [405,
          { code: 12, status: "UNIMPLEMENTED", message: "POST is not allowed for this path", details: [] }],
        because: "RFC 9110 §9.1: the method is the primary source of what a request means, and the rule says GET" } }),
];

// oxfmt-ignore
const waits: readonly Case[] = [
  sent("TestTimeout", "GET /v2/wait", [504], { header: [["grpc-timeout", "10m"]] }),
  sent("TestInvalidTimeout", "GET /v2/wait", [400], { header: [["grpc-timeout", "INVALID"]] }),
  sent("TestExcessBody testExcessBodyRPC", "POST /v2/wait", [200], { leaves: true }),
  sent("TestExcessBody testExcessBodyStream", "POST /v2/wait_stream", [200], { leaves: true }),
  sent("TestExcessBody testExcessBodyRPCUnexpected", "POST /v2/wait", [200],
    { body: "{}", leaves: true, by: ["ignoreBodies"] }),
  sent("TestExcessBody testExcessBodyStreamUnexpected", "POST /v2/wait_stream", [200],
    { body: "{}", leaves: true, by: ["ignoreBodies"] }),
  sent("TestExcessBody testExcessBodyRPCWithBody", "POST /v2/wait/with_body", [200], { body: "{}", leaves: true }),
  sent("TestExcessBody testExcessBodyStreamWithBody", "POST /v2/wait_stream/with_body", [200],
    { body: "{}", leaves: true }),
  sent("TestExcessBody testExcessBodyRPCWithBodyUnexpected", "POST /v2/wait/with_body", [200],
    { body: "{}.",
      refused: { response: [400],
        because: "RFC 8259 §2: a JSON text is one value, and nothing but white space after it" } }),
  sent("TestExcessBody testExcessBodyStreamWithBodyUnexpected", "POST /v2/wait_stream/with_body", [200],
    { body: `{}${".".repeat(511)}`,
      refused: { response: [400],
        because: "RFC 8259 §2: a JSON text is one value, and nothing but white space after it" } }),
];

export const cases: readonly Case[] = [...prefixes, ...letters, ...names, ...samples, ...answers, ...queries, ...waits];
