import { canonicalCodes, huffmanCodeLengths } from "../../../src/gateway/http2/hpack/huffman.ts";

/** Encodes a string of octets by the Huffman code of RFC 7541, padded with ones; the server sends its answers uncoded. */
export function encodeHuffman(text: string): Uint8Array {
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
