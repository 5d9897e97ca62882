import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createContextKey, createContextValues, type Interceptor } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { GreenhouseService, startProxy } from "@protoport/testing/proxy";
import type { ForwardRules, ProxyOptions } from "../../../../src/create-proxy.ts";
import { controlFields } from "../../../../src/forward/control-fields.ts";
import { identityFields } from "../../../../src/forward/identity-fields.ts";
import { exchangeHttp1, type Field, startGreenhouse } from "@protoport/testing";

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
  await using upstream = await startGreenhouse({
    getReading: (_, { requestHeader, responseHeader }) => {
      received = Object.fromEntries(requestHeader);
      for (const [name, value] of Object.entries(responseFields)) responseHeader.set(name, value);
      return {};
    },
  });
  const url = `http://127.0.0.1:${upstream.address.port}`;
  const upstreamOptions = { timeoutMs: 0, ...rules };
  await using proxy = await startProxy(url, [GreenhouseService.file], { upstreamOptions, ...options });
  const header: readonly Field[] = [["host", "proxy.example"], ...sent];
  const call = { httpMethod: "GET", path: "/sensors/a/reading", header };
  const { header: responseHeader } = await exchangeHttp1(proxy.address, call);
  return { received, back: Object.fromEntries(responseHeader) };
}

/** Fields in every gRPC request. */
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
    const dropped: readonly Field[] = [
      ["Connection", "close , x-HOP"],
      ["X-Hop", "1"],
      ["TE", "gzip"],
      ["Accept-Encoding", "gzip"],
      ["Cookie", "a=b"],
      ["X-Real-IP", "192.0.2.7"],
    ];
    const { received } = await forward([...dropped, ...Object.entries(sent), ["X-A", "3"]], {}, {});
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

  test("a -bin field with invalid base64 gets a 400 response, which shortens a long name", async () => {
    await using upstream = await startGreenhouse({ getReading: () => ({}) });
    await using proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, [GreenhouseService.file]);
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
    expect(upstream.completedRequests).toEqual([]);
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
    expect(received).toEqual({
      ...grpcFields,
      ...client,
      "x-procedure": "/greenhouse.v1.GreenhouseService/GetReading",
      "x-peer": "127.0.0.1",
      "x-user": "ada",
    });
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
    const header: readonly Field[] = [
      ["Grpc-Metadata-Zone", "south"],
      ["Grpc-Metadata-X-Auth", "forged"],
    ];
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
