import { createServer, type RequestListener } from "node:http";
import { createContextKey, createContextValues, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { ForwardRules, ProxyOptions } from "../../src/create-proxy.ts";
import { compileForwardRules } from "../../src/forward/forward-rules.ts";
import type { Field } from "../../../testing/src/carriers/exchange.ts";
import { exchangeHttp1 } from "../../../testing/src/carriers/http1-connection.ts";
import { startOnLoopback } from "../../../testing/src/carriers/listen-on-loopback.ts";
import { startGreenhouse } from "../../../testing/src/gateway/greenhouse.ts";
import { requestFrom, startProxy } from "../../../testing/src/gateway/proxy.ts";

// Which header fields go through a proxy, on the way to the upstream and back.

/** What the upstream gets of a header, and the caller of what the upstream answers, for a call of REST. */
async function pass(
  sent: readonly Field[],
  answered: Readonly<Record<string, string>>,
  rules: { readonly metadata?: ForwardRules; readonly answerMetadata?: ForwardRules },
  options: Partial<ProxyOptions> = {},
): Promise<{ readonly got: Readonly<Record<string, string>>; readonly back: Readonly<Record<string, string>> }> {
  let got = {};
  await using upstream = await startGreenhouse({
    getReading: (_, { requestHeader, responseHeader }) => {
      got = Object.fromEntries(requestHeader);
      for (const [name, value] of Object.entries(answered)) responseHeader.set(name, value);
      return {};
    },
  });
  const url = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await startProxy(url, [GreenhouseService.file], { upstreamOptions: rules, ...options });
  const { header } = await exchangeHttp1(proxy.address, {
    httpMethod: "GET",
    path: "/sensors/a/reading",
    header: sent,
  });
  return { got, back: Object.fromEntries(header) };
}

/** What every call has, by its protocol. */
const own = { "content-type": "application/grpc+proto", te: "trailers", "user-agent": "grpc-node-plantstore-gateway" };
/** Who calls, where rules do not leave it out. */
const client = { "x-forwarded-for": "127.0.0.1" };

const user = createContextKey<string | undefined>(undefined);

const forget: Interceptor = (next) => (request) =>
  next(Object.assign(Object.create(request), { contextValues: createContextValues() }));

describe("without rules", () => {
  test.each([
    "Accept",
    "Accept-Encoding",
    "CF-Connecting-IPv6",
    "Client-IP",
    "Access-Control-Request-Method",
    "Connect-Protocol-Version",
    "Content-Language",
    "Cookie",
    "Fastly-Client-IP",
    "Forwarded",
    "Forwarded-For",
    "Grpc-Accept-Encoding",
    "Grpc-Metadata-User",
    "Grpc-Status",
    "Keep-Alive",
    "Max-Forwards",
    "Proxy-Authorization",
    "Sec-Fetch-Mode",
    "Trailer",
    "Upgrade",
    "Via",
    "X-Azure-ClientIP",
    "X-Cluster-Client-IP",
    "X-Envoy-External-Address",
    "X-Envoy-Upstream-Rq-Timeout-Ms",
    "X-Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Original-Forwarded-For",
    "X-Original-URL",
    "X-Real-IP",
  ])("%s does not go to the upstream, allowed or not", async (name) => {
    const { got } = await pass([[name, "1"]], {}, { metadata: { allow: ["*"] } });
    expect(got).toEqual({ ...own, ...client });
  });

  test("Connection does not, nor what te says", async () => {
    const { got } = await pass(
      [
        ["Connection", "close"],
        ["TE", "gzip"],
      ],
      {},
      {},
    );
    expect(got).toEqual({ ...own, ...client });
  });

  test("fields that Connection names do not, however they are written", async () => {
    const { got } = await pass(
      [
        ["X-Hop", "1"],
        ["Connection", "close , x-HOP,authorization"],
        ["Authorization", "Bearer a"],
        ["X-Hops", "user-agent"],
      ],
      {},
      { metadata: { allow: ["*"] } },
    );
    expect(got).toEqual({ ...own, ...client, "x-hops": "user-agent" });
  });

  test("all others do, with their values", async () => {
    const sent = {
      authorization: "Bearer a",
      traceparent: "00-1-2-00",
      "x-a": "1, 2",
      "user-agent": "mine",
      "x-b-bin": "AA",
      // Beginnings of names that do not, in the middle.
      "x-grpc-": "1",
      "x-connect-": "1",
    };
    const { got } = await pass([...Object.entries(sent), ["X-A", "3"]], {}, {});
    expect(got).toEqual({ ...own, ...client, ...sent, "x-a": "1, 2, 3" });
  });

  test.each([
    { who: "the other end of the connection", trustedProxies: undefined, want: "127.0.0.1" },
    { who: "whom a trusted proxy names", trustedProxies: { addresses: ["127.0.0.1"] }, want: "192.0.2.7" },
  ])("X-Forwarded-For is $who", async ({ trustedProxies, want }) => {
    const forwarded: Field = ["X-Forwarded-For", "198.51.100.6, 192.0.2.7"];
    const { got } = await pass([forwarded], {}, {}, trustedProxies && { trustedProxies });
    expect(got).toEqual({ ...own, "x-forwarded-for": want });
  });

  test.each(["AA", "AA==", "AAA", "AAA=", "AAAA", "", "AA, AAA=,AAAA", "+/+/"])(
    "%j is binary metadata",
    async (value) => {
      expect((await pass([["X-B-Bin", value]], {}, {})).got).toEqual({ ...own, ...client, "x-b-bin": value });
    },
  );

  test.each(["A", "A===", "AA=", "AA A", "AA,*", "-_-_", "=", "AAAAA"])("%j is not", async (value) => {
    await using upstream = await startGreenhouse({ getReading: () => ({}) });
    await using proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [GreenhouseService.file]);
    const header: readonly Field[] = [["X-B-Bin", value]];
    const answer = await exchangeHttp1(proxy.address, { httpMethod: "GET", path: "/sensors/a/reading", header });
    expect([answer.httpStatus, answer.body.toString()]).toEqual([
      400,
      '{"code":3,"status":"INVALID_ARGUMENT","message":"the header field X-B-Bin is not valid base64","details":[]}',
    ]);
    expect(upstream.answers).toEqual([]);
  });

  test("a name that is too long to repeat is cut short", async () => {
    await using proxy = await startProxy("http://127.0.0.1:1", [GreenhouseService.file]);
    const header: readonly Field[] = [[`${"x".repeat(10_000)}-bin`, "*"]];
    const answer = await exchangeHttp1(proxy.address, { httpMethod: "GET", path: "/sensors/a/reading", header });
    expect([answer.httpStatus, answer.body.byteLength < 400]).toEqual([400, true]);
  });

  test.each([
    { address: "", want: undefined },
    { address: "192.0.2.9", want: "192.0.2.9" },
    // As a socket for both kinds names it.
    { address: "::ffff:192.0.2.9", want: "192.0.2.9" },
    { address: "::ffff:1", want: "::ffff:1" },
    { address: "64:ff9b::192.0.2.9", want: "64:ff9b::192.0.2.9" },
  ])("a caller of the address $address is told as $want", ({ address, want }) => {
    expect(compileForwardRules("request").added(requestFrom(address)).get("x-forwarded-for")).toBe(want);
  });

  test("mounted in a server of node:http, X-Forwarded-For is the other end of its socket", async () => {
    const got: unknown[] = [];
    const getReading = (_: unknown, { requestHeader }: HandlerContext): object => {
      got.push(requestHeader.get("x-forwarded-for"));
      return {};
    };
    await using upstream = await startGreenhouse({ getReading });
    await using started = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [GreenhouseService.file]);
    const listener: RequestListener = (request, response) => {
      // As a socket for both kinds names it.
      Object.defineProperty(request.socket, "remoteAddress", { value: "::ffff:192.0.2.9" });
      started.proxy.handler(request, response);
    };
    await using server = await startOnLoopback(createServer(listener));
    expect((await fetch(`${server.baseUrl}/sensors/a/reading`)).status).toBe(200);
    expect(got).toEqual(["192.0.2.9"]);
  });

  test("by the name that says who calls, a caller without an address says nothing", async () => {
    let got = {};
    await using upstream = await startGreenhouse({
      getReading: (_, { requestHeader }) => {
        got = Object.fromEntries(requestHeader);
        return {};
      },
    });
    const upstreamOptions = { metadata: { rename: { "x-forwarded-for": "z-for", "x-a": "z-for" } } };
    const url = `http://127.0.0.1:${upstream.address.port}`;
    await using started = await startProxy(url, [GreenhouseService.file], { upstreamOptions });
    const headers = { "z-for": "192.0.2.66", "x-a": "192.0.2.67", "x-b": "1" };
    const call = new Request("http://localhost/sensors/a/reading", { headers });
    expect((await started.proxy.fetch(call)).status).toBe(200);
    expect(got).toEqual({ ...own, "x-b": "1" });
  });

  test("an interceptor that replaces the context values takes nothing from the rules", async () => {
    const set: ForwardRules["set"] = ({ procedure = "", contextValues }) => ({
      "x-procedure": procedure,
      "x-user": contextValues.get(user),
    });
    const options: Partial<ProxyOptions> = {
      admit: ({ contextValues }) => void contextValues.set(user, "ada"),
      interceptors: [forget],
    };
    const { got } = await pass([], {}, { metadata: { set } }, options);
    expect(got).toEqual({
      ...own,
      ...client,
      "x-procedure": "/greenhouse.v1.GreenhouseService/GetReading",
      "x-user": "ada",
    });
  });

  test.each(["access-control-allow-origin", "alt-svc", "proxy-status", "server", "set-cookie", "via"])(
    "%s does not come back",
    async (name) => {
      expect((await pass([], { [name]: "1" }, { answerMetadata: { allow: ["*"] } })).back).not.toHaveProperty(name);
    },
  );

  test("all others do", async () => {
    const answered = {
      etag: '"1"',
      "x-a": "b",
      "content-disposition": "inline",
      "x-b-bin": "not base64",
      "x-via": "1",
    };
    const { back } = await pass([], answered, {});
    expect(back).toMatchObject(answered);
    expect(back).not.toHaveProperty("x-forwarded-for");
  });
});

