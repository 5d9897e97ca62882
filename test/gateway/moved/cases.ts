import type { RestOptions } from "../../../src/gateway/index.ts";
import type { Field } from "../../support/carriers/exchange.ts";

// What the integration tests of grpc-gateway send, in words of our own: examples/internal/integration, at commit
// 9648db43 of August 2026. Not here are its eight tests of an OpenAPI document (TestABESpec), which send nothing.

/** One request, and what is to come of it. */
export interface Case {
  /** The tests there that send it. Where one sends it in several ways, in brackets which. */
  readonly of: readonly string[];
  readonly request: string;
  readonly header?: readonly Field[];
  readonly body?: string;
  /** What they wait for: the status, and the body, of JSON as a value. */
  readonly answer: readonly [httpStatus: number, body?: unknown];
  /** Fields of the answer's header that they look at. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly trailer?: readonly Field[];
  /** The client goes away as soon as the handler runs, which then is to hear of it. */
  readonly leaves?: true;
  /** The options without any one of which it is answered otherwise. */
  readonly by?: readonly (keyof RestOptions)[];
  /** What it is answered with here, whatever the options, and the sentence that is against the other answer. */
  readonly refused?: Otherwise;
  /** The same, where nothing is against their answer, and no option gives it. */
  readonly missing?: Otherwise;
}

interface Otherwise {
  readonly answer: readonly [httpStatus: number, body?: unknown];
  readonly because: string;
}

const json: readonly Field[] = [["content-type", "application/json"]];
const form: readonly Field[] = [["content-type", "application/x-www-form-urlencoded"]];
const te: Field = ["te", "trailers"];
const trailer: readonly Field[] = [
  ["grpc-trailer-bar", "bar2"],
  ["grpc-trailer-foo", "foo2"],
];
const early = { "grpc-metadata-foo": "foo1", "grpc-metadata-bar": "bar1" };

const prefixes: readonly Case[] = ["v1", "v2"].flatMap((prefix): readonly Case[] => [
  {
    of: [`TestEcho/${prefix} testEcho`],
    request: `POST /${prefix}/letters/a`,
    header: json,
    body: "{}",
    answer: [200, { id: "a" }],
    by: ["ignoreBodies"],
  },
  {
    of: [prefix === "v1" ? "TestEchoClient" : "TestUnannotatedEchoClient"],
    request: `POST /${prefix}/letters/a`,
    answer: [200, { id: "a" }],
  },
  {
    of: [`TestEcho/${prefix} testEchoOneof`],
    request: `GET /${prefix}/letters/a/10/go`,
    answer: [200, { id: "a", number: "10", language: "go" }],
  },
  {
    of: [`TestEcho/${prefix} testEchoOneof1`],
    request: `GET /${prefix}/letters1/a/10/go`,
    answer: [200, { id: "a", line: "10", status: { text: "go" } }],
  },
  {
    of: [`TestEcho/${prefix} testEchoOneof2`],
    request: `GET /${prefix}/letters2/go`,
    answer: [200, { mark: { text: "go" } }],
  },
  {
    of: ["over gRPC", "in process"].map((way) => `TestEcho/${prefix} testEchoBody (with trailers, ${way})`),
    request: `POST /${prefix}/letter_body`,
    header: [te],
    body: '{"id":"a"}',
    answer: [200, { id: "a" }],
    fields: early,
    trailer,
    by: ["grpcMetadata"],
  },
  {
    of: ["over gRPC", "in process"].map((way) => `TestEcho/${prefix} testEchoBody (without trailers, ${way})`),
    request: `POST /${prefix}/letter_body`,
    body: '{"id":"a"}',
    answer: [200, { id: "a" }],
    fields: early,
    by: ["grpcMetadata"],
  },
  {
    of: [prefix === "v1" ? "TestEchoBodyClient" : "TestUnannotatedEchoBodyClient"],
    request: `POST /${prefix}/letter_body`,
    header: json,
    body: '{"id":"a"}',
    answer: [200, { id: "a" }],
  },
  {
    of: [`TestEcho/${prefix} testEchoWithNonASCIIHeaderValues`],
    request: `POST /${prefix}/letters/a`,
    header: [...json, ["grpc-metadata-location", "Gjøvik"]],
    body: "{}",
    answer: [200, { id: "a" }],
    by: ["ignoreBodies"],
  },
  {
    of: [`TestEcho/${prefix} testEchoWithInvalidHeaderKey`],
    request: `POST /${prefix}/letters/a`,
    header: [...json, ["grpc-metadata-foo+bar", "Hello"]],
    body: "{}",
    answer: [200, { id: "a" }],
    by: ["ignoreBodies"],
  },
]);

