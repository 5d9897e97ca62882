import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { exchangeHttp2 } from "../../../../../testing/src/http/http2-connection.ts";
import { startGreenhouse } from "../../../../../testing/src/gateway/greenhouse.ts";
import { startProxy } from "../../../../../testing/src/gateway/proxy.ts";
import type { MethodSettings, ProxiedUpstreamOptions } from "../../../../src/create-proxy.ts";
import { envelope } from "../../../../../testing/src/gateway/scripted-http2-server.ts";

// The `grpc-timeout` that the upstream gets for unary calls without a deadline.

const procedure = "/greenhouse.v1.GreenhouseService/WaterBed";
const post = { httpMethod: "POST" };
const json = { header: [["content-type", "application/json"]], body: Buffer.from("{}") } as const;
const grpc = {
  header: [
    ["content-type", "application/grpc+proto"],
    ["te", "trailers"],
  ],
  body: envelope(Buffer.alloc(0)),
} as const;

const protocols = {
  rest: { ...post, path: "/beds/1:water", ...json },
  connect: { ...post, path: procedure, ...json },
  grpc: { ...post, path: procedure, ...grpc },
};

type Options = Pick<ProxiedUpstreamOptions, "methodSettings" | "maxTimeoutMs" | "timeoutMs">;

test.each([
  { protocol: "rest", options: {}, wantMs: 15_000 },
  { protocol: "rest", options: { timeoutMs: 8_000 }, wantMs: 8_000 },
  { protocol: "rest", options: { maxTimeoutMs: 60_000 }, wantMs: 60_000 },
  { protocol: "rest", options: { timeoutMs: 0 }, wantMs: undefined },
  { protocol: "rest", options: { timeoutMs: 0, maxTimeoutMs: 60_000 }, wantMs: 60_000 },
  { protocol: "connect", options: {}, wantMs: undefined },
  { protocol: "grpc", options: {}, wantMs: undefined },
  { protocol: "grpc", options: { timeoutMs: 8_000 }, wantMs: 8_000 },
  { protocol: "grpc", options: { timeoutMs: 0 }, wantMs: undefined },
] as const)(
  "with the upstream options $options, a $protocol call gets the timeout $wantMs (ms)",
  async ({ protocol, options, wantMs }) => {
    await expectTimeout(protocol, options, wantMs);
  },
);

test.each<[name: string, options: Options, own: MethodSettings, wantMs: number]>([
  ["a shorter timeout", { timeoutMs: 40_000 }, { timeoutMs: 8_000 }, 8_000],
  ["a longer timeout", { timeoutMs: 8_000 }, { timeoutMs: 40_000 }, 40_000],
  ["a shorter maximum", { maxTimeoutMs: 60_000 }, { maxTimeoutMs: 20_000 }, 20_000],
  ["a longer maximum", { maxTimeoutMs: 20_000 }, { maxTimeoutMs: 60_000 }, 60_000],
  ["a timeout above the upstream's maximum", { maxTimeoutMs: 20_000 }, { timeoutMs: 60_000 }, 20_000],
])("methodSettings with %s override the upstream's options", async (_name, options, own, wantMs) => {
  for (const protocol of ["rest", "grpc"] as const)
    await expectTimeout(protocol, { ...options, methodSettings: () => own }, wantMs);
});

/** Calls the method without a deadline, and checks the deadline that its upstream gets. */
async function expectTimeout(
  protocol: keyof typeof protocols,
  options: Options,
  wantMs: number | undefined,
): Promise<void> {
  let sent: string | null | undefined;
  await using upstream = await startGreenhouse({
    waterBed: (_, { requestHeader }) => {
      sent = requestHeader.get("grpc-timeout");
      return {};
    },
  });
  const address = `http://127.0.0.1:${upstream.address.port}`;
  await using proxy = await startProxy(address, [GreenhouseService.file], { upstreamOptions: options });
  await exchangeHttp2(proxy.address, protocols[protocol]);
  const [, digits, unit] = /^(\d+)([mS])$/.exec(sent ?? "") ?? [];
  const sentMs = Number(digits) * (unit === "S" ? 1_000 : 1);
  // The remaining time is sent.
  const isWanted = wantMs === undefined ? sent === null : sentMs <= wantMs && sentMs > wantMs - 5_000;
  expect({ sent, isWanted }).toEqual({ sent, isWanted: true });
}
