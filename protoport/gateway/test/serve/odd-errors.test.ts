import { Code, ConnectError, createContextKey, createContextValues, type Interceptor } from "@connectrpc/connect";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { GreenhouseService, WaterBedRequestSchema } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { AdmitRequest, GatewayOptions } from "../../src/index.ts";
// oxfmt-ignore
import { encodeMessage, type HttpRequest, openEveryTransport, readOutcome, rpcRequest, transportNames,
  waterBedProcedure, waysFor, type WireFormat, wireFormats } from "@protoport/testing";

interface OddError {
  readonly name: string;
  readonly create: () => unknown;
  readonly want: { readonly code: Code; readonly message: string };
  /** Whether the error is a fault, which clients must not see. */
  readonly isFault?: true;
}

const detail = { desc: WaterBedRequestSchema, value: { note: "enough" } };

/** Values that applications in JavaScript throw. */
// oxfmt-ignore
const oddErrors: readonly OddError[] = [
  { name: "a ConnectError whose message is a number", create: () => Reflect.construct(ConnectError, [404]),
    want: { code: Code.Unknown, message: "internal error" } },
  { name: "a ConnectError whose message is another error",
    create: () => Reflect.construct(ConnectError, [new Error("secret"), Code.NotFound]),
    want: { code: Code.NotFound, message: "internal error" } },
  { name: "a ConnectError whose code is a name",
    create: () => Reflect.construct(ConnectError, ["not you", "Unauthenticated"]),
    want: { code: Code.Unknown, message: "not you" } },
  ...[0, 99, "5"].map((code) => ({ name: `a ConnectError whose code is ${JSON.stringify(code)}`,
    create: () => Reflect.construct(ConnectError, ["not you", code]),
    want: { code: Code.Unknown, message: "not you" } })),
  { name: "a ConnectError whose message cannot be read",
    create: () => Object.defineProperty(new ConnectError("not you"), "rawMessage", { get: throwSecret }),
    want: { code: Code.Internal, message: "internal error" }, isFault: true },
  { name: "a ConnectError without details",
    create: () => Object.assign(new ConnectError("not you", Code.NotFound), { details: null }),
    want: { code: Code.NotFound, message: "not you" } },
  { name: "a ConnectError with one valid and four invalid details", create: () =>
      Object.assign(new ConnectError("not you", Code.NotFound), { details: [1, null, {}, { value: new Uint8Array(1) }, detail],
      }), want: { code: Code.NotFound, message: "not you" } },
  { name: "a ConnectError without metadata",
    create: () => Object.assign(new ConnectError("not you", Code.NotFound), { metadata: null }),
    want: { code: Code.NotFound, message: "not you" } },
  { name: "a ConnectError whose metadata are a plain object",
    create: () => Object.assign(new ConnectError("not you", Code.NotFound), { metadata: { "x-why": "rain" } }),
    want: { code: Code.NotFound, message: "not you" } },
  { name: "a ConnectError from another server whose message has a lone surrogate", create: () => {
      const error = new ConnectError("\ud800", Code.NotFound, { "x-why": "wire" }, [detail]);
      return Object.assign(error, { isWireError: true });
    }, want: { code: Code.NotFound, message: "\ufffd" } },
  { name: "an Error whose name cannot be read",
    create: () => Object.defineProperty(new Error("secret"), "name", { get: throwSecret }),
    want: { code: Code.Internal, message: "internal error" }, isFault: true },
  { name: "an Error whose class cannot be read",
    create: () => new Proxy(new Error("secret"), { getPrototypeOf: throwSecret }),
    want: { code: Code.Internal, message: "internal error" }, isFault: true },
  ...["secret", null, undefined].map((value) => ({ name: `the value ${JSON.stringify(value)}`, create: () => value,
    want: { code: Code.Internal, message: "internal error" }, isFault: true as const })),
  { name: "a value that is not an error", create: () => new TypeError("secret"),
    want: { code: Code.Internal, message: "internal error" }, isFault: true },
];

function throwSecret(): never {
  throw new Error("secret");
}

/** Throws the error that the request specifies for this place. */
function failAt(place: string, read: (name: string) => unknown): void {
  if (read("x-place") === place) throw oddErrors[Number(read("x-error"))]?.create();
}

const interceptor: Interceptor = (next) => (request) => {
  failAt("an interceptor", (name) => request.header.get(name));
  return next(request);
};

/** Stores the header for `onResponse`. */
const headerKey = createContextKey<AdmitRequest["header"] | undefined>(undefined);
const reported: string[] = [];
const outcomes: string[] = [];
const failed: Code[] = [];