/** Tests that send the same with both prefixes. */
const twice = (name: string): readonly string[] => [`TestEcho/v1 ${name}`, `TestEcho/v2 ${name}`];

const letters: readonly Case[] = [
  {
    of: twice("testEchoPathParamOverwrite"),
    request: "GET /v1/letters/place/here?place=there",
    answer: [200, { place: "here" }],
    by: ["lenient"],
  },
  {
    of: twice("testEchoNested"),
    request: "GET /v1/letters/label/a?label.value=b",
    answer: [200, { label: { name: "a", value: "b" } }],
  },
  {
    of: twice("testEchoNestedOverride"),
    request: "GET /v1/letters/label/a?label.name=b",
    answer: [200, { label: { name: "a" } }],
    by: ["lenient"],
  },
  {
    of: ["TestEchoBody2Client"],
    request: "PUT /v1/letter_body/a",
    header: json,
    body: '{"text":"b"}',
    answer: [200, { id: "a", mark: { text: "b" } }],
  },
  {
    of: ["TestEchoUnauthorized"],
    request: "GET /v1/refused",
    answer: [401, { code: 16, status: "UNAUTHENTICATED", message: "no", details: [] }],
    fields: { "www-authenticate": "Bearer" },
  },
  {
    of: ["TestEchoPatch"],
    request: "PATCH /v1/free_form",
    body: '{"struct":{"a":{"b":"c"}},"value":{"d":"e"}}',
    answer: [200, { body: { struct: { a: { b: "c" } }, value: { d: "e" } }, updateMask: "struct.a.b,value.d" }],
    refused: {
      answer: [200, { body: { struct: { a: { b: "c" } }, value: { d: "e" } }, updateMask: "struct,value" }],
      because: "field_mask.proto: a repeated field, as the map in a Struct is, stands at the end of a path only",
    },
  },
  {
    of: ["TestForwardResponseOption"],
    request: "GET /v1/greetings/Alice",
    answer: [200, { name: "Alice" }],
    fields: { "content-type": "application/vnd.docker.plugins.v1.1+json" },
    missing: {
      answer: [200, { name: "Alice" }],
      because: "JSON is application/json, as the OpenAPI document says; a google.api.HttpBody has any type",
    },
  },
  {
    of: ["TestForwardResponseOptionHTTPPathPattern"],
    request: "GET /v1/greetings/Alice",
    answer: [200, { name: "Alice" }],
    fields: { "content-type": "/v1/greetings/{name}" },
    refused: {
      answer: [200, { name: "Alice" }],
      because: "RFC 9110 §8.3.1: a content type is a media type, type/subtype; this one is a path",
    },
  },
  {
    of: ["TestNotImplemented"],
    request: "GET /v1/letters/a",
    answer: [501],
    refused: {
      answer: [405, { code: 12, status: "UNIMPLEMENTED", message: "GET is not allowed here", details: [] }],
      because: "RFC 9110 §15.5.6: 405 is for a method that is known, and not supported by this resource",
    },
  },
  { of: ["TestInvalidArgument"], request: "GET /v1/letters/a/no", answer: [400] },
  { of: ["TestUnknownPath"], request: "POST /", header: json, body: "{}", answer: [404] },
  {
    of: ["TestRequestParseForm"],
    request: "POST /v1/letters/a",
    header: form,
    body: "number=1",
    answer: [200, { id: "a", number: "1" }],
    refused: { answer: [200, { id: "a" }], because: "http.proto, body: a rule that omits it has no HTTP request body" },
  },
  { of: ["TestOracle_SayHello"], request: "GET /v1/greetings/Alice", answer: [200, { name: "Alice" }] },
  {
    of: ["TestOracle_SayHello_Int32ValBinding"],
    request: "GET /v1/greetings/number/42",
    answer: [200, { number: 42 }],
  },
];

