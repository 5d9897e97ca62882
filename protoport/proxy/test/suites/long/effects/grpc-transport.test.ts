import { setTimeout as sleep } from "node:timers/promises";
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createIssuedCertificate } from "../../../../../testing/src/http/certificate.ts";
import { frameFlag, frameType } from "../../../../../testing/src/http/http2-frames.ts";
import { compareValues, Differs, type EffectsOf } from "../../../../../testing/src/comparison.ts";
import { recordGeneratedFunctions } from "../../../../../testing/src/gateway/generated-functions.ts";
import { descriptorSetOf } from "../../../../../testing/src/gateway/descriptor-set.ts";
import { outcomeOf } from "../../../../../testing/src/gateway/greenhouse-client.ts";
import { startScriptedServer } from "../../../../../testing/src/gateway/scripted-http2-server.ts";
import { createTestGateway } from "../../../../../testing/src/gateway/test-gateway.ts";
import { freePort } from "../../../../../testing/src/process/free-port.ts";
import {
  createGrpcTransport,
  createUpstream,
  type GrpcTransportOptions,
  type RetryPolicy,
} from "../../../../src/client/entry.ts";

// Calls a server with two values for each createGrpcTransport option, and compares what the caller or the server
// observes.

/** Milliseconds to wait for an effect that the other value must not have. */
const settledMs = 1_000;

/** When the server was called since a client was created, and with which header fields. */
const calls: { readonly header: Headers; readonly atMs: number }[] = [];

const certificate = createIssuedCertificate("localhost");
const [plain, other, secure] = [1, 2, 1].map((liters) =>
  createTestGateway({
    routes: (router) =>
      router.service(GreenhouseService, {
        waterBed: ({ note }, { requestHeader }) => {
          calls.push({ header: requestHeader, atMs: performance.now() });
          if (note === "fails") throw new ConnectError("again", Code.Unavailable);
          return { liters, note };
        },
        getReading: ({ sensor }, { requestHeader }) => {
          calls.push({ header: requestHeader, atMs: performance.now() });
          return { sensor };
        },
      }),
  }),
);
let [baseUrl, otherUrl, secureUrl] = ["", "", ""];
beforeAll(async () => {
  baseUrl = `http://127.0.0.1:${(await plain?.listen({ host: "127.0.0.1" }))?.port}`;
  otherUrl = `http://127.0.0.1:${(await other?.listen({ host: "127.0.0.1" }))?.port}`;
  const { cert, key } = certificate;
  secureUrl = `https://localhost:${(await secure?.listen({ tls: { cert, key } }))?.port}`;
});
afterAll(async () => {
  for (const gateway of [plain, other, secure]) await gateway?.close();
});

type Options = Partial<GrpcTransportOptions>;

/** Calls WaterBed with this note, and returns what `see` finds afterwards, and the outcome. */
const water =
  (note: string, see: () => unknown = () => undefined) =>
  async (options: Options): Promise<unknown> => {
    calls.length = 0;
    const upstream = options.baseUrl ?? baseUrl;
    const greenhouse = createClient(GreenhouseService, createGrpcTransport({ ...options, baseUrl: upstream }));
    const { code, liters, length } = await greenhouse.waterBed({ note }).then(
      (response) => ({ code: undefined, liters: response.liters, length: response.note.length }),
      (error: unknown) => ({ code: ConnectError.from(error).code, liters: 0, length: 0 }),
    );
    return [code, liters, length, see()];
  };

const fieldOf = (name: string) => (): unknown => calls.map(({ header }) => header.get(name));
const count = (): number => calls.length;
const long = "x".repeat(2_000);

/** Calls a server that never responds, and returns what is observed a little later. */
async function callSilent(
  options: Options,
  observe: (server: Awaited<ReturnType<typeof startScriptedServer>>) => unknown,
): Promise<unknown> {
  await using server = await startScriptedServer({
    opening: [{ type: frameType.settings, flags: 0, streamId: 0, payload: Buffer.of(0, 3, 0, 0, 0, 1) }],
  });
  const ending = new AbortController();
  const greenhouse = createClient(GreenhouseService, createGrpcTransport({ ...options, baseUrl: server.baseUrl }));
  const call = (): Promise<string> => outcomeOf(greenhouse.waterBed({}, { signal: ending.signal }));
  const outcomes = [call()];
  while (server.requests === 0) await sleep(5);
  outcomes.push(call());
  await sleep(settledMs);
  const observed = await observe(server);
  ending.abort();
  await Promise.all(outcomes);
  return observed;
}

const generated = recordGeneratedFunctions();

const once: RetryPolicy = {
  maxAttempts: 2,
  initialBackoffMs: 1,
  maxBackoffMs: 1,
  backoffMultiplier: 1,
  retryableCodes: [Code.Unavailable],
};

