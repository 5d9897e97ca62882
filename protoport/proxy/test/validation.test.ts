import { create, toBinary } from "@bufbuild/protobuf";
import { ViolationsSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { openValidation } from "../../gateway/src/validation/index.ts";
import { AccountSchema, SignupService } from "../../testing/src/gen/signup/v1/signup_pb.ts";
import { startProxy, type TestProxy } from "../../testing/src/gateway/proxy.ts";
import { startSignup, validAccount } from "../../testing/src/gateway/signup.ts";
import { createProxy } from "../src/create-proxy.ts";
import { collect, shared } from "@protoport/testing";

// The proxy checks requests in front of a service that does not.

const upstream = shared(() => startSignup(undefined));
const start = async (options: Parameters<typeof startProxy>[2]): Promise<TestProxy> => {
  const url = `http://127.0.0.1:${String(upstream.address.port)}`;
  return startProxy(url, [SignupService.file], { validation: await openValidation(), ...options });
};
const proxy = shared(() => start({}));
const intercepted = shared(() => start({ interceptors: [(next) => next] }));
const short = { ...validAccount, name: "A" };
const large = { ...short, addresses: Array.from({ length: 20_000 }, () => ({ zip: "12345" })) };

async function* stream<T>(...items: readonly T[]): AsyncGenerator<T> {
  yield* items;
}

const transports = {
  "gRPC in binary": () => createGrpcTransport({ baseUrl: proxy.baseUrl }),
  "gRPC in binary, with an interceptor": () => createGrpcTransport({ baseUrl: intercepted.baseUrl }),
  "Connect in binary": () =>
    createConnectTransport({ baseUrl: proxy.baseUrl, httpVersion: "2", useBinaryFormat: true }),
  "Connect in JSON": () => createConnectTransport({ baseUrl: proxy.baseUrl, httpVersion: "2" }),
};

test.for(Object.entries(transports))("invalid requests over %s do not reach the service", async ([, open]) => {
  const client = createClient(SignupService, open());
  const calls = [
    client.register(short),
    client.register(large),
    collect(client.registerAndWatch(short)),
    client.import(stream(validAccount, short)),
    collect(client.exchange(stream(validAccount, short))),
  ];
  for (const outcome of await Promise.allSettled<unknown>(calls)) {
    const error = ConnectError.from(outcome.status === "rejected" ? outcome.reason : outcome.value);
    expect(error).toMatchObject({ code: Code.InvalidArgument, rawMessage: "name: must be at least 2 characters" });
    expect(error.findDetails(ViolationsSchema)).toHaveLength(1);
  }
  expect(upstream.received).not.toContain("A");
  await expect(client.register(validAccount)).resolves.toMatchObject({ count: expect.any(Number) });
});

test("an invalid request over REST gets 400", async () => {
  const body = JSON.stringify(short);
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${proxy.baseUrl}/accounts`, { method: "POST", headers, body });
  expect([response.status, await response.json()]).toMatchObject([400, { code: 3 }]);
});

test("a malformed request message gets InvalidArgument", async () => {
  const response = await fetch(`${proxy.baseUrl}/signup.v1.SignupService/Register`, {
    method: "POST",
    headers: { "content-type": "application/proto", "connect-protocol-version": "1" },
    body: toBinary(AccountSchema, create(AccountSchema, validAccount)).slice(0, -1),
  });
  expect([response.status, await response.json()]).toMatchObject([400, { code: "invalid_argument" }]);
});

test("createProxy rejects validation with descriptors from reflection", async () => {
  const validation = await openValidation();
  const upstreams = [{ upstream: "http://127.0.0.1:9", descriptors: "reflection" as const }];
  await expect(createProxy({ upstreams, validation })).rejects.toMatchObject({ code: "ERR_OPTIONS" });
});
