import { gzipSync } from "node:zlib";
import { createRegistry } from "@bufbuild/protobuf";
import { SourceContextSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test, vi } from "vitest";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { type Field, openHttp1, startKitchenSink } from "@protoport/testing";
import { type NamedOption, type GatewayOptions, optionOf, type RestServiceOptions } from "../../src/index.ts";
import { createMcp } from "../../src/mcp/index.ts";

// Each request needs an option. Without the option, the error names it; with the option, the request is served.

/** A request that an option accepts. `refuses` are the gateway's options without it. */
interface Refusal {
  readonly refused: string;
  readonly option: NamedOption;
  readonly refuses?: Partial<GatewayOptions>;
  readonly accepts: Partial<GatewayOptions>;
  readonly request: string;
  readonly header?: readonly Field[];
  readonly body?: string | Uint8Array;
  /** The request's part that does not arrive before the timeout. */
  readonly late?: "header" | "body";
}

const json: Field = ["content-type", "application/json"];
const unary = "POST /kitchensink.v1.KitchenSink/Create";
const upload = "POST /readings";
const timeoutMs = 20;
const lenient = "lenient or ignoredQueryParameters";
const sinkTool = "kitchensink.v1.KitchenSink.Create";
const list = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
const service = (options: RestServiceOptions): Partial<GatewayOptions> => ({ rest: { service: () => options } });

/** Serves a client stream at {@link upload}. */
function withUpload(options: RestServiceOptions): Partial<GatewayOptions> {
  // oxfmt-ignore
  return {
    rest: { service: () => options,
      rules: [{ selector: `${GreenhouseService.typeName}.RecordReadings`, pattern: { case: "post", value: "/readings" },
          body: "*" }] },
    routes: (router) => {
      router.service(GreenhouseService, {
        recordReadings: async (readings) => {
          for await (const _ of readings);
          return {};
        },
      });
    },
  };
}

// oxfmt-ignore
const cases = [
  { refused: "an unknown query parameter", option: lenient, accepts: service({ lenient: true }),
    request: "GET /v1/query?x=1" },
  { refused: "an unknown query parameter", option: lenient, accepts: service({ ignoredQueryParameters: ["x"] }),
    request: "GET /v1/query?x=1" },
  { refused: "a query parameter of a field that the path or the body sets", option: "lenient",
    accepts: service({ lenient: true }), request: "DELETE /v1/sinks/7?f_int64=7" },
  { refused: "an entry of a map in the query", option: "mapsInQuery", accepts: service({ mapsInQuery: true }),
    request: "GET /v1/query?labels[a]=b" },
  { refused: "an unknown enum name in a JSON body", option: "lenient", accepts: service({ lenient: true }),
    request: "POST /v1/sinks", header: [json], body: '{"fEnum":"COLOR_NEW"}' },
  { refused: "an unknown field in a JSON body", option: "lenient", accepts: service({ lenient: true }),
    request: "POST /v1/sinks", header: [json], body: '{"x":1}' },
  { refused: "a field of the body that the path sets", option: "sameValueAsPath or lenient",
    accepts: service({ sameValueAsPath: true }), request: "PUT /v1/sinks/7", header: [json], body: '{"fInt64":"7"}' },
  { refused: "a field of the body that the path sets", option: "sameValueAsPath or lenient",
    accepts: service({ lenient: true }), request: "PUT /v1/sinks/8", header: [json], body: '{"fInt64":"7"}' },
  { refused: "a body, if the rule has none", option: "ignoreBodies", accepts: service({ ignoreBodies: true }),
    request: "DELETE /v1/sinks/7", header: [json], body: "{}" },
  { refused: "a client stream as `application/json`", option: "jsonClientStreams", refuses: withUpload({}),
    accepts: withUpload({ jsonClientStreams: true }), request: upload, header: [json],
    body: '{"sensor":"a"} {"sensor":"b"}' },
  { refused: "an unknown field, over the RPC protocols", option: "rest.json.unknownFields",
    refuses: { rest: { json: { unknownFields: "reject" } } }, accepts: { rest: { json: { unknownFields: "ignore" } } },
    request: unary, header: [json], body: '{"x":1}' },
  { refused: "an integer such as `1.0`", option: "rest.json.canonicalIntegers",
    refuses: { rest: { json: { canonicalIntegers: true } } }, accepts: {}, request: unary, header: [json],
    body: '{"fInt32":1.0}' },
  { refused: "a google.protobuf.Any of another type", option: "jsonOptions.registry",
    accepts: { jsonOptions: { registry: createRegistry(SourceContextSchema) } }, request: unary, header: [json],
    body: '{"any":{"@type":"type.googleapis.com/google.protobuf.SourceContext"}}' },
  { refused: "a message over `readMaxBytes`", option: "readMaxBytes", refuses: { readMaxBytes: 10 }, accepts: {},
    request: "POST /v1/sinks", header: [json], body: '{"fString":"0123456789"}' },
  { refused: "an unsupported compression", option: "acceptCompression", refuses: { acceptCompression: [] }, accepts: {},
    request: "POST /v1/sinks", header: [json, ["content-encoding", "gzip"]], body: gzipSync("{}") },
  { refused: "an unsupported compression", option: "acceptCompression", refuses: { acceptCompression: [] }, accepts: {},
    request: unary, header: [json, ["content-encoding", "gzip"]], body: gzipSync("{}") },
  { refused: "a timeout over `maxTimeoutMs`", option: "maxTimeoutMs", refuses: { maxTimeoutMs: 1000 }, accepts: {},
    request: unary, header: [json, ["connect-timeout-ms", "5000"]], body: "{}" },
  { refused: "a timeout over `maxTimeoutMs`", option: "maxTimeoutMs", refuses: { maxTimeoutMs: 1000 }, accepts: {},
    request: "GET /v1/query", header: [["x-server-timeout", "5"]] },
  { refused: "a Connect call without its version", option: "requireConnectProtocolHeader",
    refuses: { requireConnectProtocolHeader: true }, accepts: {}, request: unary, header: [json], body: "{}" },
  { refused: "a long URL", option: "limits.urlBytes", refuses: { limits: { urlBytes: 20 } }, accepts: {},
    request: "GET /v1/query?f_string=0123456789" },
  { refused: "a large header", option: "limits.headerBytes", refuses: { limits: { headerBytes: 200 } }, accepts: {},
    request: "GET /v1/query", header: [["x-large", "x".repeat(200)]] },
  { refused: "a body that arrives late", option: "limits.requestTimeoutMs",
    refuses: { limits: { requestTimeoutMs: timeoutMs } }, accepts: {}, request: "POST /v1/sinks", header: [json],
    body: "{}", late: "body" },
  { refused: "a header that arrives late", option: "limits.headerTimeoutMs",
    refuses: { limits: { headerTimeoutMs: timeoutMs } }, accepts: {}, request: "GET /v1/query", late: "header" },
  { refused: "MCP from a page of another origin", option: "cors.origins",
    refuses: { mcp: createMcp({ tools: [sinkTool] }) },
    accepts: { mcp: createMcp({ tools: [sinkTool] }), cors: { origins: ["https://shop.example"] } },
    request: "POST /mcp",
    header: [json, ["accept", "application/json, text/event-stream"], ["origin", "https://shop.example"]], body: list },
  { refused: "a POST without a preflight from a page of another site", option: "cors.origins or crossSite",
    accepts: { cors: { origins: ["https://shop.example"] } }, request: "POST /v1/sinks",
    header: [["origin", "https://shop.example"]], body: "{}" },
  { refused: "a POST without a preflight from a page of another site", option: "cors.origins or crossSite",
    accepts: { crossSite: "allow" }, request: "POST /v1/sinks", header: [["sec-fetch-site", "cross-site"]],
    body: "{}" },
] as const satisfies readonly Refusal[];
const refusals: readonly Refusal[] = cases;
type Untested = Exclude<NamedOption, (typeof cases)[number]["option"]>;
// Does not compile while an option that errors name has no case.
const isComplete: [Untested] extends [never] ? true : Untested = true;