const options: GatewayOptions = {
  routes: (router) =>
    router.service(GreenhouseService, {
      waterBed: (_, { requestHeader }) => (failAt("a handler", (name) => requestHeader.get(name)), {}),
    }),
  interceptors: [interceptor],
  onRequest: ({ header, contextValues }) => {
    contextValues.set(headerKey, header);
    failAt("onRequest", (name) => header.get(name));
  },
  admit: ({ header }) => {
    const fail = (place: string): void => failAt(place, (name) => header.get(name));
    fail("admit");
    if (header.get("x-place") === "admit, later") return new Promise(setImmediate).then(() => fail("admit, later"));
  },
  requestGate: ({ requestHeader }) => failAt("requestGate", (name) => requestHeader.get(name)),
  contextValues: ({ headers }) => (failAt("contextValues", (name) => headers[name]), createContextValues()),
  onError: (_, { code }) => failed.push(code),
  onResponse: ({ httpStatus, error, contextValues }) => {
    outcomes.push(`${String(httpStatus)} ${String(error?.code)}`);
    failAt("onResponse", (name) => contextValues.get(headerKey)?.get(name));
  },
  onFault: (_, what) => reported.push(what),
};

const gateway = await openEveryTransport(options);
afterAll(async () => await gateway[Symbol.asyncDispose]());

/** Waters a bed with an error thrown at a place. */
function water(place: string, error: OddError, format: WireFormat = wireFormats.rest): HttpRequest {
  const header = Object.entries({ "x-place": place, "x-error": String(oddErrors.indexOf(error)) });
  if (format.protocol === "rest") return { httpMethod: "POST", path: "/beds/7:water", header };
  return rpcRequest(format, encodeMessage(format, WaterBedRequestSchema, {}), header, waterBedProcedure);
}

/** Formats in which errors differ. */
const rpcFormats = [wireFormats["connect-json"], wireFormats.grpc, wireFormats["grpc-web"]];
const faultOfRequest = "cannot process the request";

beforeEach(() => {
  reported.length = 0;
  outcomes.length = 0;
  failed.length = 0;
});

describe.each(waysFor(transportNames))("over %s", (transport) => {
  const judging = ["admit", "admit, later", "requestGate"];
  const handling = ["an interceptor", "a handler"];
  // Errors are normalized before they reach the HTTP server.
  const carried = transport === "the engine's HTTP/2" ? oddErrors : oddErrors.slice(-2);

  test.each(carried)("$name becomes an error response wherever it is thrown", async (error) => {
    const { want, isFault } = error;
    for (const place of [...judging, ...handling]) {
      const { body } = await gateway.ask(transport, water(place, error));
      expect.soft(JSON.parse(body.toString()), place).toMatchObject(want);
      expect.soft(body.toString(), place).not.toContain("secret");
      const what = judging.includes(place) ? faultOfRequest : "a handler or an interceptor failed";
      expect.soft(reported.splice(0), place).toEqual(isFault ? [what] : []);
      expect.soft(outcomes.splice(0), place).toMatchObject([expect.stringMatching(` ${want.code}$`)]);
    }
  });

  test.each(carried)("$name in onRequest or onResponse changes no response", async (error) => {
    for (const place of ["onRequest", "onResponse"])
      expect.soft((await gateway.ask(transport, water(place, error))).httpStatus, place).toBe(200);
  });
});

describe.each(rpcFormats)("over $name", (format) => {
  test.each(oddErrors)("$name results in an error response", async (error) => {
    for (const place of ["admit", "a handler"]) {
      const response = await gateway.ask("the engine's HTTP/2", water(place, error, format));
      expect.soft(readOutcome(format, response), place).toEqual(error.want);
    }
  });
});

test("the valid details and metadata of an error are sent", async () => {
  const responses = await Promise.all(
    oddErrors.map(async (error) => await gateway.ask("the engine's HTTP/2", water("admit", error))),
  );
  const bodies = responses.map(({ body }): unknown => JSON.parse(body.toString()));
  const details: unknown = [expect.objectContaining({ note: "enough" })];
  for (const message of ["not you", "\ufffd"])
    expect(bodies).toContainEqual(expect.objectContaining({ message, details }));
  // Metadata from another server is not sent, because it describes another call.
  expect(responses.flatMap(({ header }) => header.filter(([name]) => name === "x-why"))).toEqual([["x-why", "rain"]]);
});

describe.each(["a handler in node:http", "a handler in node:http2"] as const)("over %s", (transport) => {
  test.each(oddErrors)("$name in contextValues is handled and reported like a refusal", async (error) => {
    const { body } = await gateway.ask(transport, water("contextValues", error));
    expect(JSON.parse(body.toString())).toMatchObject(error.want);
    expect([reported, failed]).toEqual([error.isFault ? [faultOfRequest] : [], [error.want.code]]);
    expect(outcomes).toMatchObject([expect.stringMatching(` ${error.want.code}$`)]);
  });

  const version = transport === "a handler in node:http" ? "1.1" : "2";
  const formats = rpcFormats.filter(({ httpVersions }) => httpVersions.includes(version));
  test.each(formats)("in $name, contextValues errors become error responses", async (format) => {
    for (const error of oddErrors) {
      const response = await gateway.ask(transport, water("contextValues", error, format));
      expect.soft(readOutcome(format, response), error.name).toEqual(error.want);
    }
  });
});