const effects: EffectsOf<GrpcTransportOptions> = {
  baseUrl: () => compareValues<Options>({}, { baseUrl: otherUrl }, water("")),
  interceptors: () =>
    compareValues<Options>(
      {},
      {
        interceptors: [
          (next) => (request) => {
            request.header.set("x-one", "1");
            return next(request);
          },
        ],
      },
      water("", fieldOf("x-one")),
    ),
  tls: () =>
    compareValues<Options>(
      { baseUrl: secureUrl },
      { baseUrl: secureUrl, tls: { ca: certificate.authority } },
      water(""),
    ),
  connections: () =>
    compareValues<Options>({ connections: 1 }, { connections: 2 }, (options) =>
      callSilent(options, ({ connections }) => connections),
    ),
  sendCompression: () => compareValues<Options>({}, { sendCompression: "gzip" }, water(long, fieldOf("grpc-encoding"))),
  compressMinBytes: () =>
    compareValues<Options>(
      { sendCompression: "gzip" },
      { sendCompression: "gzip", compressMinBytes: 1_000_000 },
      async (options) => {
        const sizes: number[] = [];
        await callSilentWith(options, sizes);
        return sizes.some((bytes) => bytes > 1_000);
      },
    ),
  readMaxBytes: () => compareValues<Options>({}, { readMaxBytes: 1_000 }, water(long)),
  writeMaxBytes: () => compareValues<Options>({}, { writeMaxBytes: 1_000 }, water(long)),
  defaultTimeoutMs: () =>
    compareValues<Options>(
      {},
      { defaultTimeoutMs: 3_600_000 },
      water("", () => calls.map(({ header }) => header.has("grpc-timeout"))),
    ),
  keepaliveMs: () =>
    compareValues<Options>({}, { keepaliveMs: 20 }, (options) =>
      callSilent(options, ({ frames }) =>
        frames.some(({ type, flags }) => type === frameType.ping && (flags & frameFlag.ack) === 0),
      ),
    ),
  waitForReady: async () => {
    const unreachable = `http://127.0.0.1:${await freePort()}`;
    return await compareValues<Options>({}, { waitForReady: true }, async (options) => {
      const upstream = createUpstream({ addresses: unreachable });
      const greenhouse = createClient(GreenhouseService, createGrpcTransport({ ...options, baseUrl: upstream }));
      const outcome = outcomeOf(greenhouse.waterBed({})).then((text) => text.split(":", 1)[0]);
      const observed = await Promise.race([outcome, sleep(settledMs, "waits")]);
      await upstream.drain(1);
      await outcome;
      return observed;
    });
  },
  retry: () => compareValues<Options>({}, { retry: once }, water("fails", count)),
  codegen: () =>
    compareValues<Options>({ codegen: true }, { codegen: false }, async (options) => {
      generated.length = 0;
      // Generated functions are cached per descriptor, so each client gets new ones.
      const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, descriptorSetOf(GreenhouseService.file)));
      const service = files.getService(GreenhouseService.typeName);
      if (service === undefined) throw new Error("the descriptors do not contain the service");
      const client = createClient(service, createGrpcTransport({ ...options, baseUrl }));
      await Reflect.apply(Reflect.get(client, "waterBed"), client, [{}]);
      return generated.length > 0;
    }),
};

/** Calls a server that never responds with a long message, and records how large its DATA frames are. */
async function callSilentWith(options: Options, sizes: number[]): Promise<void> {
  await using server = await startScriptedServer({});
  const ending = new AbortController();
  const greenhouse = createClient(GreenhouseService, createGrpcTransport({ ...options, baseUrl: server.baseUrl }));
  const outcome = outcomeOf(greenhouse.waterBed({ note: long }, { signal: ending.signal }));
  while (server.requests === 0) await sleep(5);
  ending.abort();
  await outcome;
  for (const { type, payload } of server.frames) if (type === frameType.data) sizes.push(payload.byteLength);
}

/** Compares how often and when the server is called with two policies. */
function comparePolicies(
  off: Partial<RetryPolicy>,
  on: Partial<RetryPolicy>,
  see: () => unknown = count,
): Promise<Differs> {
  const [without, withValue] = [off, on].map((policy): Options => ({ retry: { ...once, ...policy } }));
  return compareValues(without ?? {}, withValue ?? {}, water("fails", see));
}

/** Whether the longest time between two calls is that of a backoff of 500 ms, ±20 %. */
const isLong = (): boolean => calls.some(({ atMs }, at) => atMs - (calls[at - 1]?.atMs ?? atMs) > 300);

const retryEffects: EffectsOf<RetryPolicy> = {
  maxAttempts: () => comparePolicies({}, { maxAttempts: 3 }),
  initialBackoffMs: () => comparePolicies({ maxBackoffMs: 500 }, { maxBackoffMs: 500, initialBackoffMs: 500 }, isLong),
  maxBackoffMs: () => comparePolicies({ initialBackoffMs: 500 }, { initialBackoffMs: 500, maxBackoffMs: 500 }, isLong),
  backoffMultiplier: () => {
    const policy = { maxAttempts: 3, maxBackoffMs: 500 };
    return comparePolicies(policy, { ...policy, backoffMultiplier: 1_000 }, isLong);
  },
  retryableCodes: () => comparePolicies({}, { retryableCodes: [Code.Aborted] }),
  methods: () => comparePolicies({}, { methods: ({ name }) => name !== "WaterBed" }),
  budget: () => comparePolicies({}, { budget: { maxTokens: 1, tokenRatio: 0.1 } }),
};

test.each([
  ...Object.entries(effects).map(([name, comparison]) => ({ option: name, comparison })),
  ...Object.entries(retryEffects).map(([name, comparison]) => ({ option: `retry.${name}`, comparison })),
])("the option $option of createGrpcTransport has an effect", async ({ comparison }) => {
  await expect(comparison()).resolves.toBeInstanceOf(Differs);
});
