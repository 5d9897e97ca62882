import { createServer, type RequestListener } from "node:http";
import { createContextKey, createContextValues, type HandlerContext, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import type { ForwardRules, ProxyOptions } from "../../../../src/create-proxy.ts";
import type { Field } from "../../../../../testing/src/http/exchange.ts";
import { exchangeHttp1 } from "../../../../../testing/src/http/http1-connection.ts";
import { startOnLoopback } from "../../../../../testing/src/http/listen-on-loopback.ts";
import { startGreenhouse } from "../../../../../testing/src/gateway/greenhouse.ts";
import { client, forward, grpcFields } from "./forwarded-fields.ts";
import { startProxy } from "../../../../../testing/src/gateway/proxy.ts";

// Which header fields a proxy forwards to the upstream, and back to the caller.

const user = createContextKey<string | undefined>(undefined);

const replaceContextValues: Interceptor = (next) => (request) =>
  next(Object.assign(Object.create(request), { contextValues: createContextValues() }));

describe("header forwarding without rules", () => {
  test.each(
    // oxfmt-ignore
    [
      "Accept", "Accept-Encoding", "Access-Control-Request-Method", "Connect-Protocol-Version", "Content-Language",
      "Cookie", "Grpc-Accept-Encoding", "Grpc-Metadata-User", "Grpc-Status", "Keep-Alive", "Max-Forwards",
      "Proxy-Authorization", "Sec-Fetch-Mode", "Trailer", "Upgrade", "Via",
    ],
  )("%s is not forwarded to the upstream, even if allowed", async (name) => {
    const { received } = await forward([[name, "1"]], {}, { requestHeader: { allow: ["*", /./] } });
    expect(received).toEqual({ ...grpcFields, ...client });
  });

  test("Connection and the caller's TE value are not forwarded", async () => {
    const { received } = await forward(
      [
        ["Connection", "close"],
        ["TE", "gzip"],
      ],
      {},
      {},
    );
    expect(received).toEqual({ ...grpcFields, ...client });
  });

  test("fields named by Connection are not forwarded, in upper or lower case", async () => {
    const { received } = await forward(
      [
        ["X-Hop", "1"],
        ["Connection", "close , x-HOP,authorization"],
        ["Authorization", "Bearer a"],
        ["X-Hops", "user-agent"],
      ],
      {},
      { requestHeader: { allow: ["*"] } },
    );
    expect(received).toEqual({ ...grpcFields, ...client, "x-hops": "user-agent" });
  });

  test("all other fields are forwarded unchanged", async () => {
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
    };
    const { received } = await forward([...Object.entries(sent), ["X-A", "3"]], {}, {});
    expect(received).toEqual({ ...grpcFields, ...client, ...sent, "x-a": "1, 2, 3" });
  });

  test.each([
    { who: "the connection's address and Host", trustedProxies: undefined, want: client },
    {
      who: "a trusted proxy's values",
      trustedProxies: { addresses: ["127.0.0.1"] },
      want: { "x-forwarded-for": "192.0.2.7", "x-forwarded-host": "public.example:8443" },
    },
  ])("X-Forwarded-For and X-Forwarded-Host contain $who, not the caller's values", async ({ trustedProxies, want }) => {
    const sent: readonly Field[] = [
      ["X-Forwarded-For", "198.51.100.6, 192.0.2.7"],
      ["X-Forwarded-Host", "forged.example, public.example:8443"],
    ];
    const { received } = await forward(sent, {}, {}, trustedProxies && { trustedProxies });
    expect(received).toEqual({ ...grpcFields, ...want });
  });

  test.each(["AA", "AA==", "AAA", "AAA=", "AAAA", "", "AA, AAA=,AAAA", "+/+/"])(
    "the valid base64 value %j of a -bin field is forwarded unchanged",
    async (value) => {
      expect((await forward([["X-B-Bin", value]], {}, {})).received).toEqual({
        ...grpcFields,
        ...client,
        "x-b-bin": value,
      });
    },
  );

  test.each(["A", "A===", "AA=", "AA A", "AA,*", "-_-_", "=", "AAAAA"])(
    "a -bin field with invalid base64, %j, gets a 400 response",
    async (value) => {
      await using upstream = await startGreenhouse({ getReading: () => ({}) });
      await using proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [GreenhouseService.file]);
      const header: readonly Field[] = [["X-B-Bin", value]];
      const response = await exchangeHttp1(proxy.address, { httpMethod: "GET", path: "/sensors/a/reading", header });
      expect([response.httpStatus, response.body.toString()]).toEqual([
        400,
        '{"code":3,"status":"INVALID_ARGUMENT","message":"the header field X-B-Bin is not valid base64","details":[]}',
      ]);
      expect(upstream.completedRequests).toEqual([]);
    },
  );

  test("the error for a long field name contains only its beginning", async () => {
    await using proxy = await startProxy("http://127.0.0.1:1", [GreenhouseService.file]);
    const header: readonly Field[] = [[`${"x".repeat(10_000)}-bin`, "*"]];
    const response = await exchangeHttp1(proxy.address, { httpMethod: "GET", path: "/sensors/a/reading", header });
    expect([response.httpStatus, response.body.byteLength < 400]).toEqual([400, true]);
  });

  test("X-Forwarded-For is the socket's peer address in a node:http server", async () => {
    const received: unknown[] = [];
    const getReading = (_: unknown, { requestHeader }: HandlerContext): object => {
      received.push(requestHeader.get("x-forwarded-for"));
      return {};
    };
    await using upstream = await startGreenhouse({ getReading });
    await using started = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [GreenhouseService.file]);
    const listener: RequestListener = (request, response) => {
      // An IPv4 address as a dual-stack socket reports it.
      Object.defineProperty(request.socket, "remoteAddress", { value: "::ffff:192.0.2.9" });
      started.proxy.handler(request, response);
    };
    await using server = await startOnLoopback(createServer(listener));
    expect((await fetch(`${server.baseUrl}/sensors/a/reading`)).status).toBe(200);
    expect(received).toEqual(["192.0.2.9"]);
  });

  test("renaming X-Forwarded-For drops a forged value if the caller has no address", async () => {
    let received = {};
    await using upstream = await startGreenhouse({
      getReading: (_, { requestHeader }) => {
        received = Object.fromEntries(requestHeader);
        return {};
      },
    });
    const rename = { "x-forwarded-for": "z-for", "x-a": "z-for" };
    const upstreamOptions = { timeoutMs: 0, requestHeader: { deny: ["x-forwarded-host"], rename } };
    const url = `http://127.0.0.1:${upstream.address.port}`;
    await using started = await startProxy(url, [GreenhouseService.file], { upstreamOptions });
    const headers = { "z-for": "192.0.2.66", "x-a": "192.0.2.67", "x-b": "1" };
    const call = new Request("http://localhost/sensors/a/reading", { headers });
    expect((await started.proxy.fetch(call)).status).toBe(200);
    expect(received).toEqual({ ...grpcFields, "x-b": "1" });
  });

  test("`set` gets the original context values if an interceptor replaces them", async () => {
    const set: ForwardRules["set"] = ({ procedure = "", contextValues }) => ({
      "x-procedure": procedure,
      "x-user": contextValues.get(user),
    });
    const options: Partial<ProxyOptions> = {
      admit: ({ contextValues }) => void contextValues.set(user, "ada"),
      interceptors: [replaceContextValues],
    };
    const { received } = await forward([], {}, { requestHeader: { set } }, options);
    expect(received).toEqual({
      ...grpcFields,
      ...client,
      "x-procedure": "/greenhouse.v1.GreenhouseService/GetReading",
      "x-user": "ada",
    });
  });

  test.each(["access-control-allow-origin", "alt-svc", "proxy-status", "server", "set-cookie", "via"])(
    "%s is not forwarded to the caller",
    async (name) => {
      expect((await forward([], { [name]: "1" }, { responseHeader: { allow: ["*"] } })).back).not.toHaveProperty(name);
    },
  );

  test("all other response fields are forwarded", async () => {
    const responseFields = {
      etag: '"1"',
      "x-a": "b",
      "content-disposition": "inline",
      "x-b-bin": "not base64",
      "x-via": "1",
    };
    const { back } = await forward([], responseFields, {});
    expect(back).toMatchObject(responseFields);
    expect(back).not.toHaveProperty("x-forwarded-for");
  });
});