describe("with rules", () => {
  const sent: readonly Field[] = [
    ["X-A", "1"],
    ["X-B", "2"],
    ["Y-A", "3"],
  ];

  test.each<[name: string, rules: ForwardRules, want: Readonly<Record<string, string>>]>([
    ["names that are allowed pass", { allow: ["X-a"] }, { "x-a": "1" }],
    ["beginnings that are allowed pass", { allow: ["x-*"] }, { ...client, "x-a": "1", "x-b": "2" }],
    ["an expression chooses, however often", { allow: [/^.-a$/g] }, { "x-a": "1", "y-a": "3" }],
    ["an expression does not mind case", { allow: [/^X-/], deny: [/B$/gi] }, { ...client, "x-a": "1" }],
    ["names that are denied do not", { deny: ["X-*"] }, { "y-a": "3" }],
    ["denied counts above allowed", { allow: ["x-*"], deny: [/b$/] }, { ...client, "x-a": "1" }],
    [
      "the field that names the caller is ruled as the others are",
      { allow: ["x-forwarded-for"], rename: { "X-Forwarded-For": "Z-For" } },
      { "z-for": "127.0.0.1" },
    ],
    ["fields get other names", { allow: ["x-a"], rename: { "X-A": "Z-A" } }, { "z-a": "1" }],
    [
      "fields are added, in the place of others",
      { set: ({ procedure, peer }) => ({ "x-a": String(procedure), "X-Forwarded-For": peer.address }) },
      {
        "x-a": "/greenhouse.v1.GreenhouseService/GetReading",
        "x-b": "2",
        "y-a": "3",
        "x-forwarded-for": "127.0.0.1",
      },
    ],
    [
      "fields without a value are left out",
      { set: () => ({ "X-A": undefined, "x-forwarded-for": undefined, "x-c": undefined }) },
      { "x-b": "2", "y-a": "3" },
    ],
  ])("%s", async (_, rules, want) => {
    expect((await pass(sent, {}, { metadata: rules })).got).toEqual({ ...own, ...want });
  });

  test("those of answers do the same", async () => {
    const answered = { "x-a": "1", "x-b": "2", "y-a": "3" };
    const rules: ForwardRules = {
      deny: ["x-b"],
      rename: { "x-a": "x-c" },
      set: ({ httpMethod }) => ({ "x-m": httpMethod }),
    };
    const { back } = await pass([], answered, { answerMetadata: rules });
    expect(back).toMatchObject({ "x-c": "1", "y-a": "3", "x-m": "GET" });
    expect(back).not.toHaveProperty("x-a");
    expect(back).not.toHaveProperty("x-b");
  });

  test.each(["grpc-timeout", "te", "content-type", "connection", "not a name"])(
    "nothing is called %s by them",
    async (name) => {
      await expect(pass([], {}, { metadata: { rename: { "x-a": name } } })).rejects.toThrow(`may be named "${name}"`);
      const faults: string[] = [];
      const onFault = (error: unknown): void => void faults.push(String(error));
      const { got } = await pass([], {}, { metadata: { set: () => ({ [name]: "1" }) } }, { onFault });
      const back: ForwardRules = { set: () => ({ [name]: "1" }) };
      await pass([], {}, { answerMetadata: back }, { onFault });
      expect([got, faults]).toEqual([{}, Array(2).fill(expect.stringContaining(`may be named "${name}"`))]);
    },
  );

  test.each<{ form: string; set: () => unknown; fault: string }>([
    {
      form: "throws",
      set: () => {
        throw new Error("no key");
      },
      fault: "Error: no key",
    },
    {
      form: "rejects",
      set: () => Promise.reject(new Error("no key")),
      fault: "TypeError: the set of metadata must return its result, got a promise",
    },
    {
      form: "resolves",
      set: () => Promise.resolve({ "x-a": "1" }),
      fault: "TypeError: the set of metadata must return its result, got a promise",
    },
  ])("a set that $form fails its call, in either direction", async ({ set, fault }) => {
    const rules: object = { set };
    const faults: string[] = [];
    const onFault = (error: unknown): void => void faults.push(String(error));
    const { got } = await pass([], {}, { metadata: rules }, { onFault });
    await pass([], {}, { answerMetadata: rules }, { onFault });
    expect([got, faults]).toEqual([{}, [fault, fault]]);
  });

  test("a value that no field may have is not set", async () => {
    const faults: string[] = [];
    const onFault = (error: unknown): void => void faults.push(String(error));
    await pass([], {}, { metadata: { set: () => ({ "x-a": "1\n2" }) } }, { onFault });
    expect(faults).toEqual([expect.stringContaining('the value of "x-a"')]);
  });

  test("Grpc-Metadata-Name is name, where the service has such names", async () => {
    const { got } = await pass(
      [["Grpc-Metadata-Zone", "south"]],
      {},
      {},
      { rest: { service: () => ({ grpcMetadata: true }) } },
    );
    expect(got).toEqual({ ...own, ...client, zone: "south" });
  });
});
