import { join } from "node:path";
import { createContext, runInContext } from "node:vm";
import { build } from "rolldown";
import { beforeAll, expect, test } from "vitest";
import type { FetchHandler } from "../../../../src/fetch/entry.ts";
// oxfmt-ignore
import { encodeEmpty, exchangeFetch, getReadingProcedure, projectFolder, readOutcome, rpcRequest, wireFormats
} from "@protoport/testing";
import { SignupService } from "../../../../../testing/src/gen/signup/v1/signup_pb.ts";
import { validAccount } from "../../../../../testing/src/gateway/signup.ts";

// The gateway over Fetch without node, bundled as for a browser, and run with only web globals.

/** The worker or page globals that the gateway uses. No process, no Buffer, no setImmediate. */
const web = {
  AbortController,
  AbortSignal,
  ByteLengthQueuingStrategy,
  CompressionStream,
  console,
  clearInterval,
  // Node's timers are objects, and web timers are numbers.
  clearTimeout,
  DecompressionStream,
  DOMException,
  Headers,
  performance,
  ReadableStream,
  Request,
  Response,
  setInterval: (run: () => void, ms: number) => Number(setInterval(run, ms).unref()),
  setTimeout: (run: (argument: unknown) => void, ms: number, argument: unknown) =>
    Number(setTimeout(run, ms, argument)),
  TextDecoder,
  TextEncoder,
  Uint8Array,
  URL,
  URLSearchParams,
};

let fetch: FetchHandler;

async function runWithoutNode<Exports>(path: string): Promise<Exports> {
  const { output } = await build({
    input: join(projectFolder, path),
    platform: "browser",
    output: { format: "iife", name: "bundled", codeSplitting: false },
    write: false,
  });
  const [{ code, imports, dynamicImports, fileName }] = output;
  // A dynamic import of a bundled module names the bundle.
  expect([...imports, ...dynamicImports].filter((name) => name !== fileName)).toEqual([]);
  // Includes the coverage recorder for mutation testing.
  const context = createContext({ ...web, recordEnteredBlock: Reflect.get(globalThis, "recordEnteredBlock") });
  runInContext(code, context);
  return runInContext("bundled", context);
}

beforeAll(async () => {
  const path = "protoport/testing/src/gateway/fetch-greenhouse.ts";
  ({ fetch } = await runWithoutNode<{ readonly fetch: FetchHandler }>(path));
});

test("a REST call gets a response without Node.js", async () => {
  const response = await exchangeFetch(fetch, { httpMethod: "GET", path: "/sensors/palm/reading", header: [] });
  expect([response.httpStatus, response.body.toString()]).toEqual([200, '{"sensor":"palm","degreesCelsius":21}']);
});

test("a failing REST call gets an error response without Node.js", async () => {
  const response = await exchangeFetch(fetch, { httpMethod: "POST", path: "/beds/x:water", header: [] });
  expect([response.httpStatus, JSON.parse(response.body.toString())]).toMatchObject([400, { code: 3 }]);
});

test.each(["connect-json", "connect-proto", "grpc-web", "grpc-web-text"] as const)(
  "a %s call to the gateway's browser bundle gets a response",
  async (name) => {
    const format = wireFormats[name];
    const response = await exchangeFetch(fetch, rpcRequest(format, encodeEmpty(format), [], getReadingProcedure));
    expect(readOutcome(format, response)).toEqual({ code: 0, message: "" });
  },
);

test.each([
  ["application/x-ndjson", '{"sensor":"s0"}\n{"sensor":"s1"}\n'],
  ["text/event-stream", 'retry: 3000\ndata: {"sensor":"s0"}\n\ndata: {"sensor":"s1"}\n\nevent: end\ndata: {}\n\n'],
])("a stream is sent as %s without Node.js", async (accept, body) => {
  const header = [["accept", accept]] as const;
  const response = await exchangeFetch(fetch, { httpMethod: "GET", path: "/sensors/s/readings?count=2", header });
  expect([response.httpStatus, response.body.toString()]).toEqual([200, body]);
});

test("validation works without Node.js, except for untrusted rules", async () => {
  const path = "protoport/testing/src/gateway/fetch-signup.ts";
  const { openSignup } =
    await runWithoutNode<typeof import("../../../../../testing/src/gateway/fetch-signup.ts")>(path);
  const validated = await openSignup({});
  const register = async (account: object): Promise<number> => {
    const message = Buffer.from(JSON.stringify(account));
    const request = rpcRequest(wireFormats["connect-json"], message, [], `/${SignupService.typeName}/Register`);
    return (await exchangeFetch(validated, request)).httpStatus;
  };
  expect([await register(validAccount), await register({ ...validAccount, email: "ada" })]).toEqual([200, 400]);
  await expect(openSignup({ untrusted: true })).rejects.toThrow("untrusted of openValidation requires node:vm");
});
