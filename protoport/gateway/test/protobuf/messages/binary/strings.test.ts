import { describe, expect, test } from "vitest";
import { ByteTarget } from "../../../../src/protobuf/messages/binary/byte-target.ts";
import { readString } from "../../../../src/protobuf/messages/binary/binary-reader.ts";
import { writeString } from "../../../../src/protobuf/messages/binary/binary-writer.ts";

// Runtimes without node's Buffer have only Uint8Array.

const texts = [
  { name: "only ASCII characters", text: "a rose of the garden, by whatever other name" },
  { name: "umlauts", text: "Gänseblümchen, Vergissmeinnicht, Tränendes Herz" },
  { name: "characters beyond the Basic Multilingual Plane", text: "🌱 🌿 🌳 ".repeat(6) },
];
const around = "<<<";

describe.each(texts)("a string with $name", ({ text }) => {
  const encoded = new TextEncoder().encode(around + text + around);
  const length = encoded.byteLength - 2 * around.length;

  test.each([
    { name: "a Buffer", bytes: Buffer.from(encoded) },
    { name: "a Uint8Array", bytes: encoded },
  ])("is read from the middle of $name unchanged", ({ bytes }) => {
    expect(readString(bytes, around.length, length)).toBe(text);
  });

  test.each([
    { name: "a Buffer", bytes: Buffer.alloc(1024) },
    { name: "a Uint8Array", bytes: new Uint8Array(1024) },
  ])("is written into the middle of $name after its length", ({ bytes }) => {
    const target = Object.assign(new ByteTarget(0), { bytes, at: around.length });
    writeString(target, text);
    // Each length fits in one byte.
    expect(Array.from(bytes.subarray(around.length, target.at))).toEqual([length, ...Buffer.from(text)]);
  });
});
