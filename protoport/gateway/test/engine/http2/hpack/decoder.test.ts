import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ErrorCode } from "../../../../src/http/exchange/index.ts";
import { HpackDecoder } from "../../../../src/engine/http2/hpack/decoder.ts";
import { encodeBlock, encodeStatus } from "../../../../src/engine/http2/hpack/encoder.ts";
import { canonicalCodes, huffmanCodeLengths } from "../../../../src/engine/http2/hpack/huffman.ts";
import { ConnectionError } from "../../../../src/engine/http2/http2-error.ts";
import { numRunsOf } from "@protoport/testing/process";

/** Encodes octets with RFC 7541's Huffman code, padded with ones. The server does not use Huffman coding. */
function encodeHuffman(text: string): Uint8Array {
  const codes = canonicalCodes();
  const bytes: number[] = [];
  let bits = 0n;
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const symbol = text.charCodeAt(at);
    const length = huffmanCodeLengths[symbol] ?? 0;
    bits = (bits << BigInt(length)) | BigInt(codes[symbol] ?? 0);
    count += length;
    while (count >= 8) {
      count -= 8;
      bytes.push(Number((bits >> BigInt(count)) & 255n));
      bits &= (1n << BigInt(count)) - 1n;
    }
  }
  if (count > 0) bytes.push(Number((bits << BigInt(8 - count)) | ((1n << BigInt(8 - count)) - 1n)));
  return Uint8Array.from(bytes);
}

const limitBytes = 16 * 1024;
const bytesOf = (hex: string): Buffer => Buffer.from(hex.replaceAll(" ", ""), "hex");

function decodeAll(blocks: readonly string[]): readonly (readonly string[])[] {
  const decoder = new HpackDecoder(limitBytes);
  return blocks.map((hex) => {
    const bytes = bytesOf(hex);
    return decoder.decode(bytes, 0, bytes.byteLength).fields;
  });
}

const request1 = [":method", "GET", ":scheme", "http", ":path", "/", ":authority", "www.example.com"];
const request2 = [...request1, "cache-control", "no-cache"];
const request3 = [
  [":method", "GET", ":scheme", "https", ":path", "/index.html", ":authority", "www.example.com"],
  ["custom-key", "custom-value"],
].flat();

const date1 = "Mon, 21 Oct 2013 20:13:21 GMT";
const date2 = "Mon, 21 Oct 2013 20:13:22 GMT";
const location = ["location", "https://www.example.com"];
const response1 = [":status", "302", "cache-control", "private", "date", date1, ...location];
const response2 = [":status", "307", "cache-control", "private", "date", date1, ...location];
const response3 = [
  [":status", "200", "cache-control", "private", "date", date2, ...location, "content-encoding", "gzip"],
  ["set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"],
].flat();

// The response examples use a 256-byte table, which this update sets.
const table256 = "3fe101";

test.each(
  // oxfmt-ignore
  [
      ["C.2.1, a literal field with indexing", ["400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572"],
        [["custom-key", "custom-header"]]],
      ["C.2.2, a literal field without indexing", ["040c 2f73 616d 706c 652f 7061 7468"], [[":path", "/sample/path"]]],
      ["C.2.3, a literal field that is never indexed", ["1008 7061 7373 776f 7264 0673 6563 7265 74"],
        [["password", "secret"]]],
      ["C.2.4, an indexed field", ["82"], [[":method", "GET"]]],
      ["Appendix A, a name at the end of the static table", ["0f2e 0178"], [["www-authenticate", "x"]]],
      ["C.3, requests without Huffman coding",
        ["8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", "8286 84be 5808 6e6f 2d63 6163 6865",
          "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65"], [request1, request2, request3]],
      ["C.4, requests with Huffman coding",
        ["8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", "8286 84be 5886 a8eb 1064 9cbf",
          "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"], [request1, request2, request3]],
      [
        "C.5, responses without Huffman coding, with evictions",
        [
          `${table256} 4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
           2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d`,
          "4803 3330 37c1 c0bf",
          `88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a
           6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d
           6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31`,
        ],
        [response1, response2, response3],
      ],
      [
        "C.6, responses with Huffman coding, with evictions",
        [
          `${table256} 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b
           ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3`,
          "4883 640e ffc1 c0bf",
          `88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d
           d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106
           3d50 07`,
        ],
        [response1, response2, response3],
      ],
    ],
)("the HPACK decoder decodes the example %s (RFC 7541)", (_, blocks, want) => {
  expect(decodeAll(blocks.map((block) => block.replaceAll("\n", "")))).toStrictEqual(want);
});