/** Sends the request, and returns the status, the response text and the error that `onError` got. */
async function send(
  { request, header = [], body, late }: Refusal,
  options: Partial<GatewayOptions>,
): Promise<{ readonly httpStatus: number; readonly text: string; readonly option: string | undefined }> {
  const errors: ConnectError[] = [];
  await using gateway = await startKitchenSink({ ...options, onError: (_, error) => void errors.push(error) });
  const [httpMethod = "", path = ""] = request.split(" ");
  using connection = await openHttp1(gateway.address);
  const bytes = body === undefined ? new Uint8Array() : Buffer.from(body);
  const length: readonly Field[] = body === undefined ? [] : [["content-length", String(bytes.length)]];
  const lines = [...header, ...length].map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `${httpMethod} ${path} HTTP/1.1\r\nhost: a\r\n${lines.join("")}`;
  const [first, rest] = late === "header" ? [head, "\r\n"] : [`${head}\r\n`, bytes];
  connection.write(first);
  // A request that is too late is refused before it is complete.
  if (late === undefined || options.limits === undefined) connection.write(rest);
  const response = await connection.readResponse(httpMethod);
  const [error] = errors;
  return { httpStatus: response.httpStatus, text: response.body.toString(), option: error && optionOf(error) };
}

test.each(refusals)("the error for $request ($refused) names the option $option that accepts it", async (refusal) => {
  const refused = await send(refusal, refusal.refuses ?? {});
  expect(refused.text).toContain(`; to accept it, set the server option ${refusal.option}"`);
  const accepted = await send(refusal, refusal.accepts);
  expect([accepted.httpStatus, accepted.text]).toEqual([200, expect.any(String)]);
});

test.each<[name: string, nodeEnv: string | undefined, options: Partial<GatewayOptions>, isNamed: boolean]>([
  ["the client does not get the option's name with nameOptions: false", undefined, { nameOptions: false }, false],
  ["the client does not get the option's name with NODE_ENV=production", "production", {}, false],
  ["the client gets the option's name with nameOptions: true in production", "production", { nameOptions: true }, true],
  ["the client gets the option's name with NODE_ENV=development", "development", {}, true],
  ["the client gets the option's name if NODE_ENV is unset", undefined, {}, true],
])("%s", async (_name, nodeEnv, options, isNamed) => {
  vi.stubEnv("NODE_ENV", nodeEnv);
  onTestFinished(() => void vi.unstubAllEnvs());
  const [refusal] = refusals;
  if (refusal === undefined) throw new Error("the table of refusals is empty");
  const refused = await send(refusal, options);
  const suffix = isNamed ? `; to accept it, set the server option ${lenient}` : "";
  expect(JSON.parse(refused.text)).toMatchObject({ message: `unknown query parameter "x"${suffix}` });
  expect(refused.option).toBe(lenient);
});

test("every named option has a tested refusal", () => expect(isComplete).toBe(true));
