import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodeEnvelopes } from "../../../../../../testing/src/gateway/envelope.ts";
import { type Field, fieldValue, framing, type HttpResponse } from "@protoport/testing/http";
import { readOutcome } from "../../../../../../testing/src/gateway/outcome.ts";
import { KeptConnections } from "../../../../../../testing/src/gateway/kept-connections.ts";
import { wires, type Wire, type WireFormat } from "../../../../../../testing/src/gateway/wire-format.ts";
import { startSideBySide, type SideBySide } from "./side-by-side.ts";
import { unaryCallTable, type UnaryCallCase } from "./unary-calls.ts";

const cases = unaryCallTable.flatMap((row) =>
  wires
    .filter((wire) => isSupported(wire) && (row.only?.(wire) ?? true))
    .map((wire) => ({ row, wire, name: `${row.name} by ${wire.name}` })),
);
type Pair = { readonly row: UnaryCallCase; readonly wire: Wire; readonly name: string };

describe("a client of the gateway", () => {
  let servers: SideBySide;
  beforeAll(async () => {
    servers = await startSideBySide();
  });
  const connections = new KeptConnections();
  afterAll(async () => {
    connections[Symbol.dispose]();
    await servers[Symbol.asyncDispose]();
  });

  const callBoth = async ({ row, wire }: Pair): Promise<{ want: HttpResponse; got: HttpResponse }> => {
    const request = row.request(wire.format);
    const [want, got] = await Promise.all([
      connections.exchange(servers.connectNode[wire.httpVersion], wire.httpVersion, request),
      connections.exchange(servers.gateway, wire.httpVersion, request),
    ]);
    return { want, got };
  };

  test.each<Pair>(cases)("gets the same response for $name as from connect-node", async (pair) => {
    const { want, got } = await callBoth(pair);
    if (pair.row.httpStatusOnly === true) return expect(got.httpStatus).toBe(want.httpStatus);
    const observe = pair.row.codeOnly?.(pair.wire) === true ? codeOf : observedBy;
    expect(observe(pair.wire.format, got)).toStrictEqual(observe(pair.wire.format, want));
  });
});

// connect-node supports neither REST nor gRPC-Web's text form.
function isSupported({ format }: Wire): boolean {
  return format.protocol !== "rest" && format.name !== "grpc-web-text";
}

const codeOf = (format: WireFormat, response: HttpResponse): number => readOutcome(format, response).code;

function observedBy(format: WireFormat, response: HttpResponse): unknown {
  const header = response.header.filter(([name]) => !framing.has(name));
  const isRpc = (fieldValue(response.header, "content-type") ?? "").startsWith("application/grpc");
  if (format.protocol === "connect" || !isRpc) {
    const body = inflate(fieldValue(response.header, "content-encoding"), response.body).toString("utf8");
    return { httpStatus: response.httpStatus, header: fields(header), body };
  }
  const encoding = fieldValue(response.header, "grpc-encoding");
  const envelopes = decodeEnvelopes(response.body).map(({ flags, bytes }) => ({
    isTrailer: (flags & 0x80) !== 0,
    text: ((flags & 1) === 0 ? bytes : inflate(encoding, bytes)).toString("utf8"),
  }));
  const messages = envelopes.filter(({ isTrailer }) => !isTrailer).map(({ text }) => text);
  const last = envelopes.find(({ isTrailer }) => isTrailer);
  const trailer = last === undefined ? response.trailer : webTrailer(last.text);
  // An error may be sent as Trailers-Only or in two sections, and clients read the status from both.
  const isError = fieldValue([...header, ...trailer], "grpc-status") !== "0";
  return {
    httpStatus: response.httpStatus,
    messages,
    ...(isError ? { fields: fields([...header, ...trailer]) } : { header: fields(header), trailer: fields(trailer) }),
  };
}

function webTrailer(text: string): Field[] {
  const lines = text.split("\r\n").filter((line) => line !== "");
  return lines.map((line) => [
    line.slice(0, line.indexOf(":")).toLowerCase(),
    line.slice(line.indexOf(":") + 1).trim(),
  ]);
}

function inflate(encoding: string | undefined, bytes: Buffer): Buffer {
  if (encoding === "gzip") return gunzipSync(bytes);
  return encoding === "br" ? brotliDecompressSync(bytes) : bytes;
}

function fields(list: readonly Field[]): Record<string, string> {
  const names = [...new Set(list.map(([name]) => name))].toSorted();
  return Object.fromEntries(
    names.map((name) => {
      const value = fieldValue(list, name) ?? "";
      return [name, name === "grpc-message" ? decodeURIComponent(value) : value];
    }),
  );
}
