import { isMarkedAsUntransferable } from "node:worker_threads";
import { Code } from "@connectrpc/connect";
import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
// oxfmt-ignore
import { decodeGrpcWebText, decodeTextPieces, encodeGrpcWebText, grpcWebTextBytes
} from "../../../src/protocols/grpc-web/text.ts";

const refused: unknown = expect.objectContaining({ code: Code.InvalidArgument });

/** Bytes, split at arbitrary positions. */
const pieces = fc.array(fc.uint8Array({ maxLength: 20 }), { maxLength: 8 });

describe("decodeGrpcWebText", () => {
  test.each([
    { name: "an empty body", text: "", want: "" },
    { name: "base64 without padding", text: "b3JkZXJz", want: "orders" },
    { name: "padded base64", text: "b3JkZXI=", want: "order" },
    { name: "several padded base64 sections", text: "bw==cg==ZGVycw==", want: "orders" },
  ])("decodes $name to a transferable buffer", ({ text, want }) => {
    const bytes = decodeGrpcWebText(Buffer.from(text));
    expect([Buffer.from(bytes).toString(), isMarkedAsUntransferable(bytes.buffer)]).toEqual([want, false]);
  });

  test.each([
    { name: "missing padding", text: "cGxhbnQ" },
    { name: "base64url characters", text: "_-8A" },
    { name: "a line break", text: "cGxh\nbnRz" },
    { name: "only padding", text: "====" },
    { name: "three padding characters", text: "c===" },
    { name: "padding inside a group of four characters", text: "cA=w" },
    { name: "a non-ASCII character", text: "cGxé" },
  ])("text with $name is refused", ({ text }) => expect(() => decodeGrpcWebText(Buffer.from(text))).toThrow(refused));

  test("decodes any number of padded sections", () =>
    fc.assert(
      fc.property(pieces, (parts) => {
        const text = Buffer.concat(parts.map((part) => encodeGrpcWebText(part)));
        expect(Buffer.from(decodeGrpcWebText(text)).equals(Buffer.concat(parts))).toBe(true);
      }),
    ));

  test("decodes bodies of any length", () => {
    const bytes = Buffer.alloc(6 * 1024 * 1024, "orders");
    expect(bytes.equals(decodeGrpcWebText(encodeGrpcWebText(bytes)))).toBe(true);
  });

  test("grpcWebTextBytes returns at least the length of every encoded body", () =>
    fc.assert(
      fc.property(fc.nat(10_000), (bytes) => {
        expect(encodeGrpcWebText(new Uint8Array(bytes)).byteLength).toBeLessThanOrEqual(grpcWebTextBytes(bytes));
      }),
    ));
});

test("a stream of gRPC-Web text decodes to the same bytes wherever the text is split", async () =>
  await fc.assert(
    fc.asyncProperty(pieces, fc.array(fc.nat(60)), async (parts, cuts) => {
      const text = Buffer.concat(parts.map((part) => encodeGrpcWebText(part)));
      expect((await join(decodeTextPieces(from(cutAt(text, cuts))))).equals(Buffer.concat(parts))).toBe(true);
    }),
  ));

test("a stream of gRPC-Web text is refused if it ends within a group of four characters", () =>
  expect(join(decodeTextPieces(from([Buffer.from("cGxhb")])))).rejects.toEqual(refused));

function cutAt(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set([...cuts.filter((a) => a < bytes.byteLength), bytes.byteLength])].toSorted((a, b) => a - b);
  return ends.map((end, at) => bytes.subarray(at === 0 ? 0 : ends[at - 1], end));
}

async function* from(parts: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* parts;
}

async function collect(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const collected: Uint8Array[] = [];
  for await (const part of parts) collected.push(part);
  return collected;
}

const join = async (parts: AsyncIterable<Uint8Array>): Promise<Buffer> => Buffer.concat(await collect(parts));
