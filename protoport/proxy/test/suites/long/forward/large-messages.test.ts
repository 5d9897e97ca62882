import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { GreenhouseService, startGreenhouse, startProxy } from "@protoport/testing/proxy";
import { collect } from "../../../../../testing/src/collect.ts";

const files = [GreenhouseService.file];

/** Different strings that fill part of a frame, several frames, several chunks and several windows. */
const notes = [20, 40, 100, 1_000].flatMap((kibibytes) =>
  ["oak", "elm", "fir", "yew"].map((tree) => `${tree} ${kibibytes} `.repeat(kibibytes * 128)),
);

// Disables compression, so that messages are forwarded unchanged.
const acceptCompression: [] = [];

const protocols = [
  { name: "Connect over HTTP/1.1", create: createConnectTransport, httpVersion: "1.1" },
  { name: "gRPC-Web over HTTP/2", create: createGrpcWebTransport, httpVersion: "2" },
  { name: "gRPC", create: createGrpcTransport, httpVersion: "2" },
] as const;

describe.each(protocols)("large messages with $name", ({ create: createTransport, httpVersion }) => {
  test("are forwarded unchanged, concurrently", async () => {
    await using upstream = await startGreenhouse({
      waterBed: ({ note }) => ({ note }),
      async *watchReadings({ sensor, count }) {
        for (let at = 0; at < count; at += 1) yield { sensor, degreesCelsius: at };
      },
    });
    await using proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, files);
    const client = createClient(
      GreenhouseService,
      createTransport({ baseUrl: proxy.baseUrl, httpVersion, acceptCompression }),
    );
    const calls = notes.map(async (note) => (await client.waterBed({ note })).note === note);
    const streams = notes.map(async (sensor) =>
      (await collect(client.watchReadings({ sensor, count: 3 }))).every((reading) => reading.sensor === sensor),
    );
    expect(await Promise.all([...calls, ...streams])).toEqual(Array(2 * notes.length).fill(true));
  });
});

test.each(
  // oxfmt-ignore
  [
    { name: "a request over the proxy's readMaxBytes", sent: 3_000, options: { readMaxBytes: 2_000 }, want: 413 },
    { name: "a response over the upstream's readMaxBytes", sent: 3_000,
      options: { readMaxBytes: 5_000, upstreamOptions: { readMaxBytes: 2_000 } }, want: 429 },
    { name: "a response over only the proxy's readMaxBytes", sent: 1_500,
      options: { readMaxBytes: 2_000, upstreamOptions: { readMaxBytes: 5_000 } }, want: 200 },
  ],
)("a call with $name gets an HTTP $want response", async ({ sent, options, want }) => {
  await using upstream = await startGreenhouse({ waterBed: ({ note }) => ({ note: `${note}${note}` }) });
  await using proxy = await startProxy(`http://127.0.0.1:${upstream.address.port}`, files, options);
  const body = JSON.stringify({ note: "n".repeat(sent) });
  const headers = { "content-type": "application/json" };
  const response = await fetch(`${proxy.baseUrl}/beds/1:water`, { method: "POST", headers, body });
  expect(response.status).toBe(want);
  await response.text();
});