const odd = { id: "a", Count: "1", lineNumber: "42", mixedCase: "x", LOUD: "y", aBC: "1", thing: { subValue: "z" } };
const ownNames = { ID: "a", Count: "1", LineNumber: "42", quiet: "y", Thingy: { sub_Value: "z" } };

const names: readonly Case[] = [
  {
    of: ["TestNonStandardNames (proto names)"],
    request: "PATCH /v1/odd_names",
    body: JSON.stringify({ id: "a", Count: "1", line_number: "42", mixedCase: "x", LOUD: "y", a_BC: "1" }),
    answer: [
      200,
      {
        body: { id: "a", Count: "1", lineNumber: "42", mixedCase: "x", LOUD: "y", aBC: "1" },
        updateMask: "`Count`,`LOUD`,a_BC,id,lineNumber,`mixedCase`",
      },
    ],
    by: ["updateMaskFromBody"],
  },
  {
    of: ["TestNonStandardNames (JSON names)"],
    request: "PATCH /v1/odd_names",
    body: JSON.stringify(odd),
    answer: [200, { body: odd, updateMask: "`Count`,`LOUD`,a_BC,id,lineNumber,`mixedCase`,thing.subValue" }],
    by: ["updateMaskFromBody"],
  },
  {
    of: ["TestNonStandardNames (proto names, where there are JSON names)"],
    request: "PATCH /v1/own_json_names",
    body: '{"id":"a","Count":"1","line_number":"42","LOUD":"y","thing":{"sub_value":"z"}}',
    answer: [200, { body: ownNames, updateMask: "`Count`,`LOUD`,id,lineNumber,thing.subValue" }],
    by: ["updateMaskFromBody"],
  },
  {
    of: ["TestNonStandardNames (JSON names of its own)"],
    request: "PATCH /v1/own_json_names",
    body: JSON.stringify(ownNames),
    answer: [200, { body: ownNames, updateMask: "`Count`,`LOUD`,id,lineNumber,thing.subValue" }],
    by: ["updateMaskFromBody"],
  },
];

/** A message of every kind of scalar, as its path and as JSON. */
const scalars =
  "1.500000/2.500000/4294967296/apart/9223372036854775807/-2147483648/9223372036854775807/4294967295/true/prefix/a/" +
  "4294967295/2147483647/-4611686018427387904/2147483647/4611686018427387903/camelCase/COLOR_RED";
const scalarSample = {
  fFloat: 1.5,
  fDouble: 2.5,
  fInt64: "4294967296",
  fUint64: "9223372036854775807",
  fInt32: -2147483648,
  fFixed64: "9223372036854775807",
  fFixed32: 4294967295,
  fBool: true,
  fString: "prefix/a",
  fUint32: 4294967295,
  fSfixed32: 2147483647,
  fSfixed64: "-4611686018427387904",
  fSint32: 2147483647,
  fSint64: "4611686018427387903",
  customName: "camelCase",
  fEnum: "COLOR_RED",
};
const sample = {
  ...scalarSample,
  nesteds: [{ text: "b", number: "10" }],
  tags: ["a", "b"],
  choiceText: "x",
  palette: { a: "COLOR_RED", b: "COLOR_UNSPECIFIED" },
  labels: { a: "x" },
  nestedById: { 1: { text: "x" } },
  maybeString: "o",
};
const lines = `${JSON.stringify(sample)}\n`.repeat(5);
const notFound = { code: 5, status: "NOT_FOUND", message: "not found", details: [] };

