import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Interceptor, HandlerContext } from "@connectrpc/connect";
import { createContextKey, createContextValues, Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { startProxy, envelope, FileService } from "@protoport/testing/proxy";
import type { ForwardRules, ProxyOptions } from "../../../../src/create-proxy.ts";
import { controlFields } from "../../../../src/forward/control-fields.ts";
import { identityFields } from "../../../../src/forward/identity-fields.ts";
// oxfmt-ignore
import { collectGarbage, exchangeHttp1, type Field, openHttp2, retainedBytes, rpcRequest, wireFormats
} from "@protoport/testing";
import { compileForwardRules, noAddedFields } from "../../../../src/forward/forward-rules.ts";
import { startFiles } from "../../../../../testing/src/gateway/files.ts";
import { startProxied } from "../../../support/greenhouses.ts";

// Which header fields a proxy forwards over sockets. protoport/proxy/test/forward/forward-rules.test.ts has all rules.

const user = createContextKey<string | undefined>(undefined);
const replaceContextValues: Interceptor = (next) => (request) =>
  next(Object.assign(Object.create(request), { contextValues: createContextValues() }));

/** Makes a REST call, and returns the fields that the upstream receives and the fields that the caller receives. */
async function forward(
  sent: readonly Field[],
  responseFields: Readonly<Record<string, string>>,
  rules: { readonly requestHeader?: ForwardRules; readonly responseHeader?: ForwardRules },
  options: Partial<ProxyOptions> = {},
): Promise<{ readonly received: Readonly<Record<string, string>>; readonly back: Readonly<Record<string, string>> }> {
  let received = {};
  const getReading = (_: unknown, { requestHeader, responseHeader }: HandlerContext) => {
    received = Object.fromEntries(requestHeader);
    for (const [name, value] of Object.entries(responseFields)) responseHeader.set(name, value);
    return {};
  };
  const upstreamOptions = { timeoutMs: 0, ...rules };
  await using proxy = await startProxied({ getReading }, { upstreamOptions, ...options });
  const header: readonly Field[] = [["host", "proxy.example"], ...sent];
  const call = { httpMethod: "GET", path: "/sensors/a/reading", header };
  const { header: responseHeader } = await exchangeHttp1(proxy.address, call);
  return { received, back: Object.fromEntries(responseHeader) };
}

const grpcFields = { "content-type": "application/grpc+proto", te: "trailers", "user-agent": "grpc-node-protoport" };
/** The client fields, unless rules exclude them. */
const client = { "x-forwarded-for": "127.0.0.1", "x-forwarded-host": "proxy.example" };

describe("header forwarding without rules", () => {
  test("all fields but those of the connection, the protocol and the client are forwarded", async () => {
    const sent = {
      authorization: "Bearer a",
      traceparent: "00-1-2-00",
      "x-a": "1, 2",
      "user-agent": "mine",
      "x-b-bin": "AA",
      "grpc-trace-bin": "AAAA",
      // The names contain blocked prefixes, but not at the start.
      "x-grpc-": "1",
      "x-connect-": "1",
      "x-hops": "user-agent",
    };
    const hop = { Connection: "close , x-HOP", "X-Hop": "1", TE: "gzip", "Accept-Encoding": "gzip" };
    const dropped = Object.entries({ ...hop, Cookie: "a=b", "X-Real-IP": "192.0.2.7" });
    const { received } = await forward([...dropped, ...Object.entries(sent), ["X-A", "3"]], {}, {});
    expect(received).toEqual({ ...grpcFields, ...client, ...sent, "x-a": "1, 2, 3" });
  });

  test("X-Forwarded-For and X-Forwarded-Host contain a trusted proxy's values, not the caller's", async () => {
    const sent = Object.entries({
      "X-Forwarded-For": "198.51.100.6, 192.0.2.7",
      "X-Forwarded-Host": "forged.example, public.example:8443",
    });
    const { received } = await forward(sent, {}, {}, { trustedProxies: { addresses: ["127.0.0.1"] } });
    const want = { "x-forwarded-for": "192.0.2.7", "x-forwarded-host": "public.example:8443" };
    expect(received).toEqual({ ...grpcFields, ...want });
  });

  test("a -bin field with invalid base64 gets a 400 response, which shortens a long name", async () => {
    await using proxy = await startProxied({ getReading: () => ({}) });
    const ask = async (name: string): Promise<[number, string]> => {
      const header: readonly Field[] = [[name, "AA,*"]];
      const response = await exchangeHttp1(proxy.address, { httpMethod: "GET", path: "/sensors/a/reading", header });
      return [response.httpStatus, response.body.toString()];
    };
    expect(await ask("X-B-Bin")).toEqual([
      400,
      '{"code":3,"status":"INVALID_ARGUMENT","message":"the header field X-B-Bin is not valid base64","details":[]}',
    ]);
    expect((await ask(`${"x".repeat(10_000)}-bin`))[1].length).toBeLessThan(400);
    expect(proxy.greenhouse.completedRequests).toEqual([]);
  });

  test("`set` gets the original context values if an interceptor replaces them", async () => {
    const set: ForwardRules["set"] = ({ procedure = "", peer, contextValues }) => ({
      "x-procedure": procedure,
      "x-peer": peer.address,
      "x-user": contextValues.get(user),
    });
    const options: Partial<ProxyOptions> = {
      admit: ({ contextValues }) => void contextValues.set(user, "ada"),
      interceptors: [replaceContextValues],
    };
    const { received } = await forward([], {}, { requestHeader: { set } }, options);
    const procedure = "/greenhouse.v1.GreenhouseService/GetReading";
    const added = { "x-procedure": procedure, "x-peer": "127.0.0.1", "x-user": "ada" };
    expect(received).toEqual({ ...grpcFields, ...client, ...added });
  });

  test("response fields but those of the server are forwarded", async () => {
    const responseFields = { etag: '"1"', "content-disposition": "inline", "x-b-bin": "not base64", "x-via": "1" };
    const { back } = await forward([], { ...responseFields, via: "1", "set-cookie": "a=b", location: "/" }, {});
    expect(back).toMatchObject(responseFields);
    const absent = ["x-forwarded-for", "via", "set-cookie", "location"];
    expect(Object.keys(back).filter((name) => absent.includes(name))).toEqual([]);
  });
});

const failingSet: ForwardRules["set"] = () => {
  throw new Error("no key");
};

describe("header forwarding with rules", () => {
  test("a set function that throws fails the call", async () => {
    const faults: string[] = [];
    const onFault = (error: unknown): void => void faults.push(String(error));
    const { received } = await forward([], {}, { requestHeader: { set: failingSet } }, { onFault });
    await forward([], {}, { responseHeader: { set: failingSet } }, { onFault });
    expect([received, faults]).toEqual([{}, ["Error: no key", "Error: no key"]]);
  });

  test("with rest.grpcMetadata, Grpc-Metadata-Zone is forwarded as zone, but not as a new name", async () => {
    const rest = { service: () => ({ grpcMetadata: true }) };
    const requestHeader = { rename: { authorization: "x-auth" } };
    const header = Object.entries({ "Grpc-Metadata-Zone": "south", "Grpc-Metadata-X-Auth": "forged" });
    const { received } = await forward(header, {}, { requestHeader }, { rest });
    expect(received).toEqual({ ...grpcFields, ...client, zone: "south" });
  });
});

test("the reference page lists the fields that need an exact name", () => {
  const page = readFileSync(join(import.meta.dirname, "../../../../../docs/reference/proxy-configuration.md"), "utf8");
  const tables = [
    ["set by", identityFields.map(({ setBy, names }) => [setBy, names] as const)],
    ["controls", controlFields.map(({ controls, names }) => [controls, names] as const)],
  ] as const;
  for (const [title, groups] of tables) {
    const rows = groups.map(([group, names]) => `| ${group} | ${names.map((name) => `\`${name}\``).join(", ")} |`);
    expect(page).toContain(`| ${title} | fields |\n|---|---|\n${rows.join("\n")}\n\n`);
  }
});

// A connection uses one list object for all equal header sections, so a list's forwarded fields can be cached.

const observed = ["x-set", "x-color", "x-forwarded-for", "authorization"];

/** Sends one call per header on one connection, and returns the fields that the upstream gets. */
async function forwardAll(headers: readonly (readonly Field[])[], rules: ForwardRules): Promise<unknown[]> {
  const received: unknown[] = [];
  const getReading = (_: unknown, { requestHeader, timeoutMs }: HandlerContext) => {
    // The proxy offers no compression, because it would have to decompress the responses.
    expect(requestHeader.get("grpc-accept-encoding")).toBeNull();
    received.push([...observed.map((name) => requestHeader.get(name)), timeoutMs() !== undefined]);
    return {};
  };
  await using proxy = await startProxied({ getReading }, { upstreamOptions: { requestHeader: rules } });
  using http2 = await openHttp2(proxy.address);
  for (const fields of headers) {
    const header = [["content-type", "application/grpc"], ["te", "trailers"], ...fields] as const;
    const path = "/greenhouse.v1.GreenhouseService/GetReading";
    await http2.exchange({ httpMethod: "POST", path, header, body: envelope(new Uint8Array(0)) });
  }
  return received;
}

const red: readonly Field[] = Object.entries({ "x-color": "red", authorization: "Bearer a" });
const blue: readonly Field[] = Object.entries({ "x-color": "blue", "grpc-timeout": "1H" });
const headers = [red, red, red, blue, red, blue, blue, blue];

test("calls with equal headers are forwarded with their own deadlines", async () => {
  const ofRed = [null, "red", "127.0.0.1", "Bearer a", false];
  const ofBlue = [null, "blue", "127.0.0.1", null, true];
  expect(await forwardAll(headers, {})).toEqual(headers.map((header) => (header === red ? ofRed : ofBlue)));
});

test("the headers and credentials of a closed connection are released", async () => {
  const rules = compileForwardRules("request");
  const begin = (): WeakRef<readonly string[]> => {
    const header = ["authorization", "Bearer a"];
    expect(rules.select(header, noAddedFields)).toBe(rules.select(header, noAddedFields));
    return new WeakRef(header);
  };
  const header = begin();
  // A new WeakRef keeps its target until the turn ends.
  await new Promise(setImmediate);
  collectGarbage();
  expect(header.deref()).toBeUndefined();
  expect(rules.select(["x-color", "red"], noAddedFields).fields).toEqual(["x-color", "red"]);
});

test("at most a thousand field names are cached", async () => {
  const rules = compileForwardRules("request");
  const before = await retainedBytes();
  // The names are long, so that other changes in memory use are small in comparison.
  for (let at = 0; at < 2_000; at += 1) rules.select([`${at}${"x".repeat(40_000)}`, ""], noAddedFields);
  const cached = ((await retainedBytes()) - before) / 40_000;
  expect(cached).toBeGreaterThan(800);
  expect(cached).toBeLessThan(1_500);
  expect(rules.select(["x-a", "1"], noAddedFields).fields).toEqual(["x-a", "1"]);
});

// What an upstream can make a browser do on the proxy's origin, which it shares with /docs and other upstreams.

/** One name for each name or prefix. */
const controlNames = controlFields.flatMap(({ names }) => names.map((name) => name.toLowerCase().replace("*", "any")));
const valueOf = (name: string): string => (name === "status" ? "302" : `${name} of the upstream`);

function control(fields: Headers): void {
  for (const name of controlNames) fields.set(name, valueOf(name));
}

async function fieldsOf(
  path: string,
  rules: ForwardRules = {},
): Promise<{ httpStatus: number; fields: Readonly<Record<string, string>> }> {
  await using upstream = await startFiles("listening", {
    getFile: ({ name }, { responseHeader, responseTrailer }: HandlerContext) => {
      if (name === "error") {
        const metadata = new Headers();
        control(metadata);
        throw new ConnectError("no file", Code.NotFound, metadata);
      }
      control(name === "trailer" ? responseTrailer : responseHeader);
      return { contentType: "text/html", data: Buffer.from("<script>steal()</script>") };
    },
    async *download(_, { responseHeader }) {
      control(responseHeader);
      yield { contentType: "text/html" };
    },
  });
  const url = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await startProxy(url, [FileService.file], { upstreamOptions: { responseHeader: rules } });
  const rpc = `/${FileService.typeName}/GetFile`;
  const request = path.startsWith("/")
    ? { httpMethod: "GET", path, header: [] }
    : rpcRequest(path === "Connect" ? wireFormats["connect-json"] : wireFormats["grpc-web"], Buffer.of(), [], rpc);
  const body = path === "Connect" ? Buffer.from("{}") : request.body;
  const { httpStatus, header } = await exchangeHttp1(proxy.address, { ...request, ...(body && { body }) });
  const known = [...controlNames, "x-content-type-options"];
  return { httpStatus, fields: Object.fromEntries(header.filter(([name]) => known.includes(name))) };
}

const sandboxed = { "content-security-policy": "sandbox", "x-content-type-options": "nosniff" };

describe("control fields of an upstream's response", () => {
  test.each([
    { from: "a header", path: "/files/a", httpStatus: 200, fields: sandboxed },
    { from: "a trailer", path: "/files/trailer", httpStatus: 200, fields: sandboxed },
    { from: "an error", path: "/files/error", httpStatus: 404, fields: {} },
    { from: "a stream of bytes", path: "/downloads/a", httpStatus: 200, fields: sandboxed },
    { from: "a header for Connect callers", path: "Connect", httpStatus: 200, fields: {} },
    { from: "a header for gRPC-Web callers", path: "gRPC-Web", httpStatus: 200, fields: {} },
  ])("in $from are not forwarded, even if allow is a wildcard", async ({ path, httpStatus, fields }) => {
    expect(await fieldsOf(path, { allow: ["*", /./] })).toEqual({ httpStatus, fields });
  });

  test("are forwarded if allow contains their exact names", async () => {
    const { httpStatus, fields } = await fieldsOf("/files/a", { allow: controlNames.map((it) => it.toUpperCase()) });
    expect(httpStatus).toBe(302);
    const forwarded = controlNames.filter((name) => name !== "status").map((name) => [name, valueOf(name)]);
    expect(fields).toEqual({ ...Object.fromEntries(forwarded), "x-content-type-options": "nosniff" });
  });
});