describe("header forwarding with rules", () => {
  const sent: readonly Field[] = [
    ["X-A", "1"],
    ["X-B", "2"],
    ["Y-A", "3"],
  ];

  test.each<[name: string, rules: ForwardRules, want: Readonly<Record<string, string>>]>(
    // oxfmt-ignore
    [
      ["allow selects fields by name", { allow: ["X-a"] }, { "x-a": "1" }],
      ["allow selects fields by prefix", { allow: ["x-*"] }, { ...client, "x-a": "1", "x-b": "2" }],
      ["allow selects fields by a RegExp with the flag g", { allow: [/^.-a$/g] }, { "x-a": "1", "y-a": "3" }],
      ["allow and deny match RegExps without regard to case", { allow: [/^X-/], deny: [/B$/gi] },
        { ...client, "x-a": "1" }],
      ["deny excludes fields by prefix", { deny: ["X-*"] }, { "y-a": "3" }],
      ["deny takes precedence over allow", { allow: ["x-*"], deny: [/b$/] }, { ...client, "x-a": "1" }],
      ["allow and rename apply to X-Forwarded-For and X-Forwarded-Host",
        { allow: ["x-forwarded-*"], rename: { "X-Forwarded-For": "Z-For", "x-forwarded-host": "Z-Host" } },
        { "z-for": "127.0.0.1", "z-host": "proxy.example" }],
      ["rename changes a field's name", { allow: ["x-a"], rename: { "X-A": "Z-A" } }, { "z-a": "1" }],
      ["set adds and replaces fields",
        { set: ({ procedure, peer }) => ({ "x-a": String(procedure), "X-Forwarded-For": peer.address }) },
        { "x-a": "/greenhouse.v1.GreenhouseService/GetReading", "x-b": "2", "y-a": "3", ...client }],
      ["set removes fields whose value is undefined",
        { set: () => ({ "X-A": undefined, "x-forwarded-for": undefined, "x-c": undefined }) },
        { "x-b": "2", "y-a": "3", "x-forwarded-host": "proxy.example" }],
    ],
  )("%s", async (_, rules, want) => {
    expect((await forward(sent, {}, { requestHeader: rules })).received).toEqual({ ...grpcFields, ...want });
  });

  test("deny, rename and set apply to response fields", async () => {
    const responseFields = { "x-a": "1", "x-b": "2", "y-a": "3" };
    const rules: ForwardRules = {
      deny: ["x-b"],
      rename: { "x-a": "x-c" },
      set: ({ httpMethod }) => ({ "x-m": httpMethod }),
    };
    const { back } = await forward([], responseFields, { responseHeader: rules });
    expect(back).toMatchObject({ "x-c": "1", "y-a": "3", "x-m": "GET" });
    expect(back).not.toHaveProperty("x-a");
    expect(back).not.toHaveProperty("x-b");
  });

  test.each(["grpc-timeout", "te", "content-type", "connection", "not a name"])(
    "the name '%s' is rejected in rename and set",
    async (name) => {
      await expect(forward([], {}, { requestHeader: { rename: { "x-a": name } } })).rejects.toThrow(
        `rename and set must name a field that can be forwarded, got "${name}"`,
      );
      const faults: string[] = [];
      const onFault = (error: unknown): void => void faults.push(String(error));
      const { received } = await forward([], {}, { requestHeader: { set: () => ({ [name]: "1" }) } }, { onFault });
      const back: ForwardRules = { set: () => ({ [name]: "1" }) };
      await forward([], {}, { responseHeader: back }, { onFault });
      expect([received, faults]).toEqual([
        {},
        Array(2).fill(expect.stringContaining(`rename and set must name a field that can be forwarded, got "${name}"`)),
      ]);
    },
  );

  test.each<[form: string, set: () => unknown, fault: string]>(
    // oxfmt-ignore
    [
      ["throws", () => {
          throw new Error("no key");
        }, "Error: no key"],
      ["returns a rejected promise", () => Promise.reject(new Error("no key")),
        "TypeError: requestHeader.set must be synchronous, got a promise"],
      ["returns a resolved promise", () => Promise.resolve({ "x-a": "1" }),
        "TypeError: requestHeader.set must be synchronous, got a promise"],
    ],
  )("a set function that %s fails the call", async (_form, set, fault) => {
    const rules: object = { set };
    const faults: string[] = [];
    const onFault = (error: unknown): void => void faults.push(String(error));
    const { received } = await forward([], {}, { requestHeader: rules }, { onFault });
    await forward([], {}, { responseHeader: rules }, { onFault });
    expect([received, faults]).toEqual([{}, [fault, fault.replace("request", "response")]]);
  });

  test("set with a line break in a value fails the call", async () => {
    const faults: string[] = [];
    const onFault = (error: unknown): void => void faults.push(String(error));
    await forward([], {}, { requestHeader: { set: () => ({ "x-a": "1\n2" }) } }, { onFault });
    expect(faults).toEqual([expect.stringContaining('the value of header "x-a"')]);
  });

  test("with rest.grpcMetadata, Grpc-Metadata-Zone is forwarded as zone", async () => {
    const { received } = await forward(
      [["Grpc-Metadata-Zone", "south"]],
      {},
      {},
      { rest: { service: () => ({ grpcMetadata: true }) } },
    );
    expect(received).toEqual({ ...grpcFields, ...client, zone: "south" });
  });
});