const samples: readonly Case[] = [
  {
    of: ["TestABE testABECreate", "TestAbitOfEverythingClient"],
    request: `POST /v1/samples/${scalars}`,
    header: json,
    body: "{}",
    answer: [200, scalarSample],
    by: ["ignoreBodies"],
  },
  {
    of: ["TestABE testABECreateBody", "TestABEOracle_CreateLookupDelete (create)"],
    request: "POST /v1/samples",
    header: json,
    body: JSON.stringify(sample),
    answer: [200, sample],
  },
  {
    of: ["TestABE testABEBulkCreate (with trailers)"],
    request: "POST /v1/samples/bulk",
    header: [...json, te],
    body: lines,
    answer: [200, {}],
    fields: { "grpc-metadata-count": "5" },
    trailer,
    by: ["jsonClientStreams", "grpcMetadata"],
  },
  {
    of: ["TestABE testABEBulkCreate (without trailers)"],
    request: "POST /v1/samples/bulk",
    header: json,
    body: lines,
    answer: [200, {}],
    fields: { "grpc-metadata-count": "5" },
    by: ["jsonClientStreams", "grpcMetadata"],
  },
  {
    of: ["TestABE testABEBulkCreateWithError"],
    request: "POST /v1/samples/bulk",
    header: [["grpc-metadata-error", "some error"]],
    body: lines,
    answer: [400, { code: 3, status: "INVALID_ARGUMENT", message: "error metadata: some error", details: [] }],
    by: ["grpcMetadata"],
  },
  {
    of: ["TestABE testABELookup"],
    request: "GET /v1/samples/some",
    answer: [200, { fString: "prefix/some", fBool: true }],
    fields: { "grpc-metadata-uuid": "some" },
    by: ["grpcMetadata"],
  },
  {
    of: ["TestABEOracle_CreateLookupDelete (look up)"],
    request: "GET /v1/samples/some",
    answer: [200, { fString: "prefix/some", fBool: true }],
  },
  { of: ["TestABEOracle_CreateLookupDelete (delete)"], request: "DELETE /v1/samples/some", answer: [200, {}] },
  {
    of: ["TestABE testABELookupNotFound (with trailers)"],
    request: "GET /v1/samples/none",
    header: [te],
    answer: [404, notFound],
    fields: { "grpc-metadata-uuid": "none" },
    trailer,
    by: ["grpcMetadata"],
  },
  {
    of: ["TestABE testABELookupNotFound (without trailers)"],
    request: "GET /v1/samples/none",
    answer: [404, notFound],
    fields: { "grpc-metadata-uuid": "none" },
    by: ["grpcMetadata"],
  },
  {
    of: ["TestABE testABEList"],
    request: "GET /v1/samples",
    answer: [200, '{"result":{"fString":"a"}}\n{"result":{"fString":"b"}}\n'],
    fields: { "grpc-metadata-count": "2" },
    by: ["streamInResults", "grpcMetadata"],
  },
  {
    of: ["TestABE testABEDownload", "TestResponseBodyStreamHttpBody"],
    request: "GET /v1/download",
    answer: [200, "Hello 1\nHello 2\n"],
    refused: {
      answer: [200, "Hello 1Hello 2"],
      because: "httpbody.proto, data: the body as raw binary; a line break between two pieces changes the file",
    },
  },
  {
    of: ["TestResponseBodyStreamHttpBodyError"],
    request: "GET /v1/download?fails=true",
    answer: [200, 'Hello 1\nHello 2\n{"error":{"code":3,"message":"error","details":[]}}\n'],
    refused: {
      answer: [400, { code: 3, status: "INVALID_ARGUMENT", message: "error", details: [] }],
      because: "httpbody.proto, data: an error record is no part of the file",
    },
  },
  {
    of: ["TestABE testABEBulkEcho"],
    request: "POST /v1/texts/relay",
    header: json,
    body: '{"value":"a"}{"value":"b"}',
    answer: [200, '{"result":{"value":"a"}}\n{"result":{"value":"b"}}\n'],
    by: ["jsonClientStreams", "streamInResults"],
  },
  {
    of: ["TestABE testABEBulkEchoZeroLength"],
    request: "POST /v1/texts/relay",
    header: json,
    body: "",
    answer: [200, ""],
  },
  {
    of: ["TestABE testAdditionalBindings (path)", "TestABEOracle_Echo"],
    request: "GET /v1/texts/hello",
    answer: [200, { value: "hello" }],
  },
  {
    of: ["TestABE testAdditionalBindings (body)", "TestABE testAdditionalBindings (body in chunks)"],
    request: "POST /v2/texts",
    header: json,
    body: '"hello"',
    answer: [200, { value: "hello" }],
  },
  {
    of: ["TestABE testAdditionalBindings (query)"],
    request: "GET /v2/texts?value=hello",
    answer: [200, { value: "hello" }],
  },
  {
    of: ["TestABE testABERepeated"],
    request: "GET /v1/many/1,2",
    answer: [200, { numbers: ["1", "2"] }],
    refused: { answer: [404], because: "http.proto: a path variable must not refer to a repeated field" },
  },
  { of: ["TestABE testABEExists"], request: "HEAD /v1/samples/some", answer: [200] },
  { of: ["TestABE testABEExistsNotFound"], request: "HEAD /v1/samples/none", answer: [404] },
  {
    of: ["TestABE testABEOptions"],
    request: "OPTIONS /v1/samples/some",
    header: json,
    body: '{"f_bool":true}',
    answer: [200, {}],
    fields: { "grpc-metadata-allow": "OPTIONS, GET, HEAD, POST, PUT, TRACE" },
    by: ["ignoreBodies", "grpcMetadata"],
  },
  {
    of: ["TestABE testABETrace"],
    request: "TRACE /v1/samples/some",
    header: json,
    body: '{"f_bool":true}',
    answer: [200, { fBool: true }],
    by: ["ignoreBodies"],
  },
  {
    of: ["TestABEPatch"],
    request: "PATCH /v2/samples/7",
    body: '{"f_string":"a"}',
    answer: [200, { sample: { fInt64: "7", fString: "a" }, updateMask: "fString" }],
    by: ["updateMaskFromBody"],
  },
  {
    of: ["TestABEPatchBody/with fieldmask provided"],
    request: "PATCH /v2a/samples/7",
    body: '{"sample":{"fString":"x","nested":{"number":"456"}},"updateMask":"nested"}',
    answer: [200, { sample: { fInt64: "7", fString: "x", nested: { number: "456" } }, updateMask: "nested" }],
  },
  {
    of: ["TestABEPatchBody/with empty fieldmask"],
    request: "PATCH /v2a/samples/7",
    body: '{"sample":{"fString":"x"},"updateMask":""}',
    answer: [200, { sample: { fInt64: "7", fString: "x" }, updateMask: "" }],
  },
  {
    of: ["TestABEPatchBody/with nil fieldmask"],
    request: "PATCH /v2a/samples/7",
    body: '{"sample":{"fString":"x"},"updateMask":null}',
    answer: [200, { sample: { fInt64: "7", fString: "x" } }],
  },
  {
    of: ["TestABEOracle_DeepPathEcho"],
    request: "POST /v1/deep/a",
    header: json,
    body: '{"nested":{"number":"42"}}',
    answer: [200, { nested: { text: "a", number: "42" } }],
  },
  {
    of: ["TestABEOracle_CheckStatus"],
    request: "GET /v1/samples/some",
    answer: [200, { fBool: true, fString: "prefix/some" }],
  },
  { of: ["TestPostWithEmptyBody"], request: "POST /v1/samples", header: json, body: "", answer: [200, {}] },
];