test("a repeated block is decoded once until the dynamic table changes", () => {
  const decoder = new HpackDecoder(10_000);
  const decode = (hex: string): unknown => {
    const block = Buffer.from(hex, "hex");
    return decoder.decode(block, 0, block.byteLength);
  };
  for (const changing of ["40016101 62", "40016301 64"]) {
    decode(changing.replaceAll(" ", ""));
    expect(decode("82")).toBe(decode("82"));
    expect(decode("be")).toBe(decode("be"));
  }
  expect(decode("be")).toMatchObject({ fields: ["c", "d"] });
});

describe("the decoder", () => {
  test.each([
    { name: "index 0 (§6.1)", block: "80" },
    { name: "index 0 with following octets (§6.1)", block: "80 01 61 01 62" },
    { name: "an index above both tables (§2.3.3)", block: "be" },
    { name: "an index of a name above both tables (§2.3.3)", block: "7e 01 61" },
    { name: "a truncated integer (§5.1)", block: "ff" },
    { name: "an integer that is too large (§5.1)", block: "ff ff ff ff ff 0f" },
    { name: "an integer with trailing zeros (§5.1)", block: "3f e1 9f 80 80 00" },
    { name: "an integer that is too large for 32 bits (§5.1)", block: "00 7f 80 80 80 80 80 01" },
    { name: "a name beyond the end of the block (§5.2)", block: "40 05 61 62" },
    { name: "a value beyond the end of the block (§5.2)", block: "40 01 61 05 62" },
    { name: "a missing string (§5.2)", block: "40" },
    { name: "the end-of-string symbol (§5.2)", block: "00 84 ff ff ff ff 01 61" },
    { name: "padding that is not all ones (§5.2)", block: "00 81 18 01 61" },
    { name: "padding of more than seven bits (§5.2)", block: "00 82 1f ff 01 61" },
    { name: "a table larger than the setting (§6.3)", block: "3f e2 1f" },
    { name: "a size update after a field (§4.2)", block: "82 20" },
  ])("rejects a block with $name as a compression error", ({ block }) => {
    const error = expect.objectContaining({ name: "ConnectionError", code: ErrorCode.compressionError });
    expect(() => decodeAll([block])).toThrow(error);
  });

  test.each([
    {
      name: "removes all entries if a new entry exceeds the table",
      blocks: ["3f e1 01 40 01 61 01 62", `40 01 63 7f 81 01 ${"61".repeat(256)}`, "be"],
    },
    { name: "evicts all entries when the table size becomes 0", blocks: ["40 01 61 01 62", "20", "be"] },
    { name: "does not restore entries when the table grows again", blocks: ["40 01 61 01 62", "20 3f e1 1f be"] },
  ])("$name (§4.3, §4.4)", ({ blocks }) => {
    expect(decodeAll(blocks.slice(0, -1))).toHaveLength(blocks.length - 1);
    expect(() => decodeAll(blocks)).toThrow(ConnectionError);
  });

  test.each([
    { name: "a short field", entry: "40 01 63 01 64", want: "c=d" },
    { name: "a long field", entry: `40 01 63 7f a1 01 ${"64".repeat(288)}`, want: `c=${"d".repeat(288)}` },
  ])("decodes a cached block again after $name was added to the table", ({ entry, want }) => {
    // One octet, an index into the dynamic table, before and after a new entry.
    const blocks = ["40 01 61 01 62", "be", "be", entry, "be", "be"];
    expect(decodeAll(blocks).map((fields) => fields.join("="))).toStrictEqual(["a=b", "a=b", "a=b", want, want, want]);
  });

  test.each([
    { name: "a never-indexed token", token: 1_000, blocks: 2 },
    { name: "a header of the maximum size", token: 16_000, blocks: 1 },
    { name: "one of eight alternating tokens", token: 1_000, blocks: 8 },
  ])("decodes a repeated block with $name only once", ({ token, blocks: count }) => {
    const decoder = new HpackDecoder(limitBytes);
    const blocks = Array.from({ length: count }, (_, i) => neverIndexed(`${i}`.padStart(token, "t")));
    const decode = (block: Buffer): unknown => decoder.decode(block, 0, block.byteLength);
    const first = blocks.map(decode);
    expect(blocks.map(decode).every((block, i) => block === first[i])).toBe(true);
  });

  test("decodes a long Huffman string after any repeated string", () => {
    const decoder = new HpackDecoder(limitBytes);
    const tokens = ["a", "b", "a", "a", "c", "a", "b"].map((last) => `${"t".repeat(400)}${last}`);
    const read = tokens.map((token, i) => {
      const block = Buffer.concat([neverIndexed(token), encodeBlock(["call", `${i}`])]);
      return decoder.decode(block, 0, block.byteLength).fields;
    });
    expect(read).toStrictEqual(tokens.map((token, i) => ["authorization", token, "call", `${i}`]));
  });

  test("does not read an integer beyond its block", () =>
    expect(() => new HpackDecoder(limitBytes).decode(bytesOf("3f 00"), 0, 1)).toThrow(ConnectionError));

  test("decodes an integer with five octets (§5.1)", () =>
    expect(decodeAll(["3f e1 9f 80 00 82"])).toStrictEqual([[":method", "GET"]]));

  test("applies every table size update", () => {
    expect(decodeAll(["3f e1 1f 82", "20 82", "3f e1 1f 82", "40 01 61 01 62", "be"]).at(-1)).toStrictEqual(["a", "b"]);
  });

  test("returns only pseudo-header fields beyond the list limit", () => {
    const decoder = new HpackDecoder(51 + 32);
    const block = Buffer.concat([encodeBlock(["a", "x".repeat(50), "b", "y".repeat(50)]), encodeStatus(418)]);
    const { fields, listBytes } = decoder.decode(block, 0, block.byteLength);
    expect([fields, listBytes]).toStrictEqual([["a", "x".repeat(50), ":status", "418"], 51 + 51 + 10 + 3 * 32]);
  });

  test("decodes the fields that the encoder encodes", () => {
    const name = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/).filter((text) => !connectionFields.has(text));
    const octets = fc.integer({ min: 0x20, max: 0xff }).filter((octet) => octet !== 0x7f);
    const value = fc.string({ unit: octets.map((octet) => String.fromCharCode(octet)), maxLength: 300 });
    const decoder = new HpackDecoder(1 << 20);
    fc.assert(
      fc.property(fc.array(fc.tuple(name, value), { maxLength: 20 }), (pairs) => {
        const block = encodeBlock(pairs.flat());
        expect(decoder.decode(block, 0, block.byteLength).fields).toStrictEqual(pairs.flat());
      }),
      { numRuns: 300 },
    );
  });

  test("decodes every octet string from its Huffman code", () =>
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), (octets) => {
        const text = Buffer.from(octets).toString("latin1");
        const coded = encodeHuffman(text);
        const block = Buffer.concat([Buffer.from([0x00, 0x01, 0x61]), huffmanLength(coded.byteLength), coded]);
        expect(new HpackDecoder(limitBytes).decode(block, 0, block.byteLength).fields).toStrictEqual(["a", text]);
      }),
      { numRuns: 300, examples: [[new Uint8Array(9_000).fill(0x61)]] },
    ));

  test("throws only connection errors for random blocks", () =>
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 }), (blocks) => {
        const decoder = new HpackDecoder(1000);
        try {
          for (const block of blocks) {
            const bytes = Buffer.from(block);
            const { fields } = decoder.decode(bytes, 0, bytes.byteLength);
            const kept = fields.filter((_, i) => !String(fields[i - (i % 2)]).startsWith(":"));
            expect(kept.join("").length).toBeLessThanOrEqual(1000);
          }
        } catch (error) {
          expect(error).toMatchObject({ name: "ConnectionError", code: ErrorCode.compressionError });
        }
      }),
      { numRuns: numRunsOf(1000) },
    ));
});

test("the Huffman code lengths form a complete prefix code", () => {
  // The Kraft sum, in units of the longest code. In the tests above, both encoder and decoder use these lengths.
  expect(huffmanCodeLengths.map((bits) => 2 ** (30 - bits)).reduce((sum, share) => sum + share)).toBe(2 ** 30);
});

const connectionFields = new Set(["connection", "keep-alive", "upgrade", "transfer-encoding", "proxy-connection"]);

// RFC 7541 §6.2.3, with the name of the static table's entry 23, "authorization", and a coded value.
function neverIndexed(token: string): Buffer {
  const coded = encodeHuffman(token);
  return Buffer.concat([Buffer.from([0x1f, 0x08]), huffmanLength(coded.byteLength), coded]);
}

// The Huffman bit and the length (RFC 7541 §5.2).
function huffmanLength(bytes: number): Buffer {
  if (bytes < 127) return Buffer.from([0x80 | bytes]);
  const rest = bytes - 127;
  return rest < 128 ? Buffer.from([0xff, rest]) : Buffer.from([0xff, (rest & 0x7f) | 0x80, rest >> 7]);
}
