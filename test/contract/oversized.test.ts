import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openMemoryStore } from "../../src/plantstore/plants/index.ts";
import type { Field, HttpRequest } from "../support/carriers/exchange.ts";
import { exchangeHttp1 } from "../support/carriers/http1-connection.ts";
import { exchangeHttp2 } from "../support/carriers/http2-connection.ts";
import { authorized, startPlantServer, type TestPlantServer } from "../support/server/plant-server.ts";
import { carriages, rpcRequest, type WireFormat } from "../support/gateway/wire-format.ts";
import { expectedAnswer, seenAnswer, type Want } from "./expected-answer.ts";

/** Beyond the limit of 64 KiB, and beyond every buffer and window between client and server. */
const oversized = Buffer.alloc(6 * 1024 * 1024, " ");

const want: Want = { code: "resource_exhausted", message: "message is larger than 65536 bytes" };

// A body with its length is refused by its header, one in chunks once too much of it has come.
const framings: readonly { readonly name: string; readonly header: readonly Field[]; readonly chunked: boolean }[] = [
  { name: "its length", header: [], chunked: false },
  { name: "chunks", header: [["transfer-encoding", "chunked"]], chunked: true },
];

const http1Rows = carriages
  .filter(({ httpVersion }) => httpVersion === "1.1")
  .flatMap((carriage) => framings.map((framing) => ({ carriage, framing })));

const http2Rows = carriages.filter(({ httpVersion }) => httpVersion === "2");

describe("a body that is too large", () => {
  const plants = new Set([7n]);
  let server: TestPlantServer;
  beforeAll(async () => {
    server = await startPlantServer({ store: openMemoryStore(plants) });
  });
  afterAll(() => server[Symbol.asyncDispose]());

  test.each(http1Rows)("is refused, $carriage.name with $framing.name", async ({ carriage: { format }, framing }) => {
    const { body = oversized, ...request } = oversizedRequest(format);
    const sent = { ...request, header: [...request.header, ...framing.header] };
    const answer = await exchangeHttp1(server.address, {
      ...sent,
      body: framing.chunked ? inChunks(body) : body,
    });
    expect(seenAnswer(format, answer)).toStrictEqual(expectedAnswer(format, want));
    expect(plants.has(7n)).toBe(true);
  });

  test.each(http2Rows)("is refused, $name", async ({ format }) => {
    const answer = await exchangeHttp2(server.address, oversizedRequest(format));
    expect(seenAnswer(format, answer)).toStrictEqual(expectedAnswer(format, want));
    expect(plants.has(7n)).toBe(true);
  });
});

function oversizedRequest(format: WireFormat): HttpRequest {
  if (format.protocol !== "rest") return rpcRequest(format, oversized, [authorized]);
  return { httpMethod: "DELETE", path: "/plants/7", header: [authorized], body: oversized };
}

function inChunks(body: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${body.byteLength.toString(16)}\r\n`), body, Buffer.from("\r\n0\r\n\r\n")]);
}