const answers: readonly Case[] = [
  { of: ["TestResponseBody testResponseBody"], request: "GET /answers/a", answer: [200, { name: "a" }] },
  {
    of: ["TestResponseBody testResponseBodies", "TestResponseBody testResponseStrings/Response bodies"],
    request: "GET /answers/labels/a",
    answer: [200, [{ name: "a" }]],
  },
  {
    of: ["TestResponseBody testResponseStrings/Response strings"],
    request: "GET /answers/words/a",
    answer: [200, ["hello", "a"]],
  },
  {
    of: ["TestResponseBody testResponseStrings/Empty response strings"],
    request: "GET /answers/words/empty",
    answer: [200, []],
  },
  {
    of: ["TestResponseBodySameName", "TestResponseBodyImportedType"],
    request: "GET /answers/same/a",
    answer: [200, "a"],
  },
  {
    of: ["TestResponseBodyStream"],
    request: "GET /answers/stream/a",
    answer: [200, '{"result":{"name":"first a"}}\n{"result":{"name":"second a"}}\n'],
    by: ["streamInResults"],
  },
];

/** Tests that send the same to a gateway before gRPC, and to one in process. */
const bothWays = (name: string): readonly string[] => [
  `TestRequestQueryParams/${name}`,
  `TestRequestQueryParamsInProcessGateway/${name}`,
];

