import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { decodeEnvelopes } from "../../../testing/src/gateway/envelope.ts";
import { fieldValue, type Field, framing, type HttpAnswer } from "../../../testing/src/carriers/exchange.ts";
import { readOutcome } from "../../../testing/src/gateway/outcome.ts";
import { KeptConnections } from "../../../testing/src/gateway/kept-connections.ts";
import { carriages, type Carriage, type WireFormat } from "../../../testing/src/gateway/wire-format.ts";
import { startSideBySide, type SideBySide } from "./side-by-side.ts";
import { unaryCallTable, type UnaryCallRow } from "./unary-calls.ts";

const rows = unaryCallTable.flatMap((row) =>
  carriages
    .filter((carriage) => isSpoken(carriage) && (row.only?.(carriage) ?? true))
    .map((carriage) => ({ row, carriage, name: `${row.name} by ${carriage.name}` })),
);
type Pair = { readonly row: UnaryCallRow; readonly carriage: Carriage; readonly name: string };

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

  const ask = async ({ row, carriage }: Pair): Promise<{ want: HttpAnswer; got: HttpAnswer }> => {
    const { format, httpVersion } = carriage;
    const request = row.request(format);
    const [want, got] = await Promise.all([
      connections.exchange(servers.connectNode[httpVersion], httpVersion, request),
      connections.exchange(servers.gateway, httpVersion, request),
    ]);
    return { want, got };
  };

  test.each<Pair>(rows)("sees the same of $name as a client of connect-node", async (pair) => {
    const { want, got } = await ask(pair);
    if (pair.row.httpStatusAlone === true) return expect(got.httpStatus).toBe(want.httpStatus);
    const look = pair.row.codeAlone?.(pair.carriage) === true ? codeOf : seen;
    expect(look(pair.carriage.format, got)).toStrictEqual(look(pair.carriage.format, want));
  });
});

// connect-node knows neither REST nor the text form of gRPC-Web.
function isSpoken({ format }: Carriage): boolean {
  return format.protocol !== "rest" && format.name !== "grpc-web-text";
}

function codeOf(format: WireFormat, answer: HttpAnswer): number {
  return readOutcome(format, answer).code;
}

/** What a client makes of an answer: status, fields and message, wherever the bytes of them stood. */
function seen(format: WireFormat, answer: HttpAnswer): unknown {
  const header = answer.header.filter(([name]) => !framing.has(name));
  const isRpc = (fieldValue(answer.header, "content-type") ?? "").startsWith("application/grpc");
  if (format.protocol === "connect" || !isRpc) {
    const body = inflate(fieldValue(answer.header, "content-encoding"), answer.body).toString("utf8");
    return { httpStatus: answer.httpStatus, header: fields(header), body };
  }
  const encoding = fieldValue(answer.header, "grpc-encoding");
  const envelopes = decodeEnvelopes(answer.body).map(({ flags, bytes }) => ({
    isTrailer: (flags & 0x80) !== 0,
    text: ((flags & 1) === 0 ? bytes : inflate(encoding, bytes)).toString("utf8"),
  }));
  const messages = envelopes.filter(({ isTrailer }) => !isTrailer).map(({ text }) => text);
  const last = envelopes.find(({ isTrailer }) => isTrailer);
  const trailer = last === undefined ? answer.trailer : webTrailer(last.text);
  // An error may come as Trailers-Only, in one section, or in two: clients look for the status in both.
  const isError = fieldValue([...header, ...trailer], "grpc-status") !== "0";
  return {
    httpStatus: answer.httpStatus,
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