const queries: readonly Case[] = [
  {
    of: bothWays("get url query values"),
    request: "GET /v1/params/get/a?f_double=1234.56&f_bool=true&labels[map_key]=map_value",
    answer: [200, { fDouble: 1234.56, fBool: true, labels: { map_key: "map_value" }, nested: { text: "a" } }],
    by: ["mapsInQuery"],
  },
  {
    of: bothWays("get nested enum url parameter"),
    request: "GET /v1/params/enum/COLOR_RED",
    answer: [200, { fEnum: "COLOR_RED" }],
  },
  { of: ["TestNestedEnumGetQueryParams"], request: "GET /v1/params/enum/1", answer: [200, { fEnum: "COLOR_RED" }] },
  {
    of: bothWays("post url query values"),
    request: "POST /v1/params/post/a?f_double=1234.56&f_bool=true",
    header: json,
    body: '{"text":"foo","number":"100"}',
    answer: [200, { fDouble: 1234.56, fBool: true, fString: "a", nested: { text: "foo", number: "100" } }],
  },
  {
    of: bothWays("post form and url query values"),
    request: "POST /v1/params/get/a?f_double=1234.56&f_bool=true",
    header: form,
    body: "f_string=b&tags=c&tags=d&maybe_string=e",
    answer: [
      200,
      { fDouble: 1234.56, fBool: true, fString: "b", tags: ["c", "d"], maybeString: "e", nested: { text: "a" } },
    ],
    refused: {
      answer: [405, { code: 12, status: "UNIMPLEMENTED", message: "POST is not allowed here", details: [] }],
      because: "RFC 9110 §9.1: the method is the primary source of what a request means, and the rule says GET",
    },
  },
];

const waits: readonly Case[] = [
  { of: ["TestTimeout"], request: "GET /v2/wait", header: [["grpc-timeout", "10m"]], answer: [504] },
  { of: ["TestInvalidTimeout"], request: "GET /v2/wait", header: [["grpc-timeout", "INVALID"]], answer: [400] },
  { of: ["TestExcessBody testExcessBodyRPC"], request: "POST /v2/wait", leaves: true, answer: [200] },
  { of: ["TestExcessBody testExcessBodyStream"], request: "POST /v2/wait_stream", leaves: true, answer: [200] },
  {
    of: ["TestExcessBody testExcessBodyRPCUnexpected"],
    request: "POST /v2/wait",
    body: "{}",
    leaves: true,
    answer: [200],
    by: ["ignoreBodies"],
  },
  {
    of: ["TestExcessBody testExcessBodyStreamUnexpected"],
    request: "POST /v2/wait_stream",
    body: "{}",
    leaves: true,
    answer: [200],
    by: ["ignoreBodies"],
  },
  {
    of: ["TestExcessBody testExcessBodyRPCWithBody"],
    request: "POST /v2/wait/with_body",
    body: "{}",
    leaves: true,
    answer: [200],
  },
  {
    of: ["TestExcessBody testExcessBodyStreamWithBody"],
    request: "POST /v2/wait_stream/with_body",
    body: "{}",
    leaves: true,
    answer: [200],
  },
  {
    of: ["TestExcessBody testExcessBodyRPCWithBodyUnexpected"],
    request: "POST /v2/wait/with_body",
    body: "{}.",
    answer: [200],
    refused: { answer: [400], because: "RFC 8259 §2: a JSON text is one value, and nothing but white space after it" },
  },
  {
    of: ["TestExcessBody testExcessBodyStreamWithBodyUnexpected"],
    request: "POST /v2/wait_stream/with_body",
    body: `{}${".".repeat(511)}`,
    answer: [200],
    refused: { answer: [400], because: "RFC 8259 §2: a JSON text is one value, and nothing but white space after it" },
  },
];

export const cases: readonly Case[] = [...prefixes, ...letters, ...names, ...samples, ...answers, ...queries, ...waits];
